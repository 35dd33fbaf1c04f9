//! The files of unstuck itself in a work tree: they change all the time, and must never be restored.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::path_quoting::path_from_bytes;
use crate::run_dir::PROJECT_DIR;

/// The first bytes of a store's file.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
/// Suffixes of the files that SQLite keeps next to a store.
const SQLITE_SUFFIXES: [&[u8]; 3] = [b"-wal", b"-shm", b"-journal"];

/// The files of unstuck that may be in the project.
#[derive(Debug)]
pub(super) struct OwnFiles {
    root: PathBuf,
    /// The state directory, if it is in the work tree.
    state: Option<PathBuf>,
}

impl OwnFiles {
    pub(super) fn new(root: &Path, state: &Path) -> Self {
        let state = state.canonicalize().unwrap_or(state.to_owned());
        Self {
            root: root.to_owned(),
            state: state.starts_with(root).then_some(state),
        }
    }

    /// Returns true if a file belongs to unstuck itself.
    pub(super) fn contains(&self, name: &[u8]) -> bool {
        let mut parts = name.split(|byte| *byte == b'/');
        parts.any(|part| part == PROJECT_DIR.as_bytes())
            || self.state.as_deref().is_some_and(|state| {
                let place = self.root.join(path_from_bytes(name));
                place.starts_with(state) || is_store(&place, name, state)
            })
    }
}

/// Returns true if a file is the store of a state directory: both have the same name up to the extension.
fn is_store(place: &Path, name: &[u8], state: &Path) -> bool {
    let ending = state.extension().unwrap_or_default();
    if place.with_extension(ending) != state {
        return false;
    }
    let mut begin = [0; SQLITE_MAGIC.len()];
    let mut read =
        || -> std::io::Result<()> { unstuck_files::open_named(place)?.read_exact(&mut begin) };
    SQLITE_SUFFIXES.iter().any(|end| name.ends_with(end))
        || (read().is_ok() && begin == SQLITE_MAGIC)
}

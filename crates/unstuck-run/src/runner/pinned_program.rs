//! The program of a run's attempts: found once, so that a program planted on the search path later is never run.

use std::collections::hash_map::DefaultHasher;
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use unstuck_core::RunId;
use unstuck_files::{TrustedProgram, program_on_path};

use crate::run_dir;

/// The longest path of a program.
const MAX_PATH: u64 = 4096;

/// Returns the path of a program that is named by its bare name: the one that the run found first.
///
/// If that one is gone, programs in the project do not take its place. `None` if there is nothing to look up, or no such
/// program.
pub(super) fn pinned_program(
    (state, run): (&Path, &RunId),
    name: &OsStr,
    search: &OsStr,
    (cwd, project): (&Path, &Path),
) -> Option<PathBuf> {
    if name.is_empty() || name.as_bytes().contains(&b'/') {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (name, search).hash(&mut hasher);
    let record = PathBuf::from(format!("{:016x}", hasher.finish()));
    let records = run_dir::open_run_files(state, run)
        .and_then(|run| Ok(run.create_dirs(Path::new("programs"))?));
    let known = records
        .as_ref()
        .ok()
        .and_then(|records| records.read(&record, MAX_PATH).ok());
    let found = match known.map(OsString::from_vec).map(PathBuf::from) {
        Some(path) if path.exists() => return Some(path),
        Some(path) if !path.starts_with(project) && !path.starts_with(cwd) => {
            let other = name
                .to_str()
                .and_then(|name| TrustedProgram::find(name, search, &[project, cwd]));
            other.map_or(path, |other| other.path)
        }
        Some(_) | None => program_on_path(name, search, cwd)?,
    };
    if let Ok(records) = records {
        // Without it, the program is looked up again.
        let _ = records.replace(&record, found.as_os_str().as_bytes());
    }
    Some(found)
}

/// Returns the search path of this process, which children inherit.
pub(super) fn inherited_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

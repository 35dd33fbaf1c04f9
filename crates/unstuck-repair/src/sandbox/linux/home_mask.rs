//! Hides the parts of the home directory that a command does not need.
//!
//! An overlay layer with a whiteout for each hidden entry. This is an allow-list, so the locations of secrets need not
//! be known.
#![expect(
    clippy::disallowed_methods,
    reason = "lists the home directory around the project, never the project, and writes only to the private scratch directory"
)]

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::detached_mount::open_path;

/// Maximum number of whiteouts; a home directory with more entries has a few very large directories.
const MAX_MARKS: usize = 50_000;

/// Creates a layer that masks everything in the home directory except the named paths and their parents.
pub(super) fn create_mask_layer(
    home: &Path,
    seen: &[PathBuf],
    layer: &Path,
) -> io::Result<OwnedFd> {
    let data = fs::metadata(home)?;
    fs::create_dir(layer)?;
    fs::set_permissions(layer, data.permissions())?;
    let mut marks = 0;
    mask_dir(home, seen, layer, &mut marks)?;
    open_path(layer)
}

fn mask_dir(folder: &Path, seen: &[PathBuf], layer: &Path, marks: &mut usize) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if seen.iter().any(|one| path.starts_with(one)) {
            continue;
        }
        *marks += 1;
        if *marks > MAX_MARKS {
            return Err(io::Error::other("too many entries"));
        }
        let at = layer.join(entry.file_name());
        let is_around = seen.iter().any(|one| one.starts_with(&path));
        if is_around && entry.file_type()?.is_dir() {
            fs::create_dir(&at)?;
            fs::set_permissions(&at, entry.metadata()?.permissions())?;
            // An unreadable directory has nothing in it for the command either.
            match mask_dir(&path, seen, &at, marks) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                other => other?,
            }
        } else {
            // The overlay mark for a deleted entry.
            mknodat(CWD, &at, FileType::CharacterDevice, Mode::empty(), 0)?;
        }
    }
    Ok(())
}

//! Checks that only the owner can have written a file.

use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::layered_repair_policy::UntrustedOwnerFile;

const OTHERS_MAY_WRITE: u32 = 0o022;
/// The sticky bit: everyone may add files to the directory, and nobody may replace those of others.
const STICKY: u32 = 0o1000;

/// Returns the reason why others than the owner may have written or replaced a file; `None` if they cannot.
///
/// `file` is the metadata of the open handle.
pub(crate) fn ownership_problem(path: &Path, file: &Metadata) -> Option<UntrustedOwnerFile> {
    let told = |why: String, hint: String| UntrustedOwnerFile {
        file: path.to_owned(),
        reason: why,
        hint,
    };
    if let Some(why) = foreign_owner(file) {
        let hint = format!("take ownership: `chown $(id -u) {}`", path.display());
        return Some(told(why, hint));
    }
    if file.permissions().mode() & OTHERS_MAY_WRITE != 0 {
        let hint = format!("`chmod go-w {}`", path.display());
        return Some(told("is writable by other users".to_owned(), hint));
    }
    ancestor_dirs(path).into_iter().find_map(|folder| {
        let (why, hint) = writable_by_others(&folder)?;
        Some(told(why, hint))
    })
}

fn foreign_owner(data: &Metadata) -> Option<String> {
    let own = rustix::process::geteuid().as_raw();
    let is_ours = data.uid() == own || data.uid() == 0;
    (!is_ours).then(|| format!("belongs to another user ({})", data.uid()))
}

/// Returns the parent directories of a file, both along the given path and along its resolved links.
fn ancestor_dirs(path: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let real = fs::canonicalize(path).ok();
    for way in [std::path::absolute(path).ok(), real].into_iter().flatten() {
        for folder in way.ancestors().skip(1) {
            if !folders.iter().any(|known| known == folder) {
                folders.push(folder.to_owned());
            }
        }
    }
    folders
}

/// Returns the reason why others can put files into a directory, and the advice.
fn writable_by_others(folder: &Path) -> Option<(String, String)> {
    let shown = folder.display();
    let Ok(data) = fs::metadata(folder) else {
        let why = format!("is in {shown}, which cannot be inspected");
        return Some((why, format!("check the permissions of {shown}")));
    };
    if let Some(why) = foreign_owner(&data) {
        let why = format!("is in {shown}, which {why}");
        return Some((why, format!("move it out of {shown}")));
    }
    let mode = data.permissions().mode();
    (mode & OTHERS_MAY_WRITE != 0 && mode & STICKY == 0).then(|| {
        let why = format!("is in {shown}, which is writable by other users");
        (why, format!("`chmod go-w {shown}`"))
    })
}

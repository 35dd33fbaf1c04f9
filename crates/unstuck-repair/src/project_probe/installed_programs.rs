//! Checks which programs exist outside the project.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the programs found in an absolute directory outside the project.
pub(super) fn existing_programs(
    search_path: &OsStr,
    root: &Path,
    programs: &BTreeSet<String>,
) -> BTreeSet<String> {
    let folders = std::env::split_paths(search_path);
    let folders: Vec<PathBuf> = folders
        .filter(|folder| folder.is_absolute() && !folder.starts_with(root))
        .collect();
    let exists = |name: &&String| folders.iter().any(|folder| is_program(&folder.join(name)));
    programs.iter().filter(exists).cloned().collect()
}

fn is_program(path: &Path) -> bool {
    let found = path.metadata();
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

//! Locates the git program: never in the project, and never in a world-writable directory.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The git program, and the search path for programs that it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitProgram {
    /// Its path.
    pub(super) path: PathBuf,
    /// A search path without directories that agents or all users can write.
    pub(super) search_path: OsString,
}

impl GitProgram {
    /// Finds git on the search path of this process, outside of these directories.
    pub(super) fn find(projects: &[&Path]) -> Option<Self> {
        let search = std::env::var_os("PATH").unwrap_or_default();
        Self::find_on(&search, projects)
    }

    fn find_on(search: &OsString, projects: &[&Path]) -> Option<Self> {
        let folders = std::env::split_paths(search);
        let folders: Vec<_> = folders
            .filter(|folder| is_trusted(folder, projects))
            .collect();
        let found = folders.iter().find_map(|folder| {
            let program = folder.join("git");
            let real = program.canonicalize().ok()?;
            (is_program(&real) && !is_within(&real, projects)).then_some(program)
        })?;
        Some(Self {
            path: found,
            search_path: std::env::join_paths(&folders).unwrap_or_default(),
        })
    }
}

/// Returns true if programs in a search path directory may run: it is absolute, outside of the projects, and not
/// world-writable.
fn is_trusted(folder: &Path, projects: &[&Path]) -> bool {
    if !folder.is_absolute() || is_within(folder, projects) {
        return false;
    }
    let Ok(real) = folder.canonicalize() else {
        return false;
    };
    let everybodys = |data: std::fs::Metadata| data.permissions().mode() & 0o002 != 0;
    !is_within(&real, projects) && real.metadata().is_ok_and(|data| !everybodys(data))
}

fn is_within(path: &Path, projects: &[&Path]) -> bool {
    projects.iter().any(|project| path.starts_with(project))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
mod tests {
    use super::*;
    use std::fs;

    fn put_git(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        let program = folder.join("git");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// L1: a git in the project, the current directory, or a world-writable directory is never run.
    #[test]
    fn git_is_not_run_from_directories_that_agents_can_write() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let (project, open, own) = (root.join("project"), root.join("open"), root.join("own"));
        for folder in [&project, &project.join("bin"), &open, &own] {
            put_git(folder);
        }
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        std::os::unix::fs::symlink(project.join("bin"), root.join("link")).unwrap();
        let bad = [
            PathBuf::from("."),
            PathBuf::from(""),
            PathBuf::from("project/bin"),
            project.clone(),
            project.join("bin"),
            root.join("link"),
            open,
        ];
        let search = std::env::join_paths(&bad).unwrap();
        assert_eq!(GitProgram::find_on(&search, &[&project]), None);
        let search = std::env::join_paths(bad.iter().chain([&own])).unwrap();
        let found = GitProgram::find_on(&search, &[&project]).unwrap();
        assert_eq!(found.path, own.join("git"));
        assert_eq!(found.search_path, own.into_os_string());
    }
}

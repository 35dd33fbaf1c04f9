//! Locates programs that unstuck runs for itself: never in a project, and never in a world-writable directory.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program that no agent can replace, and the search path for programs that it runs in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedProgram {
    /// Its path.
    pub path: PathBuf,
    /// The [trusted part](trusted_search_path) of the search path.
    pub search_path: OsString,
}

impl TrustedProgram {
    /// Finds a program on a search path, outside of these projects.
    pub fn find(name: &str, search: &OsStr, projects: &[&Path]) -> Option<Self> {
        let folders = trusted_folders(search, projects);
        let found = folders.iter().find_map(|folder| {
            let program = folder.join(name);
            let real = program.canonicalize().ok()?;
            (is_program(&real) && !is_within(&real, projects)).then_some(program)
        })?;
        Some(Self {
            path: found,
            search_path: std::env::join_paths(&folders).unwrap_or_default(),
        })
    }
}

/// Returns a search path without directories in which agents or all users can put programs: relative ones, those in
/// these projects, and world-writable ones.
pub fn trusted_search_path(search: &OsStr, projects: &[&Path]) -> OsString {
    std::env::join_paths(trusted_folders(search, projects)).unwrap_or_default()
}

/// Returns the program that the system would run for a name in a working directory, as an absolute path.
pub fn program_on_path(name: &OsStr, search: &OsStr, cwd: &Path) -> Option<PathBuf> {
    let folders = std::env::split_paths(search);
    let mut paths = folders.map(|folder| cwd.join(folder).join(name));
    paths.find(|path| is_program(path))
}

fn trusted_folders(search: &OsStr, projects: &[&Path]) -> Vec<PathBuf> {
    let folders = std::env::split_paths(search);
    folders
        .filter(|folder| is_trusted(folder, projects))
        .collect()
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
    fn program_is_not_run_from_directories_that_agents_can_write() {
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
        assert_eq!(TrustedProgram::find("git", &search, &[&project]), None);
        assert_eq!(trusted_search_path(&search, &[&project]), "");
        let search = std::env::join_paths(bad.iter().chain([&own])).unwrap();
        let found = TrustedProgram::find("git", &search, &[&project]).unwrap();
        assert_eq!(found.path, own.join("git"));
        assert_eq!(found.search_path, own.into_os_string());
    }

    #[test]
    fn program_that_would_run_is_found_like_the_system_finds_it() {
        let place = tempfile::tempdir().unwrap();
        let (own, here) = (place.path().join("own"), place.path().join("here"));
        put_git(&own);
        let find = |folders: &[&Path]| {
            let search = std::env::join_paths(folders).unwrap();
            program_on_path("git".as_ref(), &search, &here)
        };
        assert_eq!(find(&[Path::new("."), &own]), Some(own.join("git")));
        put_git(&here);
        assert_eq!(find(&[Path::new(""), &own]), Some(here.join("git")));
        assert_eq!(find(&[&own, Path::new(".")]), Some(own.join("git")));
    }
}

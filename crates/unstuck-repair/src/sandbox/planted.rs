//! What appears where unstuck or git would obey it.
//!
//! What is there when a repair begins is read-only for it. What is not there cannot be made read-only without making
//! it, so it is looked for afterwards and removed.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;

use crate::beneath;

use super::scratch;

/// The paths of a project that nothing was at when the repair began.
#[derive(Debug)]
pub struct Absent(Vec<PathBuf>);

impl Absent {
    /// Looks which of these are not there. Below a folder that is not there itself, everything may be made.
    pub fn look<'k>(project: &impl AsFd, kept: impl Iterator<Item = &'k PathBuf>) -> Self {
        let absent = kept.filter(|path| {
            folder_of(project, path).is_ok_and(|folder| !exists(&folder, name_of(path)))
        });
        Self(absent.cloned().collect())
    }

    /// Removes what appeared since, and tells it.
    pub fn clear(&self, project: &impl AsFd) -> Vec<PathBuf> {
        let appeared = self.0.iter().filter(|path| {
            let Ok(folder) = folder_of(project, path) else {
                return false;
            };
            exists(&folder, name_of(path))
        });
        let appeared: Vec<_> = appeared.cloned().collect();
        for path in &appeared {
            if let Ok(folder) = folder_of(project, path) {
                // It is told in any case; trust in a configuration is by its content.
                let _ = scratch::remove_below(&folder, name_of(path));
            }
        }
        appeared
    }
}

/// The folder that something is in; one that a symlink leads to is not it.
fn folder_of(project: &impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let named = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let (handle, without_links) =
        beneath::open(project.as_fd(), named).map_err(io::Error::other)?;
    match without_links == folder {
        true => Ok(handle),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or(path.as_os_str())
}

fn exists(folder: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::guarded;
    use rustix::fs::{Mode, OFlags};
    use std::fs;

    fn handle(path: &Path) -> OwnedFd {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    #[test]
    fn what_was_there_stays_and_what_was_planted_goes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join("unstuck.toml"), "a").unwrap();
        let project = handle(root);
        let absent = Absent::look(&project, guarded().iter());
        fs::write(root.join("unstuck.json"), "{}").unwrap();
        fs::create_dir(root.join(".git/hooks")).unwrap();
        fs::write(root.join(".git/hooks/pre-commit"), "#!/bin/sh").unwrap();
        fs::write(root.join("package.json"), "{}").unwrap();
        let planted = absent.clear(&project);
        assert_eq!(
            planted,
            [Path::new("unstuck.json"), Path::new(".git/hooks")]
        );
        assert!(root.join("unstuck.toml").exists() && root.join("package.json").exists());
        assert!(!root.join("unstuck.json").exists() && !root.join(".git/hooks").exists());
    }

    #[test]
    fn a_repository_that_is_made_may_have_what_belongs_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let project = handle(folder.path());
        let absent = Absent::look(&project, guarded().iter());
        fs::create_dir_all(folder.path().join(".git/hooks")).unwrap();
        fs::write(folder.path().join(".git/config"), "").unwrap();
        assert_eq!(absent.clear(&project), Vec::<PathBuf>::new());
        assert!(folder.path().join(".git/config").exists());
    }

    #[test]
    fn what_a_symlink_leads_to_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [root, other] = ["root", "other"].map(|name| folder.path().join(name));
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("config"), "kept").unwrap();
        let project = handle(&root);
        let absent = Absent::look(&project, guarded().iter());
        fs::remove_dir(root.join(".git")).unwrap();
        std::os::unix::fs::symlink(&other, root.join(".git")).unwrap();
        absent.clear(&project);
        assert!(other.join("config").exists());
    }
}

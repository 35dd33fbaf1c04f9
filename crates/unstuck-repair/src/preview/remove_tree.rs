//! Removes a directory tree of any depth without leaving it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Stat, renameat, unlinkat};
use rustix::io::{Errno, Result};

use super::nofollow_access::{list_names, open_dir, set_mode, stat_entry};

/// Owner permissions needed to empty a directory.
const OWNER_ACCESS_MODE: u32 = 0o700;

/// Removes an entry; a missing one is fine.
pub(crate) fn remove_tree(parent: impl AsFd, name: &[u8]) -> Result<()> {
    match stat_entry(&parent, name)? {
        None => Ok(()),
        Some(data) if is_dir(&data) => remove_dir(&parent, name),
        Some(_) => ignore_missing(unlinkat(&parent, name, AtFlags::empty())),
    }
}

fn is_dir(data: &Stat) -> bool {
    FileType::from_raw_mode(data.st_mode) == FileType::Directory
}

fn remove_dir(parent: impl AsFd, name: &[u8]) -> Result<()> {
    let top = open_writable_dir(&parent, name)?;
    let mut flat = FlatteningRemoval { top, moved: 0 };
    let mut left = flat.remove_top_files()?;
    while let Some(inner) = left.pop() {
        flat.empty_subdir(&inner, &mut left)?;
        ignore_missing(unlinkat(&flat.top, inner.as_slice(), AtFlags::REMOVEDIR))?;
    }
    ignore_missing(unlinkat(&parent, name, AtFlags::REMOVEDIR))
}

/// A removal that moves inner directories up before emptying them, so that depth costs no handles.
struct FlatteningRemoval {
    top: OwnedFd,
    moved: u64,
}

impl FlatteningRemoval {
    /// Removes the files of the top directory, and returns its subdirectories.
    fn remove_top_files(&mut self) -> Result<Vec<Vec<u8>>> {
        let mut inner = Vec::new();
        for name in list_names(&self.top)? {
            match stat_entry(&self.top, &name)? {
                Some(data) if is_dir(&data) => inner.push(name),
                _ => ignore_missing(unlinkat(&self.top, name.as_slice(), AtFlags::empty()))?,
            }
        }
        Ok(inner)
    }

    /// Removes the files of a subdirectory, and moves its subdirectories up.
    fn empty_subdir(&mut self, name: &[u8], left: &mut Vec<Vec<u8>>) -> Result<()> {
        let inner = open_writable_dir(&self.top, name)?;
        for name in list_names(&inner)? {
            match stat_entry(&inner, &name)? {
                Some(data) if is_dir(&data) => left.push(self.move_up(&inner, &name)?),
                _ => ignore_missing(unlinkat(&inner, name.as_slice(), AtFlags::empty()))?,
            }
        }
        Ok(())
    }

    fn move_up(&mut self, from: &OwnedFd, name: &[u8]) -> Result<Vec<u8>> {
        // A directory that is not writable cannot be moved either.
        set_mode(from, name, OWNER_ACCESS_MODE)?;
        loop {
            self.moved += 1;
            let to = format!("removed-{}", self.moved).into_bytes();
            if stat_entry(&self.top, &to)?.is_none() {
                renameat(from, name, &self.top, to.as_slice())?;
                return Ok(to);
            }
        }
    }
}

/// Opens a directory after making it writable for its owner.
fn open_writable_dir(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    set_mode(&parent, name, OWNER_ACCESS_MODE)?;
    open_dir(&parent, name)
}

fn ignore_missing(done: Result<()>) -> Result<()> {
    match done {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{Mode, mkdirat};

    use super::*;

    #[test]
    fn link_targets_are_not_removed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        fs::create_dir_all(path.join("kept/inner")).unwrap();
        fs::create_dir_all(path.join("tree/a/b")).unwrap();
        symlink(path.join("kept"), path.join("tree/a/link")).unwrap();
        symlink(path.join("kept"), path.join("link")).unwrap();
        let parent = fs::File::open(path).unwrap();
        remove_tree(&parent, b"tree").unwrap();
        remove_tree(&parent, b"link").unwrap();
        remove_tree(&parent, b"nothing").unwrap();
        assert!(path.join("kept/inner").exists());
        assert!(!path.join("tree").exists() && path.join("link").symlink_metadata().is_err());
    }

    #[test]
    fn a_very_deep_unreadable_tree_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let parent = fs::File::open(place.path()).unwrap();
        let mut at = OwnedFd::from(parent.try_clone().unwrap());
        for _ in 0..1200 {
            mkdirat(&at, "deep", Mode::RWXU).unwrap();
            at = open_dir(&at, b"deep").unwrap();
        }
        let closed = place.path().join("deep/closed");
        fs::create_dir_all(closed.join("inner")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&parent, b"deep").unwrap();
        assert!(!place.path().join("deep").exists());
    }
}

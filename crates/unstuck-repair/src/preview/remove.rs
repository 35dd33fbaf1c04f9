//! Removing a whole tree, however deep it is, without ever leaving it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Stat, renameat, unlinkat};
use rustix::io::{Errno, Result};

use super::handle::{folder, look, names, set_mode};

/// What an owner needs to empty a folder.
const OPEN: u32 = 0o700;

/// Removes what has this name; nothing there is fine.
pub(crate) fn remove(parent: impl AsFd, name: &[u8]) -> Result<()> {
    match look(&parent, name)? {
        None => Ok(()),
        Some(data) if is_folder(&data) => remove_folder(&parent, name),
        Some(_) => gone(unlinkat(&parent, name, AtFlags::empty())),
    }
}

fn is_folder(data: &Stat) -> bool {
    FileType::from_raw_mode(data.st_mode) == FileType::Directory
}

fn remove_folder(parent: impl AsFd, name: &[u8]) -> Result<()> {
    let top = opened(&parent, name)?;
    let mut flat = Flat { top, moved: 0 };
    let mut left = flat.clear_top()?;
    while let Some(inner) = left.pop() {
        flat.empty(&inner, &mut left)?;
        gone(unlinkat(&flat.top, inner.as_slice(), AtFlags::REMOVEDIR))?;
    }
    gone(unlinkat(&parent, name, AtFlags::REMOVEDIR))
}

/// A folder whose inner folders are moved up into it before they are emptied, so that no depth costs handles.
struct Flat {
    top: OwnedFd,
    moved: u64,
}

impl Flat {
    /// Removes all files of the folder itself, and tells its inner folders.
    fn clear_top(&mut self) -> Result<Vec<Vec<u8>>> {
        let mut inner = Vec::new();
        for name in names(&self.top)? {
            match look(&self.top, &name)? {
                Some(data) if is_folder(&data) => inner.push(name),
                _ => gone(unlinkat(&self.top, name.as_slice(), AtFlags::empty()))?,
            }
        }
        Ok(inner)
    }

    /// Removes all files of an inner folder, and moves its folders up.
    fn empty(&mut self, name: &[u8], left: &mut Vec<Vec<u8>>) -> Result<()> {
        let inner = opened(&self.top, name)?;
        for name in names(&inner)? {
            match look(&inner, &name)? {
                Some(data) if is_folder(&data) => left.push(self.raise(&inner, &name)?),
                _ => gone(unlinkat(&inner, name.as_slice(), AtFlags::empty()))?,
            }
        }
        Ok(())
    }

    fn raise(&mut self, from: &OwnedFd, name: &[u8]) -> Result<Vec<u8>> {
        // Whoever may not write into a folder may not move it either.
        set_mode(from, name, OPEN)?;
        loop {
            self.moved += 1;
            let to = format!("removed-{}", self.moved).into_bytes();
            if look(&self.top, &to)?.is_none() {
                renameat(from, name, &self.top, to.as_slice())?;
                return Ok(to);
            }
        }
    }
}

/// A folder that its owner can empty.
fn opened(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    set_mode(&parent, name, OPEN)?;
    folder(&parent, name)
}

fn gone(done: Result<()>) -> Result<()> {
    match done {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{Mode, mkdirat};

    use super::*;

    #[test]
    fn what_lies_behind_a_link_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        fs::create_dir_all(path.join("kept/inner")).unwrap();
        fs::create_dir_all(path.join("tree/a/b")).unwrap();
        symlink(path.join("kept"), path.join("tree/a/link")).unwrap();
        symlink(path.join("kept"), path.join("link")).unwrap();
        let parent = fs::File::open(path).unwrap();
        remove(&parent, b"tree").unwrap();
        remove(&parent, b"link").unwrap();
        remove(&parent, b"nothing").unwrap();
        assert!(path.join("kept/inner").exists());
        assert!(!path.join("tree").exists() && path.join("link").symlink_metadata().is_err());
    }

    #[test]
    fn a_tree_that_is_deeper_than_handles_go_and_closed_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let parent = fs::File::open(place.path()).unwrap();
        let mut at = OwnedFd::from(parent.try_clone().unwrap());
        for _ in 0..1200 {
            mkdirat(&at, "deep", Mode::RWXU).unwrap();
            at = folder(&at, b"deep").unwrap();
        }
        let closed = place.path().join("deep/closed");
        fs::create_dir_all(closed.join("inner")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        remove(&parent, b"deep").unwrap();
        assert!(!place.path().join("deep").exists());
    }
}

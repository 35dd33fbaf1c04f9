//! A private folder for what a repair leaves nowhere else: temporary files, and what it writes to the home folder.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

use super::wire::RunAs;

/// What is temporary.
pub(super) const TMP_DIR: &str = "tmp";
/// What was written to the home folder.
pub(super) const HOME_DIR: &str = "home";
/// What the kernel needs for that.
pub(super) const WORK_DIR: &str = "work";

/// Copies of the files that were checked.
pub(super) const WATCHED_DIR: &str = "checked";
/// What hides parts of the home folder.
#[cfg(target_os = "linux")]
pub(super) const MASK_DIR: &str = "mask";

/// How many names are tried.
const MAX_NAME_ATTEMPTS: u32 = 1000;

/// A private folder, removed with all that is in it when it is dropped.
#[derive(Debug)]
pub struct ScratchDir(PathBuf);

impl ScratchDir {
    /// Makes one below a folder for temporary files, for the user that will write to it.
    pub fn create(below: &Path, user: Option<RunAs>) -> io::Result<Self> {
        let scratch = Self(create_new_dir(below)?);
        for name in [TMP_DIR, HOME_DIR, WORK_DIR, WATCHED_DIR] {
            let path = scratch.0.join(name);
            DirBuilder::new().mode(0o700).create(&path)?;
            set_owner(&path, user)?;
        }
        // In the sandbox this is /tmp, as programs expect it to be.
        fs::set_permissions(scratch.0.join(TMP_DIR), Permissions::from_mode(0o1777))?;
        set_owner(&scratch.0, user)?;
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Keeps a copy of a checked file; returns the name under which the sandbox finds it.
    pub fn add_watched_copy(
        &self,
        number: usize,
        bytes: &[u8],
        is_program: bool,
    ) -> io::Result<String> {
        let name = number.to_string();
        let path = self.0.join(WATCHED_DIR).join(&name);
        fs::write(&path, bytes)?;
        let mode = if is_program { 0o555 } else { 0o444 };
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        Ok(name)
    }

    /// Where the command finds temporary files if it is not in mounts of its own.
    pub fn tmp_path(&self) -> PathBuf {
        self.0.join(TMP_DIR)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // What cannot be removed is in a folder for temporary files, where the system clears up.
        let _ = remove_dir(&self.0);
    }
}

fn create_new_dir(below: &Path) -> io::Result<PathBuf> {
    let own = std::process::id();
    for number in 0..MAX_NAME_ATTEMPTS {
        let path = below.join(format!("unstuck-repair-{own}-{number}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            // Without symlinks in its path, as mounts need it.
            Ok(()) => return fs::canonicalize(path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn set_owner(path: &Path, user: Option<RunAs>) -> io::Result<()> {
    match user {
        Some(user) => chown(path, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

/// Removes a folder and all that is in it, also what its owner made unreadable; no symlink is followed.
pub(super) fn remove_dir(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::openat(CWD, parent, flags, Mode::empty())?;
    remove_below(&parent, name)
}

/// The same for something in a folder that is held by a handle; what is not there is fine.
pub(super) fn remove_below(parent: &impl AsFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(rustix::io::Errno::ISDIR | rustix::io::Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let folder = open_dir(parent, name)?;
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            remove_below(&folder, name)?;
        }
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// A folder of ours may have been made unreadable even for us; the kernel leaves such ones, too.
fn open_dir(parent: &impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(parent, name, flags, Mode::empty());
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if is_folder && Mode::from_raw_mode(stat.st_mode) & Mode::RWXU != Mode::RWXU {
        // It is in a private folder, and nobody is left who could put a symlink there.
        rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
    }
    Ok(open()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_of_it_is_left_and_nothing_beside_it_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("beside");
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("kept"), "").unwrap();
        let scratch = ScratchDir::create(folder.path(), None).unwrap();
        let inner = scratch.tmp_path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), "").unwrap();
        symlink(&beside, inner.join("link")).unwrap();
        fs::set_permissions(&inner, Permissions::from_mode(0o000)).unwrap();
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
        assert!(beside.join("kept").exists());
    }

    #[test]
    fn two_do_not_share_a_folder_and_nobody_else_may_look() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| ScratchDir::create(folder.path(), None).unwrap());
        assert_ne!(one.path(), other.path());
        let mode = fs::metadata(one.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}

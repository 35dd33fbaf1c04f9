//! A private directory for temporary files and for a repair's writes to the home directory.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

use super::wire::RunAs;

/// Directory of temporary files.
pub(super) const TMP_DIR: &str = "tmp";
/// Directory of the writes to the home directory.
pub(super) const HOME_DIR: &str = "home";
/// Overlay work directory of the home directory.
pub(super) const WORK_DIR: &str = "work";

/// Directory of the copies of checked files.
pub(super) const WATCHED_DIR: &str = "checked";
/// Directory of the layer that hides parts of the home directory.
#[cfg(target_os = "linux")]
pub(super) const MASK_DIR: &str = "mask";

/// Maximum attempts to find a free name.
const MAX_NAME_ATTEMPTS: u32 = 1000;

/// A private directory, removed with its contents on drop.
#[derive(Debug)]
pub struct ScratchDir(PathBuf);

impl ScratchDir {
    /// Creates a directory below a temporary directory, for the user that will write to it.
    pub fn create(below: &Path, user: Option<RunAs>) -> io::Result<Self> {
        let scratch = Self(create_new_dir(below)?);
        for name in [TMP_DIR, HOME_DIR, WORK_DIR, WATCHED_DIR] {
            let path = scratch.0.join(name);
            DirBuilder::new().mode(0o700).create(&path)?;
            set_owner(&path, user)?;
        }
        // In the sandbox this is /tmp, as programs expect.
        fs::set_permissions(scratch.0.join(TMP_DIR), Permissions::from_mode(0o1777))?;
        set_owner(&scratch.0, user)?;
        Ok(scratch)
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Stores a copy of a checked file; returns the name under which the sandbox finds it.
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

    /// Returns the directory of temporary files for a command without its own mounts.
    pub fn tmp_path(&self) -> PathBuf {
        self.0.join(TMP_DIR)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // Leftovers are in a temporary directory, which the system cleans up.
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
            // Without symlinks in its path, as mounts require.
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

/// Removes a directory and its contents, even if its owner made it unreadable; no symlink is followed.
pub(super) fn remove_dir(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::openat(CWD, parent, flags, Mode::empty())?;
    remove_below(&parent, name)
}

/// Removes an entry of an open directory; a missing entry is fine.
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

/// Opens a directory that may be unreadable even for its owner; the kernel leaves such ones, too.
fn open_dir(parent: &impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(parent, name, flags, Mode::empty());
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if is_folder && Mode::from_raw_mode(stat.st_mode) & Mode::RWXU != Mode::RWXU {
        // It is in a private directory, and no process is left that could put a symlink there.
        rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
    }
    Ok(open()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn scratch_dir_is_removed_completely_and_nothing_else() {
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
    fn scratch_dirs_are_distinct_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| ScratchDir::create(folder.path(), None).unwrap());
        assert_ne!(one.path(), other.path());
        let mode = fs::metadata(one.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
}

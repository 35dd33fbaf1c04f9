//! A private directory for temporary files and for a repair's writes to the home directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid};

use crate::preview::nofollow_access;

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

const DIR_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// A private directory, removed with its contents on drop.
///
/// The user that it belongs to can rename everything in it, and may be another one than ours, so it is written by
/// handle.
#[derive(Debug)]
pub struct ScratchDir {
    path: PathBuf,
    /// Handle of the directory of the copies.
    watched: OwnedFd,
}

impl ScratchDir {
    /// Creates a directory below a temporary directory, for the user that will write to it.
    pub fn create(below: &Path, user: Option<RunAs>) -> io::Result<Self> {
        let (path, handle) = create_new_dir(below)?;
        let filled = fill_dir(&handle, user);
        if filled.is_err() {
            // The error of the first failure is the one to report.
            let _ = remove_dir(&path);
        }
        Ok(Self {
            path,
            watched: filled?,
        })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a copy of a checked file; returns the name under which the sandbox finds it.
    pub fn add_watched_copy(
        &self,
        number: usize,
        bytes: &[u8],
        is_program: bool,
    ) -> io::Result<String> {
        let name = number.to_string();
        let flags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL);
        let flags = flags.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
        let made = rustix::fs::openat(&self.watched, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(made);
        file.write_all(bytes)?;
        let mode = if is_program { 0o555 } else { 0o444 };
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        Ok(name)
    }

    /// Returns the directory of temporary files for a command without its own mounts.
    pub fn tmp_path(&self) -> PathBuf {
        self.path.join(TMP_DIR)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // Leftovers are in a temporary directory, which the system cleans up.
        let _ = remove_dir(&self.path);
    }
}

fn create_new_dir(below: &Path) -> io::Result<(PathBuf, OwnedFd)> {
    // Without symlinks in its path, as mounts require.
    let below = below.canonicalize()?;
    let parent = rustix::fs::openat(CWD, &below, DIR_FLAGS, Mode::empty())?;
    let own = std::process::id();
    for number in 0..MAX_NAME_ATTEMPTS {
        let name = format!("unstuck-repair-{own}-{number}");
        match create_dir_at(&parent, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|handle| (below.join(name), handle)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Creates the subdirectories; returns the handle of the one for copies.
fn fill_dir(scratch: &OwnedFd, user: Option<RunAs>) -> io::Result<OwnedFd> {
    let create = |name| {
        let created = create_dir_at(scratch, name)?;
        set_owner(&created, user)?;
        Ok::<_, io::Error>(created)
    };
    let temporary = create(TMP_DIR)?;
    // In the sandbox this is /tmp, as programs expect.
    rustix::fs::fchmod(&temporary, Mode::from_raw_mode(0o1777))?;
    create(HOME_DIR)?;
    create(WORK_DIR)?;
    let watched = create(WATCHED_DIR)?;
    set_owner(scratch, user)?;
    Ok(watched)
}

/// Creates a directory that must not exist yet, accessible only to its owner.
fn create_dir_at(parent: &impl AsFd, name: &str) -> io::Result<OwnedFd> {
    rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
    let flags = DIR_FLAGS.union(OFlags::NOFOLLOW);
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

fn set_owner(folder: &OwnedFd, user: Option<RunAs>) -> io::Result<()> {
    if let Some(user) = user {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        rustix::fs::fchown(folder, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// Removes a directory and its contents, even if its owner made it unreadable; no symlink is followed.
pub(super) fn remove_dir(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = rustix::fs::openat(CWD, parent, DIR_FLAGS, Mode::empty())?;
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
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if is_folder && Mode::from_raw_mode(stat.st_mode) & Mode::RWXU != Mode::RWXU {
        // By handle: a process of the directory's owner may have put a symlink there since.
        nofollow_access::set_mode(parent, name.as_bytes(), 0o700)?;
    }
    let flags = DIR_FLAGS.union(OFlags::NOFOLLOW);
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

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

    /// An agent of the user that owns the directory puts links where unstuck, as root, is about to write.
    #[test]
    fn copies_are_never_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("1"), "kept").unwrap();
        let scratch = ScratchDir::create(folder.path(), None).unwrap();
        let watched = scratch.path().join(WATCHED_DIR);
        symlink(victim.join("1"), watched.join("0")).unwrap();
        assert!(scratch.add_watched_copy(0, b"owned", false).is_err());
        let moved = folder.path().join("moved");
        fs::rename(&watched, &moved).unwrap();
        symlink(&victim, &watched).unwrap();
        assert_eq!(scratch.add_watched_copy(1, b"copy", true).unwrap(), "1");
        assert_eq!(fs::read(moved.join("1")).unwrap(), b"copy");
        assert_eq!(fs::read(victim.join("1")).unwrap(), b"kept");
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

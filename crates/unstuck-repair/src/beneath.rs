//! Opens folders below a handle, so that nothing on the way can lead out: no `..`, no link, no swap while it is looked at.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// What is wrong with a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FolderProblem {
    /// It names nothing.
    #[error("is empty")]
    Empty,
    /// It is not there.
    #[error("does not exist")]
    Missing,
    /// It is something else.
    #[error("is not a folder")]
    NotAFolder,
    /// It leads out of the project.
    #[error("leads out of the project")]
    Outside,
    /// Its links lead to each other.
    #[error("is a loop of links")]
    Loops,
    /// It was moved or replaced while it was looked at.
    #[error("was moved while it was looked at")]
    Moved,
    /// The machine refuses it.
    #[error("cannot be opened ({0})")]
    Refused(Errno),
}

/// Which folder it is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device.
    pub dev: u64,
    /// The inode.
    pub ino: u64,
}

/// How folders are opened: to be entered and looked at by identity, not to be read.
pub(crate) const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(PATH_ONLY);

/// How files are opened.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

#[cfg(any(target_os = "linux", target_os = "android"))]
const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PATH_ONLY: OFlags = OFlags::RDONLY;

/// Opens a folder, and tells the way to it without links.
pub(crate) fn open(root: BorrowedFd<'_>, path: &Path) -> Result<(OwnedFd, PathBuf), FolderProblem> {
    found(root, path).map(|(handle, way)| (handle.into(), way))
}

fn found(root: BorrowedFd<'_>, path: &Path) -> Result<(File, PathBuf), FolderProblem> {
    #[cfg(target_os = "linux")]
    match kernel::open(root, path) {
        // A kernel before 5.6, or a container that does not let the call through.
        Err(FolderProblem::Refused(Errno::NOSYS | Errno::PERM)) => {}
        done => return done,
    }
    part_by_part(root, path)
}

/// Opens a file to be read, by a way without links; without waiting for a pipe that nobody writes to.
pub(crate) fn open_file(folder: BorrowedFd<'_>, path: &Path) -> Result<File, Errno> {
    #[cfg(target_os = "linux")]
    match kernel::open_file(folder, path) {
        Err(Errno::NOSYS | Errno::PERM) => {}
        done => return done,
    }
    let (Some(way), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::ISDIR);
    };
    let way = part_by_part(folder, way).map_err(|problem| match problem {
        FolderProblem::Missing => Errno::NOENT,
        _ => Errno::LOOP,
    });
    let (way, _) = way?;
    openat(way, name, FILE.union(OFlags::NOFOLLOW), Mode::empty()).map(File::from)
}

/// Opens one part after the other and follows no link at all: stricter, and needs nothing of the machine.
fn part_by_part(root: BorrowedFd<'_>, path: &Path) -> Result<(File, PathBuf), FolderProblem> {
    let mut handle = folder(root, Path::new("."), OFlags::empty())?;
    let mut way = PathBuf::new();
    for part in path.components() {
        let part = match part {
            Component::CurDir => continue,
            Component::Normal(part) => part,
            _ => return Err(FolderProblem::Outside),
        };
        handle = folder(handle.as_fd(), part.as_ref(), OFlags::NOFOLLOW)?;
        way.push(part);
    }
    Ok((handle, way))
}

fn folder(at: BorrowedFd<'_>, path: &Path, more: OFlags) -> Result<File, FolderProblem> {
    let opened = openat(at, path, FOLDER.union(more), Mode::empty());
    opened.map(File::from).map_err(problem)
}

pub(crate) fn identity(handle: &File) -> std::io::Result<Identity> {
    let found = handle.metadata()?;
    Ok(Identity {
        dev: found.dev(),
        ino: found.ino(),
    })
}

fn problem(error: Errno) -> FolderProblem {
    match error {
        Errno::NOENT => FolderProblem::Missing,
        Errno::NOTDIR => FolderProblem::NotAFolder,
        Errno::XDEV => FolderProblem::Outside,
        Errno::LOOP => FolderProblem::Loops,
        Errno::AGAIN => FolderProblem::Moved,
        other => FolderProblem::Refused(other),
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    //! The kernel's own rules: `openat2` resolves the path and never leaves the root.

    use std::ffi::OsString;
    use std::fs::File;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
    use std::os::unix::ffi::OsStringExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2, readlink};
    use rustix::io::Errno;

    use super::{FILE, FOLDER, FolderProblem, identity, problem};

    /// A path with `..` cannot be resolved while somebody renames folders; then it is tried again, so often.
    const TRIES: usize = 32;

    pub(super) fn open(
        root: BorrowedFd<'_>,
        path: &Path,
    ) -> Result<(File, PathBuf), FolderProblem> {
        let stays = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
        let handle = resolve(root, path, stays).map_err(problem)?;
        let way = way(root, handle.as_fd())?;
        // The way is what is shown and looked at for protected folders, so it has to lead to this very folder.
        let there = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
        let named = if way.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &way
        };
        let found = resolve(root, named, there).map_err(problem)?;
        if is_same(&found, &handle) {
            Ok((handle, way))
        } else {
            Err(FolderProblem::Moved)
        }
    }

    pub(super) fn open_file(folder: BorrowedFd<'_>, path: &Path) -> Result<File, Errno> {
        let how = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
        resolved(folder, path, FILE.union(OFlags::NOFOLLOW), how)
    }

    fn is_same(a: &File, b: &File) -> bool {
        matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
    }

    fn resolve(root: BorrowedFd<'_>, path: &Path, how: ResolveFlags) -> Result<File, Errno> {
        resolved(root, path, FOLDER, how)
    }

    fn resolved(
        root: BorrowedFd<'_>,
        path: &Path,
        flags: OFlags,
        how: ResolveFlags,
    ) -> Result<File, Errno> {
        let mut done = Err(Errno::AGAIN);
        for _ in 0..TRIES {
            done = openat2(root, path, flags, Mode::empty(), how);
            if !matches!(done, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        done.map(File::from)
    }

    /// The way from the root to a folder, as the kernel names both at this moment.
    fn way(root: BorrowedFd<'_>, folder: BorrowedFd<'_>) -> Result<PathBuf, FolderProblem> {
        // Without /proc the kernel names nothing; then it is done part by part.
        let unnamed = FolderProblem::Refused(Errno::NOSYS);
        let (root, folder) = (
            name(root).map_err(|_| unnamed)?,
            name(folder).map_err(|_| unnamed)?,
        );
        let way = folder
            .strip_prefix(root)
            .map_err(|_| FolderProblem::Moved)?;
        Ok(way.to_owned())
    }

    fn name(handle: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
        let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
        let name = readlink(link, Vec::new())?;
        Ok(PathBuf::from(OsString::from_vec(name.into_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;

    /// S3-48: without the kernel's help it is stricter, never laxer.
    #[test]
    fn part_by_part_no_link_is_followed_and_nothing_leads_out() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a/b")).unwrap();
        fs::write(place.path().join("file"), "x").unwrap();
        symlink("a", place.path().join("link")).unwrap();
        symlink("..", place.path().join("up")).unwrap();
        let root = openat(CWD, place.path(), FOLDER, Mode::empty()).unwrap();
        let open = |path: &str| part_by_part(root.as_fd(), Path::new(path)).map(|(_, way)| way);
        assert_eq!(open("."), Ok(PathBuf::new()));
        assert_eq!(open("./a//b/"), Ok(PathBuf::from("a/b")));
        for out in ["..", "a/..", "a/../a", "/", "/etc"] {
            assert_eq!(open(out), Err(FolderProblem::Outside), "{out}");
        }
        for link in ["link", "link/b", "up"] {
            assert!(open(link).is_err(), "{link}");
        }
        assert_eq!(open("missing"), Err(FolderProblem::Missing));
        assert_eq!(open("file"), Err(FolderProblem::NotAFolder));
    }
}

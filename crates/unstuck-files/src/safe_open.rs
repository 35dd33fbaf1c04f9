//! Opens files and folders below a handle, so that nothing on the way can lead out: no `..`, no link, no swap while it is looked at.
//!
//! The kernel's own rules (`openat2`) decide where it has them; otherwise one component is opened after the other.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::error::FileProblem;

/// What is wrong with a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DirOpenError {
    /// It names nothing.
    #[error("is empty")]
    Empty,
    /// It is not there.
    #[error("does not exist")]
    Missing,
    /// It is something else.
    #[error("is not a folder")]
    NotADirectory,
    /// It leads out of the project.
    #[error("leads out of the project")]
    OutsideRoot,
    /// Its links lead to each other.
    #[error("is a loop of links")]
    SymlinkLoop,
    /// It was moved or replaced while it was looked at.
    #[error("was moved while it was looked at")]
    Moved,
    /// The machine refuses it.
    #[error("cannot be opened ({0})")]
    System(Errno),
}

/// Which folder it is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The device.
    pub dev: u64,
    /// The inode.
    pub ino: u64,
}

/// How folders are opened: to be entered and looked at by identity, not to be read.
pub const DIR_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(PATH_ONLY);

/// How files are opened to be read: without waiting for a FIFO that nobody writes to.
pub const READ_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Which symbolic links are followed below a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// None at all.
    Deny,
    /// Those that stay below the handle, where the kernel can tell; otherwise none.
    Within,
}

/// Who resolves a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathResolver {
    /// The kernel in one call, where it can; otherwise as [`Self::Stepwise`].
    Kernel,
    /// One component after the other, as on systems without `openat2`.
    Stepwise,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PATH_ONLY: OFlags = OFlags::RDONLY;

/// Opens a folder, and tells the way to it without links.
pub fn open_dir(root: BorrowedFd<'_>, path: &Path) -> Result<(OwnedFd, PathBuf), DirOpenError> {
    open_dir_file(root, path).map(|(handle, way)| (handle.into(), way))
}

fn open_dir_file(root: BorrowedFd<'_>, path: &Path) -> Result<(File, PathBuf), DirOpenError> {
    #[cfg(target_os = "linux")]
    match kernel::open(root, path) {
        // A kernel before 5.6, or a container that does not let the call through.
        Err(DirOpenError::System(Errno::NOSYS | Errno::PERM)) => {}
        done => return done,
    }
    open_stepwise(root, path)
}

/// Opens a file to be read, by a way without links; without waiting for a FIFO that nobody writes to.
pub fn open_file(folder: BorrowedFd<'_>, path: &Path) -> Result<File, Errno> {
    open_at(
        PathResolver::Kernel,
        folder,
        path,
        READ_FLAGS,
        Mode::empty(),
        SymlinkPolicy::Deny,
    )
}

/// Opens whatever a path names below a folder; the last component is never a link, unless links within are followed.
pub fn open_at(
    resolver: PathResolver,
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    links: SymlinkPolicy,
) -> Result<File, Errno> {
    #[cfg(target_os = "linux")]
    if resolver == PathResolver::Kernel {
        match kernel::open_at(folder, path, flags, mode, links) {
            // A kernel before 5.6, or a container that does not let the call through.
            Err(Errno::NOSYS | Errno::PERM) => {}
            done => return done,
        }
    }
    // Without the kernel's help no link is followed at all.
    let _ = (resolver, links);
    let Some(name) = path.file_name() else {
        let is_here = path.components().all(|part| part == Component::CurDir);
        return if is_here {
            openat(folder, ".", flags, mode).map(File::from)
        } else {
            Err(Errno::XDEV)
        };
    };
    let way = path.parent().unwrap_or(Path::new(""));
    let (way, _) = open_stepwise(folder, way).map_err(Errno::from)?;
    openat(way, name, flags.union(OFlags::NOFOLLOW), mode).map(File::from)
}

/// Refuses everything but a regular file, by its handle.
pub fn require_regular(file: impl AsFd) -> Result<(), FileProblem> {
    let data = fstat(file)?;
    match kind_name(FileType::from_raw_mode(data.st_mode)) {
        None => Ok(()),
        Some(name) => Err(FileProblem::NotAFile(name)),
    }
}

/// What people call a kind of file; none for a regular one.
fn kind_name(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile => None,
        FileType::Directory => Some("a folder"),
        FileType::Symlink => Some("a symbolic link"),
        FileType::Fifo => Some("a FIFO"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        FileType::Unknown => Some("something unknown"),
    }
}

/// Opens one part after the other and follows no link at all: stricter, and needs nothing of the machine.
fn open_stepwise(root: BorrowedFd<'_>, path: &Path) -> Result<(File, PathBuf), DirOpenError> {
    let mut handle = open_dir_component(root, Path::new("."), OFlags::empty())?;
    let mut way = PathBuf::new();
    for part in path.components() {
        let part = match part {
            Component::CurDir => continue,
            Component::Normal(part) => part,
            _ => return Err(DirOpenError::OutsideRoot),
        };
        handle = open_dir_component(handle.as_fd(), part.as_ref(), OFlags::NOFOLLOW)?;
        way.push(part);
    }
    Ok((handle, way))
}

fn open_dir_component(at: BorrowedFd<'_>, path: &Path, more: OFlags) -> Result<File, DirOpenError> {
    let opened = openat(at, path, DIR_FLAGS.union(more), Mode::empty());
    opened.map(File::from).map_err(dir_open_error)
}

/// Tells which folder a handle is on.
pub fn file_identity(handle: &File) -> std::io::Result<FileIdentity> {
    let found = handle.metadata()?;
    Ok(FileIdentity {
        dev: found.dev(),
        ino: found.ino(),
    })
}

impl From<DirOpenError> for Errno {
    fn from(problem: DirOpenError) -> Self {
        match problem {
            DirOpenError::Empty | DirOpenError::Missing => Self::NOENT,
            DirOpenError::NotADirectory => Self::NOTDIR,
            DirOpenError::OutsideRoot => Self::XDEV,
            DirOpenError::SymlinkLoop => Self::LOOP,
            DirOpenError::Moved => Self::AGAIN,
            DirOpenError::System(error) => error,
        }
    }
}

fn dir_open_error(error: Errno) -> DirOpenError {
    match error {
        Errno::NOENT => DirOpenError::Missing,
        Errno::NOTDIR => DirOpenError::NotADirectory,
        Errno::XDEV => DirOpenError::OutsideRoot,
        Errno::LOOP => DirOpenError::SymlinkLoop,
        Errno::AGAIN => DirOpenError::Moved,
        other => DirOpenError::System(other),
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

    use super::{DIR_FLAGS, DirOpenError, SymlinkPolicy, dir_open_error, file_identity};

    /// A path with `..` cannot be resolved while somebody renames folders; then it is tried again, so often.
    const MAX_RESOLVE_ATTEMPTS: usize = 32;

    pub(super) fn open(root: BorrowedFd<'_>, path: &Path) -> Result<(File, PathBuf), DirOpenError> {
        let stays = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
        let handle = resolve(root, path, stays).map_err(dir_open_error)?;
        let way = path_from_root(root, handle.as_fd())?;
        // The way is what is shown and looked at for protected folders, so it has to lead to this very folder.
        let there = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
        let named = if way.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &way
        };
        let found = resolve(root, named, there).map_err(dir_open_error)?;
        if is_same(&found, &handle) {
            Ok((handle, way))
        } else {
            Err(DirOpenError::Moved)
        }
    }

    pub(super) fn open_at(
        folder: BorrowedFd<'_>,
        path: &Path,
        flags: OFlags,
        mode: Mode,
        links: SymlinkPolicy,
    ) -> Result<File, Errno> {
        let (flags, how) = match links {
            SymlinkPolicy::Deny => (
                flags.union(OFlags::NOFOLLOW),
                ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS),
            ),
            SymlinkPolicy::Within => (
                flags,
                ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS),
            ),
        };
        openat2_retrying(folder, path, flags, mode, how)
    }

    fn is_same(a: &File, b: &File) -> bool {
        matches!((file_identity(a), file_identity(b)), (Ok(a), Ok(b)) if a == b)
    }

    fn resolve(root: BorrowedFd<'_>, path: &Path, how: ResolveFlags) -> Result<File, Errno> {
        openat2_retrying(root, path, DIR_FLAGS, Mode::empty(), how)
    }

    fn openat2_retrying(
        root: BorrowedFd<'_>,
        path: &Path,
        flags: OFlags,
        mode: Mode,
        how: ResolveFlags,
    ) -> Result<File, Errno> {
        let mut done = Err(Errno::AGAIN);
        for _ in 0..MAX_RESOLVE_ATTEMPTS {
            done = openat2(root, path, flags, mode, how);
            if !matches!(done, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        done.map(File::from)
    }

    /// The way from the root to a folder, as the kernel names both at this moment.
    fn path_from_root(
        root: BorrowedFd<'_>,
        folder: BorrowedFd<'_>,
    ) -> Result<PathBuf, DirOpenError> {
        // Without /proc the kernel names nothing; then it is done part by part.
        let unnamed = DirOpenError::System(Errno::NOSYS);
        let (root, folder) = (
            handle_path(root).map_err(|_| unnamed)?,
            handle_path(folder).map_err(|_| unnamed)?,
        );
        let way = folder.strip_prefix(root).map_err(|_| DirOpenError::Moved)?;
        Ok(way.to_owned())
    }

    fn handle_path(handle: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
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
        let root = openat(CWD, place.path(), DIR_FLAGS, Mode::empty()).unwrap();
        let open = |path: &str| open_stepwise(root.as_fd(), Path::new(path)).map(|(_, way)| way);
        assert_eq!(open("."), Ok(PathBuf::new()));
        assert_eq!(open("./a//b/"), Ok(PathBuf::from("a/b")));
        for out in ["..", "a/..", "a/../a", "/", "/etc"] {
            assert_eq!(open(out), Err(DirOpenError::OutsideRoot), "{out}");
        }
        for link in ["link", "link/b", "up"] {
            assert!(open(link).is_err(), "{link}");
        }
        assert_eq!(open("missing"), Err(DirOpenError::Missing));
        assert_eq!(open("file"), Err(DirOpenError::NotADirectory));
    }
}

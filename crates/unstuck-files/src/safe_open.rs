//! Opens files and directories below a handle so that no `..`, link or concurrent rename can lead out.
//!
//! Uses the kernel's rules (`openat2`) where available; otherwise opens one component after the other.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::error::FileErrorKind;

/// An error opening a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DirOpenError {
    /// The path is empty.
    #[error("is empty")]
    Empty,
    /// The directory does not exist.
    #[error("does not exist")]
    Missing,
    /// The path is not a directory.
    #[error("is not a directory")]
    NotADirectory,
    /// The path leads out of the project.
    #[error("is outside the project")]
    OutsideRoot,
    /// The path contains a loop of symbolic links.
    #[error("contains a loop of symbolic links")]
    SymlinkLoop,
    /// The directory was moved or replaced while it was being opened.
    #[error("was moved while it was being opened")]
    Moved,
    /// Any other system error.
    #[error("cannot be opened ({0})")]
    System(Errno),
}

/// The identity of a directory, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}

/// Flags for opening a directory for traversal and identification, not for reading.
pub const DIR_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(PATH_ONLY);

/// Flags for opening files for reading without blocking on a FIFO.
pub const READ_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The symbolic links that may be followed below a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// Follow none.
    Deny,
    /// Follow links that stay below the handle, if the kernel can enforce that; otherwise none.
    Within,
}

/// The implementation that resolves a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathResolutionMethod {
    /// One kernel call (`openat2`) if available; otherwise like [`Self::Stepwise`].
    Kernel,
    /// One component after the other, as on systems without `openat2`.
    Stepwise,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PATH_ONLY: OFlags = OFlags::RDONLY;

/// Opens a directory and returns its resolved path without links.
pub fn open_dir(root: BorrowedFd<'_>, path: &Path) -> Result<(OwnedFd, PathBuf), DirOpenError> {
    open_dir_file(root, path).map(|(handle, way)| (handle.into(), way))
}

fn open_dir_file(root: BorrowedFd<'_>, path: &Path) -> Result<(File, PathBuf), DirOpenError> {
    #[cfg(target_os = "linux")]
    match kernel::open(root, path) {
        // A kernel before 5.6, or a container that blocks the call.
        Err(DirOpenError::System(Errno::NOSYS | Errno::PERM)) => {}
        done => return done,
    }
    open_stepwise(root, path)
}

/// Opens a file for reading through a path without links, and does not block on a FIFO.
pub fn open_file(folder: BorrowedFd<'_>, path: &Path) -> Result<File, Errno> {
    open_at(
        PathResolutionMethod::Kernel,
        folder,
        path,
        READ_FLAGS,
        Mode::empty(),
        SymlinkPolicy::Deny,
    )
}

/// Opens any entry below a directory; the last component must not be a link unless links within are followed.
pub fn open_at(
    resolver: PathResolutionMethod,
    folder: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    links: SymlinkPolicy,
) -> Result<File, Errno> {
    #[cfg(target_os = "linux")]
    if resolver == PathResolutionMethod::Kernel {
        match kernel::open_at(folder, path, flags, mode, links) {
            // A kernel before 5.6, or a container that blocks the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            done => return done,
        }
    }
    // Without kernel support, no link is followed at all.
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

/// Returns an error unless the handle is a regular file.
pub fn require_regular(file: impl AsFd) -> Result<(), FileErrorKind> {
    let data = fstat(file)?;
    match kind_name(FileType::from_raw_mode(data.st_mode)) {
        None => Ok(()),
        Some(name) => Err(FileErrorKind::NotAFile(name)),
    }
}

/// Returns the display name of a file type, or `None` for a regular file.
fn kind_name(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile => None,
        FileType::Directory => Some("directory"),
        FileType::Symlink => Some("symbolic link"),
        FileType::Fifo => Some("FIFO"),
        FileType::Socket => Some("socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("device"),
        FileType::Unknown => Some("unknown type"),
    }
}

/// Opens one component after the other and follows no link: stricter, and needs no kernel support.
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

/// Returns the identity of an open directory.
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
    //! Path resolution by `openat2`, which never leaves the root.

    use std::ffi::OsString;
    use std::fs::File;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
    use std::os::unix::ffi::OsStringExt;
    use std::path::{Path, PathBuf};

    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2, readlink};
    use rustix::io::Errno;

    use super::{DIR_FLAGS, DirOpenError, SymlinkPolicy, dir_open_error, file_identity};

    /// Maximum attempts for a path with `..`, which cannot be resolved while directories are being renamed.
    const MAX_RESOLVE_ATTEMPTS: usize = 32;

    pub(super) fn open(root: BorrowedFd<'_>, path: &Path) -> Result<(File, PathBuf), DirOpenError> {
        let stays = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
        let handle = resolve(root, path, stays).map_err(dir_open_error)?;
        let way = path_from_root(root, handle.as_fd())?;
        // The path is displayed and checked for protected directories, so it must lead to this very directory.
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

    /// Returns the path from the root to a directory, as the kernel names both at this moment.
    fn path_from_root(
        root: BorrowedFd<'_>,
        folder: BorrowedFd<'_>,
    ) -> Result<PathBuf, DirOpenError> {
        // Without /proc the kernel gives no names; resolve step by step.
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
#[expect(clippy::disallowed_methods, reason = "a test makes files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;

    /// S3-48: without kernel support, resolution is stricter, never more permissive.
    #[test]
    fn stepwise_resolution_follows_no_link_and_stays_below_the_root() {
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

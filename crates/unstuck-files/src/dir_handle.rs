//! A directory handle, and all file operations below it.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, linkat, mkdirat, openat, readlinkat, renameat,
    statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::error::{FileError, FileErrorKind};
use crate::safe_open::{
    DIR_FLAGS, FileIdentity, PathResolutionMethod, READ_FLAGS, SymlinkPolicy, file_identity,
    open_at, require_regular,
};
use crate::user_named_file::read_bounded;

/// Maximum attempts when a name keeps being taken by another process.
const MAX_ATTEMPTS: usize = 16;

/// Flags for opening files for appending.
const APPEND_FLAGS: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Flags for creating temporary files.
const CREATE_FLAGS: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A handle on an open directory. Every path is resolved relative to it and cannot lead out of it.
///
/// No symbolic link is followed, only regular files are opened, no call blocks on another process, and no existing file
/// is overwritten in place: a new file replaces it.
#[derive(Debug)]
pub struct DirHandle {
    handle: File,
    access: CreationAccess,
    resolver: PathResolutionMethod,
}

/// Access mode of files created below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreationAccess {
    /// Permissions as the umask sets them.
    Shared,
    /// Accessible by the owner only.
    Private,
}

/// A directory entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Name of the entry.
    pub name: OsString,
    /// Type of the entry.
    pub kind: EntryKind,
}

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, a device, a socket, or an unknown type.
    Other,
}

impl DirHandle {
    /// Opens a directory by its path. Links in the path are followed, so nobody else may be able to change the path.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let opened = openat(CWD, path, DIR_FLAGS, Mode::empty());
        let handle = opened.map_err(|error| FileError::new(path, error))?;
        Ok(Self::from_file(handle.into(), CreationAccess::Shared))
    }

    /// Opens a directory by a path that must not contain links.
    ///
    /// A resolved path (`canonicalize`) has no links; a link in it now means that somebody has added it since.
    pub fn open_resolved(path: &Path) -> Result<Self, FileError> {
        let below = path.strip_prefix("/").unwrap_or(path);
        let start = if path.is_absolute() {
            Path::new("/")
        } else {
            Path::new(".")
        };
        Self::open(start)?
            .open_dir(below)
            .map_err(|error| FileError::new(path, error.problem))
    }

    /// Opens a directory that only the user can access, and creates it and its parents if missing.
    #[expect(
        clippy::disallowed_methods,
        reason = "a directory of unstuck itself, which no agent can replace"
    )]
    pub fn open_private(path: &Path) -> Result<Self, FileError> {
        match Self::open(path) {
            Err(error) if error.is_missing() => {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
                made.map_err(|error| FileError::new(path, error))?;
                Self::open(path)
            }
            opened => opened,
        }
        .map(|opened| Self {
            access: CreationAccess::Private,
            ..opened
        })
    }

    fn from_file(handle: File, access: CreationAccess) -> Self {
        Self {
            handle,
            access,
            resolver: PathResolutionMethod::Kernel,
        }
    }

    /// Sets the path resolver.
    #[must_use]
    pub fn with_resolver(self, resolver: PathResolutionMethod) -> Self {
        Self { resolver, ..self }
    }

    /// Returns a second handle on the same directory.
    pub fn try_clone(&self) -> Result<Self, FileError> {
        let handle = self.handle.try_clone();
        let handle = handle.map_err(|error| FileError::new(Path::new("."), error))?;
        Ok(self.with_same_settings(handle))
    }

    fn with_same_settings(&self, handle: File) -> Self {
        Self {
            handle,
            access: self.access,
            resolver: self.resolver,
        }
    }

    /// Returns the device and inode of the directory.
    pub fn identity(&self) -> Result<FileIdentity, FileError> {
        file_identity(&self.handle).map_err(|error| FileError::new(Path::new("."), error))
    }

    fn open_as(&self, path: &Path, flags: OFlags, links: SymlinkPolicy) -> Result<File, FileError> {
        let handle = self.handle.as_fd();
        let opened = open_at(self.resolver, handle, path, flags, Mode::empty(), links);
        opened.map_err(|error| FileError::new(path, error))
    }

    /// Opens a directory below this one.
    pub fn open_dir(&self, path: &Path) -> Result<Self, FileError> {
        let path = or_current_dir(path);
        self.open_as(path, DIR_FLAGS, SymlinkPolicy::Deny)
            .map(|handle| self.with_same_settings(handle))
    }

    /// Opens a directory below this one, and creates it and its parents if missing.
    pub fn create_dirs(&self, path: &Path) -> Result<Self, FileError> {
        match self.open_dir(path) {
            Err(error) if error.is_missing() => {}
            done => return done,
        }
        let failed = |problem: Errno| FileError::new(path, problem);
        let mut handle: Option<File> = None;
        for part in path.components() {
            let name = match part {
                Component::CurDir => continue,
                Component::Normal(name) => name,
                _ => return Err(failed(Errno::XDEV)),
            };
            let at = handle.as_ref().unwrap_or(&self.handle);
            match mkdirat(at, name, self.dir_mode()) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            let next = openat(at, name, DIR_FLAGS.union(OFlags::NOFOLLOW), Mode::empty());
            handle = Some(next.map_err(failed)?.into());
        }
        match handle {
            Some(handle) => Ok(self.with_same_settings(handle)),
            None => self.try_clone(),
        }
    }

    fn dir_mode(&self) -> Mode {
        Mode::from_raw_mode(match self.access {
            CreationAccess::Shared => 0o777,
            CreationAccess::Private => 0o700,
        })
    }

    fn file_mode(&self) -> Mode {
        Mode::from_raw_mode(match self.access {
            CreationAccess::Shared => 0o666,
            CreationAccess::Private => 0o600,
        })
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &Path) -> Result<File, FileError> {
        self.open_regular(path, READ_FLAGS, SymlinkPolicy::Deny)
    }

    /// Opens a regular file for reading; links are followed as long as they stay below this directory.
    pub fn open_file_within(&self, path: &Path) -> Result<File, FileError> {
        self.open_regular(path, READ_FLAGS, SymlinkPolicy::Within)
    }

    fn open_regular(
        &self,
        path: &Path,
        flags: OFlags,
        links: SymlinkPolicy,
    ) -> Result<File, FileError> {
        let file = self.open_as(path, flags, links)?;
        require_regular(&file).map_err(|problem| FileError::new(path, problem))?;
        Ok(file)
    }

    /// Reads a file of at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
        let mut file = self.open_file(path)?;
        read_bounded(&mut file, limit).map_err(|problem| FileError::new(path, problem))
    }

    /// Reads a file of at most `limit` bytes; links are followed as long as they stay below this directory.
    pub fn read_within(&self, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
        let mut file = self.open_file_within(path)?;
        read_bounded(&mut file, limit).map_err(|problem| FileError::new(path, problem))
    }

    /// Reads a text file of at most `limit` bytes.
    pub fn read_text(&self, path: &Path, limit: u64) -> Result<String, FileError> {
        let text = String::from_utf8(self.read(path, limit)?);
        text.map_err(|_| FileError::new(path, FileErrorKind::NotText))
    }

    /// Reads the last bytes of a file; the flag is true if there are more before them.
    pub fn read_tail(&self, path: &Path, most: u64) -> Result<(Vec<u8>, bool), FileError> {
        let failed = |error: std::io::Error| FileError::new(path, error);
        let mut file = self.open_file(path)?;
        let start = file.metadata().map_err(failed)?.len().saturating_sub(most);
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(failed)?;
        Ok((bytes, start > 0))
    }

    /// Returns the metadata of an entry without following a link.
    pub fn metadata(&self, path: &Path) -> Result<Stat, FileError> {
        self.with_parent_dir(path, |folder, name| {
            Ok(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
        })
    }

    /// Returns the permission bits of a regular file, or `None` if there is no such file.
    pub fn permission_bits(&self, path: &Path) -> Option<u32> {
        let data = self.metadata(path).ok()?;
        let is_file = FileType::from_raw_mode(data.st_mode).is_file();
        let bits = u32::try_from(u64::from(data.st_mode) & 0o777).ok();
        bits.filter(|_| is_file)
    }

    /// Returns the type of an entry, or `None` if it is missing or unreadable.
    pub fn kind(&self, path: &Path) -> Option<EntryKind> {
        let data = self.metadata(path).ok()?;
        Some(EntryKind::from_file_type(FileType::from_raw_mode(
            data.st_mode,
        )))
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, path: &Path) -> Result<OsString, FileError> {
        self.with_parent_dir(path, |folder, name| {
            let target = readlinkat(folder, name, Vec::new())?;
            Ok(OsString::from_vec(target.into_bytes()))
        })
    }

    /// Lists a directory below this one, unordered.
    pub fn entries(&self, path: &Path) -> Result<Vec<DirEntry>, FileError> {
        self.first_entries(path, usize::MAX)
    }

    /// Lists at most `limit` entries of a directory below this one, unordered.
    pub fn first_entries(&self, path: &Path, limit: usize) -> Result<Vec<DirEntry>, FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = self.open_as(or_current_dir(path), flags, SymlinkPolicy::Deny)?;
        let failed = |error: Errno| FileError::new(path, error);
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder).map_err(failed)? {
            if entries.len() >= limit {
                break;
            }
            let entry = entry.map_err(failed)?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                let kind = EntryKind::from_file_type(entry.file_type());
                entries.push(DirEntry { name, kind });
            }
        }
        Ok(entries)
    }

    /// Runs a closure with the parent directory and the file name of a path.
    fn with_parent_dir<T>(
        &self,
        path: &Path,
        done: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Result<T, FileErrorKind>,
    ) -> Result<T, FileError> {
        let failed = |problem: FileErrorKind| FileError::new(path, problem);
        let Some(name) = path.file_name() else {
            return Err(failed(FileErrorKind::NotAFile("directory")));
        };
        match path.parent().filter(|above| !above.as_os_str().is_empty()) {
            None => done(self.handle.as_fd(), name).map_err(failed),
            Some(above) => {
                let above = self
                    .open_as(above, DIR_FLAGS, SymlinkPolicy::Deny)
                    .map_err(|error| failed(error.problem))?;
                done(above.as_fd(), name).map_err(failed)
            }
        }
    }

    /// Replaces a file atomically: readers see either all of the new contents or the old ones.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        self.replace_with(path, bytes, &|bits| bits, Durability::Default)
    }

    /// Replaces a file atomically and durably (survives a power loss). `permissions` maps the default permission bits.
    pub fn replace_durably(
        &self,
        path: &Path,
        bytes: &[u8],
        permissions: &dyn Fn(u32) -> u32,
    ) -> Result<(), FileError> {
        self.replace_with(path, bytes, permissions, Durability::Synced)
    }

    /// Works like [`Self::replace`]. `permissions` maps the default permission bits.
    pub fn replace_with_permissions(
        &self,
        path: &Path,
        bytes: &[u8],
        permissions: &dyn Fn(u32) -> u32,
    ) -> Result<(), FileError> {
        self.replace_with(path, bytes, permissions, Durability::Default)
    }

    fn replace_with(
        &self,
        path: &Path,
        bytes: &[u8],
        permissions: &dyn Fn(u32) -> u32,
        durability: Durability,
    ) -> Result<(), FileError> {
        self.with_parent_dir(path, |folder, name| {
            let (mut file, beside) = self.create_temporary_in(folder)?;
            let mut write = || -> Result<(), FileErrorKind> {
                file.write_all(bytes)?;
                let usual = file.metadata()?.mode() & 0o777;
                let bits = permissions(usual) & 0o777;
                if bits != usual {
                    file.set_permissions(Permissions::from_mode(bits))?;
                }
                if durability == Durability::Synced {
                    file.sync_all()?;
                }
                Ok(renameat(folder, &beside, folder, name)?)
            };
            let written = write();
            if written.is_err() {
                // The temporary file is no longer needed.
                let _ = unlinkat(folder, &beside, AtFlags::empty());
            }
            written
        })
    }

    /// Creates a file under a random name.
    fn create_temporary_in(
        &self,
        folder: BorrowedFd<'_>,
    ) -> Result<(File, OsString), FileErrorKind> {
        for _ in 0..MAX_ATTEMPTS {
            let name = random_name()?;
            match openat(folder, &name, CREATE_FLAGS, self.file_mode()) {
                Ok(file) => return Ok((file.into(), name)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(FileErrorKind::Unstable)
    }

    /// Creates a file under a random name and returns its path.
    pub fn create_temporary(&self) -> Result<(File, PathBuf), FileError> {
        let made = self.create_temporary_in(self.handle.as_fd());
        let (file, name) = made.map_err(|problem| FileError::new(Path::new("."), problem))?;
        Ok((file, name.into()))
    }

    /// Creates a new, empty file. An existing file only loses the name; its contents stay for open handles.
    pub fn create(&self, path: &Path) -> Result<File, FileError> {
        self.with_parent_dir(path, |folder, name| {
            for _ in 0..MAX_ATTEMPTS {
                match openat(folder, name, CREATE_FLAGS, self.file_mode()) {
                    Ok(file) => return Ok(file.into()),
                    Err(Errno::EXIST) => match unlinkat(folder, name, AtFlags::empty()) {
                        Ok(()) | Err(Errno::NOENT) => {}
                        Err(error) => return Err(error.into()),
                    },
                    Err(error) => return Err(error.into()),
                }
            }
            Err(FileErrorKind::Unstable)
        })
    }

    /// Creates a new file; fails with `AlreadyExists` if the name is taken.
    pub fn create_new(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        self.with_parent_dir(path, |folder, name| {
            let made = openat(folder, name, CREATE_FLAGS, self.file_mode())?;
            Ok(File::from(made).write_all(bytes)?)
        })
    }

    /// Opens a file for appending, and creates it if missing. A file with a second hard link is refused.
    ///
    /// Only for directories that nobody else can write to: a hard link that exists briefly can be missed. Elsewhere,
    /// [`Self::create`] a file and keep the handle.
    pub fn append(&self, path: &Path) -> Result<File, FileError> {
        self.with_parent_dir(path, |folder, name| {
            let made = APPEND_FLAGS.union(OFlags::CREATE).union(OFlags::EXCL);
            let present = APPEND_FLAGS.union(OFlags::NOFOLLOW);
            for _ in 0..MAX_ATTEMPTS {
                let file = match openat(folder, name, present, Mode::empty()) {
                    Ok(file) => File::from(file),
                    Err(Errno::NOENT) => match openat(folder, name, made, self.file_mode()) {
                        Ok(file) => return Ok(file.into()),
                        Err(Errno::EXIST) => continue,
                        Err(error) => return Err(error.into()),
                    },
                    Err(error) => return Err(error.into()),
                };
                require_regular(&file)?;
                let names = file.metadata()?.nlink();
                return if names > 1 {
                    Err(FileErrorKind::MultipleHardLinks(names))
                } else {
                    Ok(file)
                };
            }
            Err(FileErrorKind::Unstable)
        })
    }

    /// Creates a hard link to a file, replacing whatever had that name.
    pub fn link(&self, file: &Path, to: &Path) -> Result<(), FileError> {
        self.with_parent_dir(file, |from, name| {
            let linked = self.with_parent_dir(to, |folder, new| {
                let beside = random_name()?;
                linkat(from, name, folder, &beside, AtFlags::empty())?;
                let renamed = renameat(folder, &beside, folder, new);
                // If both are names of the same file, the rename leaves the temporary name behind.
                let _ = unlinkat(folder, &beside, AtFlags::empty());
                Ok(renamed?)
            });
            linked.map_err(|error| error.problem)
        })
    }

    /// Creates a symbolic link atomically, replacing whatever had the name. The link is never followed.
    pub fn symlink(&self, target: &OsStr, path: &Path) -> Result<(), FileError> {
        self.with_parent_dir(path, |folder, name| {
            let beside = random_name()?;
            symlinkat(target, folder, &beside)?;
            let renamed = renameat(folder, &beside, folder, name);
            if renamed.is_err() {
                let _ = unlinkat(folder, &beside, AtFlags::empty());
            }
            Ok(renamed?)
        })
    }

    /// Renames a file below this directory, replacing whatever had the new name.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        self.with_parent_dir(from, |above, old| {
            let renamed =
                self.with_parent_dir(to, |folder, new| Ok(renameat(above, old, folder, new)?));
            renamed.map_err(|error| error.problem)
        })
    }

    /// Removes a name that is not a directory; a link is removed, not its target. Succeeds if the name does not exist.
    pub fn remove_file(&self, path: &Path) -> Result<(), FileError> {
        let removed = self.with_parent_dir(path, |folder, name| {
            Ok(unlinkat(folder, name, AtFlags::empty())?)
        });
        match removed {
            Err(error) if error.is_missing() => Ok(()),
            done => done,
        }
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, path: &Path) -> Result<(), FileError> {
        self.with_parent_dir(path, |folder, name| {
            Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
        })
    }

    /// Removes a directory tree; targets of links outside of it stay. Succeeds if it does not exist.
    pub fn remove_tree(&self, path: &Path) -> Result<(), FileError> {
        let folder = match self.open_dir(path) {
            Ok(folder) => folder,
            Err(error) if error.is_missing() => return Ok(()),
            // A link or a file.
            Err(_) => return self.remove_file(path),
        };
        for entry in folder.entries(Path::new("."))? {
            let name = Path::new(&entry.name);
            match entry.kind {
                EntryKind::Directory => folder.remove_tree(name)?,
                EntryKind::File | EntryKind::Symlink | EntryKind::Other => {
                    folder.remove_file(name)?
                }
            }
        }
        match self.remove_dir(path) {
            Err(error) if error.is_missing() => Ok(()),
            done => done,
        }
    }
}

/// Durability of a write: if a file has to survive a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    Default,
    Synced,
}

impl EntryKind {
    fn from_file_type(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            _ => Self::Other,
        }
    }
}

impl AsFd for DirHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

fn or_current_dir(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

/// Returns a random name, so that nobody can have created a link under it before.
fn random_name() -> Result<OsString, FileErrorKind> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| FileErrorKind::System(std::io::Error::other(error.to_string())))?;
    let number = u64::from_le_bytes(bytes);
    Ok(format!(".unstuck-{number:016x}.tmp").into())
}

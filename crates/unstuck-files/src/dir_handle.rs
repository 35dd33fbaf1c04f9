//! A directory that is held open, and all that is done with files below it.

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

use crate::error::{FileError, FileProblem};
use crate::named_file::read_bounded;
use crate::safe_open::{
    DIR_FLAGS, FileIdentity, PathResolver, READ_FLAGS, SymlinkPolicy, file_identity, open_at,
    require_regular,
};

/// How often a name that somebody takes again and again is tried.
const MAX_ATTEMPTS: usize = 16;

/// How files are opened to be appended to.
const APPEND_FLAGS: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// How files are made that nobody else has a name for yet.
const CREATE_FLAGS: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory that is held open. Every path is taken from it, and leads nowhere else.
///
/// No symbolic link is followed, only regular files are opened, no call waits for another process, and no existing file is ever
/// written over: a new one takes its name.
#[derive(Debug)]
pub struct DirHandle {
    handle: File,
    access: CreationAccess,
    resolver: PathResolver,
}

/// Who may read what is made below a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CreationAccess {
    /// Whoever the umask lets.
    Shared,
    /// Only its owner.
    Private,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, a device, a socket, or something that cannot be told.
    Other,
}

impl DirHandle {
    /// Opens a directory by its path. Links on the way to it are followed, so its path must be nobody else's to change.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let opened = openat(CWD, path, DIR_FLAGS, Mode::empty());
        let handle = opened.map_err(|error| FileError::new(path, error))?;
        Ok(Self::from_file(handle.into(), CreationAccess::Shared))
    }

    /// Opens a directory by its path, where no part of the path is a link.
    ///
    /// A path that was resolved before (`canonicalize`) has no links; if it has one now, somebody has put it there since.
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

    /// Opens a directory of the user's own, made with all above it if it is not there; only the user can look into what is made.
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
            resolver: PathResolver::Kernel,
        }
    }

    /// Resolves paths in another way from now on.
    #[must_use]
    pub fn with_resolver(self, resolver: PathResolver) -> Self {
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

    /// Which directory it is.
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

    /// Opens a directory below this one, made with all above it if it is not there.
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

    /// Opens a regular file to be read.
    pub fn open_file(&self, path: &Path) -> Result<File, FileError> {
        self.open_regular(path, READ_FLAGS, SymlinkPolicy::Deny)
    }

    /// Opens a regular file to be read; links are followed as long as they stay below this directory.
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

    /// Reads a file of text of at most `limit` bytes.
    pub fn read_text(&self, path: &Path, limit: u64) -> Result<String, FileError> {
        let text = String::from_utf8(self.read(path, limit)?);
        text.map_err(|_| FileError::new(path, FileProblem::NotText))
    }

    /// Reads the last bytes of a file, and tells whether there are more before them.
    pub fn read_tail(&self, path: &Path, most: u64) -> Result<(Vec<u8>, bool), FileError> {
        let failed = |error: std::io::Error| FileError::new(path, error);
        let mut file = self.open_file(path)?;
        let start = file.metadata().map_err(failed)?.len().saturating_sub(most);
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(failed)?;
        Ok((bytes, start > 0))
    }

    /// Looks at what is there, without following a link.
    pub fn metadata(&self, path: &Path) -> Result<Stat, FileError> {
        self.with_parent_dir(path, |folder, name| {
            Ok(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
        })
    }

    /// Returns the permission bits of whatever regular file is there; none if there is none.
    pub fn permission_bits(&self, path: &Path) -> Option<u32> {
        let data = self.metadata(path).ok()?;
        let is_file = FileType::from_raw_mode(data.st_mode).is_file();
        let bits = u32::try_from(u64::from(data.st_mode) & 0o777).ok();
        bits.filter(|_| is_file)
    }

    /// What is there: none if there is nothing, or nothing that can be looked at.
    pub fn kind(&self, path: &Path) -> Option<EntryKind> {
        let data = self.metadata(path).ok()?;
        Some(EntryKind::from_file_type(FileType::from_raw_mode(
            data.st_mode,
        )))
    }

    /// Reads where a symbolic link leads.
    pub fn read_link(&self, path: &Path) -> Result<OsString, FileError> {
        self.with_parent_dir(path, |folder, name| {
            let target = readlinkat(folder, name, Vec::new())?;
            Ok(OsString::from_vec(target.into_bytes()))
        })
    }

    /// Lists a directory below this one, in no order.
    pub fn entries(&self, path: &Path) -> Result<Vec<DirEntry>, FileError> {
        self.first_entries(path, usize::MAX)
    }

    /// Lists at most `limit` entries of a directory below this one, in no order.
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

    /// Does something with a name in its directory.
    fn with_parent_dir<T>(
        &self,
        path: &Path,
        done: impl FnOnce(BorrowedFd<'_>, &OsStr) -> Result<T, FileProblem>,
    ) -> Result<T, FileError> {
        let failed = |problem: FileProblem| FileError::new(path, problem);
        let Some(name) = path.file_name() else {
            return Err(failed(FileProblem::NotAFile("a folder")));
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

    /// Puts a new file in the place of whatever has the name, at once: whoever reads it sees all of it or what was there before.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        self.replace_with(path, bytes, &|bits| bits, Durability::Default)
    }

    /// Does the same, and it survives a power loss from then on. `permissions` makes its permission bits from the usual ones.
    pub fn replace_durably(
        &self,
        path: &Path,
        bytes: &[u8],
        permissions: &dyn Fn(u32) -> u32,
    ) -> Result<(), FileError> {
        self.replace_with(path, bytes, permissions, Durability::Synced)
    }

    /// Does the same as [`Self::replace`]. `permissions` makes its permission bits from the usual ones.
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
            let mut write = || -> Result<(), FileProblem> {
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
                // It is of no use to anybody.
                let _ = unlinkat(folder, &beside, AtFlags::empty());
            }
            written
        })
    }

    /// Makes a file under a name that nobody could foresee.
    fn create_temporary_in(&self, folder: BorrowedFd<'_>) -> Result<(File, OsString), FileProblem> {
        for _ in 0..MAX_ATTEMPTS {
            let name = random_name()?;
            match openat(folder, &name, CREATE_FLAGS, self.file_mode()) {
                Ok(file) => return Ok((file.into(), name)),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(FileProblem::Unstable)
    }

    /// Makes a file under a name that nobody could foresee, and tells its name.
    pub fn create_temporary(&self) -> Result<(File, PathBuf), FileError> {
        let made = self.create_temporary_in(self.handle.as_fd());
        let (file, name) = made.map_err(|problem| FileError::new(Path::new("."), problem))?;
        Ok((file, name.into()))
    }

    /// Begins a new, empty file; what had the name before loses it, and stays as it is.
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
            Err(FileProblem::Unstable)
        })
    }

    /// Begins a new file; an error of the kind `AlreadyExists` if something has the name.
    pub fn create_new(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        self.with_parent_dir(path, |folder, name| {
            let made = openat(folder, name, CREATE_FLAGS, self.file_mode())?;
            Ok(File::from(made).write_all(bytes)?)
        })
    }

    /// Opens a file to append to it; it is made if it is not there. One that has a second name is refused.
    ///
    /// Only for folders that nobody else can write: a second name that comes and goes can be missed. Elsewhere [`Self::create`] a file
    /// and keep the handle.
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
                    Err(FileProblem::MultipleHardLinks(names))
                } else {
                    Ok(file)
                };
            }
            Err(FileProblem::Unstable)
        })
    }

    /// Gives a file a second name, instead of whatever had that name.
    pub fn link(&self, file: &Path, to: &Path) -> Result<(), FileError> {
        self.with_parent_dir(file, |from, name| {
            let linked = self.with_parent_dir(to, |folder, new| {
                let beside = random_name()?;
                linkat(from, name, folder, &beside, AtFlags::empty())?;
                let renamed = renameat(folder, &beside, folder, new);
                // Two names of one file: then the new one is left over.
                let _ = unlinkat(folder, &beside, AtFlags::empty());
                Ok(renamed?)
            });
            linked.map_err(|error| error.problem)
        })
    }

    /// Puts a symbolic link in the place of whatever has the name. It is only made, never followed.
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

    /// Gives a file below this directory another name below it, instead of whatever had that name.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        self.with_parent_dir(from, |above, old| {
            let renamed =
                self.with_parent_dir(to, |folder, new| Ok(renameat(above, old, folder, new)?));
            renamed.map_err(|error| error.problem)
        })
    }

    /// Removes a name that is no directory's; a link is removed, not what it names. It is fine if there is none.
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

    /// Removes a directory with all that is in it; what links name outside of it stays. It is fine if there is none.
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

/// Whether a file has to survive a power loss.
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

/// A name that nobody can have put a link under before.
fn random_name() -> Result<OsString, FileProblem> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| FileProblem::System(std::io::Error::other(error.to_string())))?;
    let number = u64::from_le_bytes(bytes);
    Ok(format!(".unstuck-{number:016x}.tmp").into())
}

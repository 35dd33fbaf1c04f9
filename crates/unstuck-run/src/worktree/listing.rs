//! Lists the files of a work tree that belong in a snapshot: all tracked files, and all others that are not ignored.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::thread;

use rustix::fs::{AtFlags, FileType, Stat, statat};
use unstuck_files::{DirHandle, FileErrorKind};

use super::error::{WorktreeError, WorktreeIoContext};
use super::file_index::{GitFileMode, StatFingerprint};
use super::own_files::OwnFiles;
use super::path_quoting::{display_path, path_from_bytes};
use super::repository::Repository;
use super::snapshot::{SnapshotExcludedFile, SnapshotExclusionReason};

/// Largest untracked file that is stored, in bytes.
pub(super) const MAX_UNTRACKED_BYTES: u64 = 50 * 1024 * 1024;

/// An existing file.
pub(super) struct ListedFile {
    pub(super) mode: GitFileMode,
    pub(super) fingerprint: StatFingerprint,
}

/// The files in a work tree.
#[derive(Default)]
pub(super) struct WorktreeListing {
    pub(super) files: BTreeMap<Vec<u8>, ListedFile>,
    pub(super) left_out: Vec<SnapshotExcludedFile>,
}

/// A file as git lists it.
struct GitListedName<'a> {
    bytes: &'a [u8],
    tracked: bool,
}

/// Lists the work tree; the user's index is only read.
pub(super) fn list(
    repository: &Repository,
    own: &OwnFiles,
) -> Result<WorktreeListing, WorktreeError> {
    let args = [
        "ls-files",
        "-z",
        "-t",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let listed = repository
        .git_command("list the files")
        .args(args)
        .output()?;
    let lines = listed
        .split(|byte| *byte == 0)
        .filter_map(GitListedName::parse);
    let names: Vec<GitListedName<'_>> = lines.filter(|name| !own.contains(name.bytes)).collect();
    let root = &repository.root;
    let folder = DirHandle::open(root).context("open", root)?;
    let part = names.len().div_ceil(threads()).max(1);
    let parts = thread::scope(|scope| {
        let folder = &folder;
        let look = |part| scope.spawn(move || WorktreeListing::from_names(part, folder, root));
        let looking: Vec<_> = names.chunks(part).map(look).collect();
        let parts = looking.into_iter().map(thread::ScopedJoinHandle::join);
        parts.collect::<Result<Result<Vec<_>, _>, _>>()
    });
    let gone = || io::Error::other("a worker thread panicked");
    let mut listing = WorktreeListing::default();
    for part in parts.map_err(|_| gone()).context("inspect", root)?? {
        listing.files.extend(part.files);
        listing.left_out.extend(part.left_out);
    }
    listing.left_out.sort();
    listing.left_out.dedup();
    Ok(listing)
}

/// Returns the number of threads that read file metadata.
fn threads() -> usize {
    let most = thread::available_parallelism();
    most.map_or(1, NonZero::get).min(4)
}

impl<'a> GitListedName<'a> {
    /// Parses a tag and a path.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let (tag, [b' ', name @ ..]) = line.split_first()? else {
            return None;
        };
        Some(Self {
            // A nested repository is listed as a directory.
            bytes: name.strip_suffix(b"/").unwrap_or(name),
            tracked: *tag != b'?',
        })
    }
}

/// Determines which directories are real: files behind a link are not part of the work tree.
#[derive(Default)]
struct RealDirs<'a> {
    real: HashMap<&'a [u8], bool>,
}

impl<'a> RealDirs<'a> {
    /// Returns true if a path leads through real directories only.
    fn leads_through_dirs(&mut self, root: &DirHandle, name: &'a [u8]) -> bool {
        let Some(end) = name.iter().rposition(|byte| *byte == b'/') else {
            return true;
        };
        let folder = &name[..end];
        if let Some(real) = self.real.get(folder) {
            return *real;
        }
        let is_other = |data: Stat| FileType::from_raw_mode(data.st_mode) != FileType::Directory;
        // An inaccessible directory counts as real, so that its files are reported as unreadable and not as deleted.
        let real =
            self.leads_through_dirs(root, folder) && !stat_below(root, folder).is_ok_and(is_other);
        self.real.insert(folder, real);
        real
    }
}

fn stat_below(root: &DirHandle, name: &[u8]) -> io::Result<Stat> {
    Ok(statat(
        root,
        path_from_bytes(name),
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

impl WorktreeListing {
    fn from_names(
        names: &[GitListedName<'_>],
        folder: &DirHandle,
        root: &Path,
    ) -> Result<Self, WorktreeError> {
        let (mut listing, mut folders) = (Self::default(), RealDirs::default());
        for name in names {
            if folders.leads_through_dirs(folder, name.bytes) {
                listing.add(name, folder, root)?;
            }
        }
        Ok(listing)
    }

    fn add(
        &mut self,
        name: &GitListedName<'_>,
        folder: &DirHandle,
        root: &Path,
    ) -> Result<(), WorktreeError> {
        let data = match stat_below(folder, name.bytes) {
            Ok(data) => data,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.exclude(name.bytes, SnapshotExclusionReason::Unreadable);
                return Ok(());
            }
            Err(error) => {
                let place = root.join(path_from_bytes(name.bytes));
                return Err(WorktreeError::from_io_error("inspect", &place, error));
            }
        };
        let is_repository = || {
            root.join(path_from_bytes(name.bytes))
                .join(".git")
                .symlink_metadata()
                .is_ok()
        };
        let size = data.st_size.unsigned_abs();
        match GitFileMode::from_stat(&data) {
            // A directory may have replaced a file.
            None if is_repository() => {
                self.exclude(name.bytes, SnapshotExclusionReason::Repository)
            }
            None => {}
            Some(_) if !name.tracked && size > MAX_UNTRACKED_BYTES => {
                self.exclude(name.bytes, SnapshotExclusionReason::TooLarge);
            }
            Some(mode) => {
                let seen = StatFingerprint::from_stat(&data);
                self.files.insert(
                    name.bytes.to_vec(),
                    ListedFile {
                        mode,
                        fingerprint: seen,
                    },
                );
            }
        }
        Ok(())
    }

    fn exclude(&mut self, name: &[u8], because: SnapshotExclusionReason) {
        let path = display_path(name);
        self.left_out.push(SnapshotExcludedFile {
            path,
            reason: because,
        });
    }

    /// Excludes files that have to be read but are not readable.
    pub(super) fn exclude_unreadable(&mut self, root: &DirHandle, names: &mut Vec<Vec<u8>>) {
        names.retain(|name| {
            let is_link = self
                .files
                .get(name)
                .is_some_and(|found| found.mode == GitFileMode::Link);
            let opened = if is_link {
                return true;
            } else {
                root.open_file(path_from_bytes(name))
            };
            if let Err(error) = &opened {
                self.files.remove(name);
                // A name that is no longer a file has been deleted, too.
                let is_refused = matches!(error.problem, FileErrorKind::System(_));
                if is_refused {
                    self.exclude(name, SnapshotExclusionReason::Unreadable);
                }
            }
            opened.is_ok()
        });
        self.left_out.sort();
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

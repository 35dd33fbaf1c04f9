//! Which files of a work tree belong into a snapshot: all that are tracked, and all others that are not ignored.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, Metadata};
use std::io;

use super::error::WorktreeError;
use super::own::Own;
use super::paths::{path, shown};
use super::record::{Mode, Seen};
use super::repository::Repository;
use super::snapshot::{LeftOut, LeftOutBecause};

/// How large an untracked file may be to be kept, in bytes.
const LARGEST_UNTRACKED: u64 = 50 * 1024 * 1024;

/// A file that is there.
pub(super) struct Found {
    pub(super) mode: Mode,
    pub(super) seen: Seen,
}

/// What is in a work tree.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) files: BTreeMap<Vec<u8>, Found>,
    pub(super) left_out: Vec<LeftOut>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracked {
    Yes,
    No,
}

/// Looks at the work tree; the user's index is only read.
pub(super) fn list(repository: &Repository, own: &Own) -> Result<Listing, WorktreeError> {
    let args = [
        "ls-files",
        "-z",
        "-t",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let listed = repository.git("list the files").args(args).output()?;
    let (mut listing, mut folders) = (Listing::default(), Folders::default());
    for line in listed.split(|byte| *byte == 0) {
        let Some((tag, [b' ', name @ ..])) = line.split_first() else {
            continue;
        };
        let tracked = match tag {
            b'?' => Tracked::No,
            _ => Tracked::Yes,
        };
        // A repository of its own is listed as a folder.
        let name = name.strip_suffix(b"/").unwrap_or(name);
        if !own.holds(name) && folders.hold(repository, name) {
            listing.add(repository, name, tracked)?;
        }
    }
    listing.left_out.sort();
    listing.left_out.dedup();
    Ok(listing)
}

/// Which folders are really folders: what lies behind a link is not part of the work tree.
#[derive(Default)]
struct Folders {
    real: HashMap<Vec<u8>, bool>,
}

impl Folders {
    /// Whether a path leads through folders only.
    fn hold(&mut self, repository: &Repository, name: &[u8]) -> bool {
        let Some(end) = name.iter().rposition(|byte| *byte == b'/') else {
            return true;
        };
        let folder = &name[..end];
        if let Some(real) = self.real.get(folder) {
            return *real;
        }
        let data = || repository.root.join(path(folder)).symlink_metadata();
        let real = self.hold(repository, folder) && !data().is_ok_and(|data| !data.is_dir());
        self.real.insert(folder.to_vec(), real);
        real
    }
}

impl Listing {
    fn add(
        &mut self,
        repository: &Repository,
        name: &[u8],
        tracked: Tracked,
    ) -> Result<(), WorktreeError> {
        if self.files.contains_key(name) {
            return Ok(());
        }
        let place = repository.root.join(path(name));
        let data = match place.symlink_metadata() {
            Ok(data) => data,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.leave_out(name, LeftOutBecause::Unreadable);
                return Ok(());
            }
            Err(error) => return Err(WorktreeError::system("look at", &place, error)),
        };
        let too_large = tracked == Tracked::No && data.len() > LARGEST_UNTRACKED;
        match Mode::of(&data) {
            // A folder may also stand where a file was.
            None if place.join(".git").symlink_metadata().is_ok() => {
                self.leave_out(name, LeftOutBecause::Repository);
            }
            None => {}
            Some(Mode::Link) => self.keep(name, Mode::Link, &data),
            Some(_) if too_large => self.leave_out(name, LeftOutBecause::TooLarge),
            Some(mode) => self.keep(name, mode, &data),
        }
        Ok(())
    }

    fn keep(&mut self, name: &[u8], mode: Mode, data: &Metadata) {
        let seen = Seen::of(data);
        self.files.insert(name.to_vec(), Found { mode, seen });
    }

    fn leave_out(&mut self, name: &[u8], because: LeftOutBecause) {
        let path = shown(name);
        self.left_out.push(LeftOut { path, because });
    }

    /// Leaves out what has to be read but may not be.
    pub(super) fn leave_out_unreadable(
        &mut self,
        repository: &Repository,
        names: &mut Vec<Vec<u8>>,
    ) {
        names.retain(|name| {
            let is_link = self
                .files
                .get(name)
                .is_some_and(|found| found.mode == Mode::Link);
            let opened = match is_link {
                true => return true,
                false => File::open(repository.root.join(path(name))),
            };
            if let Err(error) = &opened {
                self.files.remove(name);
                if !is_absent(error) {
                    self.leave_out(name, LeftOutBecause::Unreadable);
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

//! Concurrent changes: a held handle stays what it was, and a file is read as one version or not at all.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{AtFlags, CWD, RenameFlags, renameat_with, statat};
use unstuck_core::command_policy::WorkingDirProtection as Standing;
use unstuck_repair::project_dir::FileIdentity;
use unstuck_repair::proposal_file::{ProposalFile, ProposalFileError};

use super::{Place, identity};

/// Minimum rounds of each race, and the maximum until both sides have won.
const ROUNDS: usize = 2000;
const MOST_ROUNDS: usize = 200_000;

/// Stops the other thread, even if an assertion failed in this one.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Wins and losses of a race.
#[derive(Debug, Default)]
struct Score {
    won: usize,
    lost: usize,
}

/// Repeats an action in another thread while the check runs often; the check returns true if it won.
fn race(mut again: impl FnMut() + Send, mut look: impl FnMut() -> bool) -> Score {
    let mut score = Score::default();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                again();
            }
        });
        let _over = Over(&over);
        for round in 0..MOST_ROUNDS {
            if look() {
                score.won += 1
            } else {
                score.lost += 1
            }
            if round >= ROUNDS && score.won > 0 && score.lost > 0 {
                break;
            }
        }
    });
    score
}

fn exchange(a: &Path, b: &Path) {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
}

/// S3-48, T10 of the threats: a directory that is swapped for a link out is refused or is still the directory.
#[test]
fn a_directory_swapped_for_a_link_never_leads_out() {
    let place = Place::new();
    let root = place.root();
    let (web, link) = (
        place.project().join("packages/web"),
        place.project().join("packages/swap"),
    );
    fs::create_dir(web.join("src")).unwrap();
    fs::create_dir_all(place.outside().join("src")).unwrap();
    symlink("../../outside", &link).unwrap();
    let inside = identity(&web.join("src"));
    let score = race(
        || exchange(&web, &link),
        || match root.open_working_dir(Some("packages/web/src")) {
            Err(_) => false,
            Ok(folder) => {
                let FileIdentity { dev, ino } = folder.identity();
                assert_eq!((dev, ino), inside);
                // Later commands run in that directory, wherever its name leads now.
                let found = statat(folder.as_fd(), ".", AtFlags::empty()).unwrap();
                assert_eq!((found.st_dev, found.st_ino), inside);
                true
            }
        },
    );
    assert!(score.won > 0 && score.lost > 0, "no race: {score:?}");
}

/// S3-48: a directory that is moved out of `.git` during the check, and back later, is not an ordinary one.
#[test]
fn a_directory_moved_out_of_git_meanwhile_is_still_protected() {
    let place = Place::new();
    let root = place.root();
    let (hooks, web) = (
        place.project().join(".git/hooks"),
        place.project().join("packages/web"),
    );
    fs::write(hooks.join("mark"), "").unwrap();
    race(
        || exchange(&hooks, &web),
        || match root.open_working_dir(Some(".git/hooks")) {
            Err(_) => false,
            Ok(folder) => {
                assert_eq!(
                    folder.directory_kind(),
                    &Standing::Protected(".git".to_owned())
                );
                true
            }
        },
    );
}

/// A file that is written to while it is read is refused; the bytes read are one whole version.
#[test]
fn a_file_being_written_is_read_whole_or_not_at_all() {
    let place = Place::new();
    let path = place.project().join("recovery.json");
    let versions = [vec![b'a'; 200_000], vec![b'b'; 200_000], vec![b'c'; 100]];
    fs::write(&path, &versions[0]).unwrap();
    let mut turn = 0;
    let score = race(
        || {
            turn += 1;
            fs::write(&path, &versions[turn % versions.len()]).unwrap();
        },
        || match ProposalFile::read(&path) {
            // `fs::write` truncates the file first: that is a version, too.
            Ok(read) => {
                let bytes = read.unwrap().bytes;
                assert!(bytes.is_empty() || bytes.iter().all(|byte| *byte == bytes[0]));
                assert!(
                    bytes.is_empty() || versions.iter().any(|version| version.len() >= bytes.len())
                );
                true
            }
            Err(error) => {
                assert!(matches!(error, ProposalFileError::Changed), "{error}");
                false
            }
        },
    );
    assert!(score.lost > 0, "no race: {score:?}");
}

/// T11 of the threats: replacing a file after it was read does not change the bytes read.
#[test]
fn replacing_the_file_does_not_change_the_proposal() {
    let place = Place::new();
    let (path, next) = (
        place.project().join("recovery.json"),
        place.project().join("next.json"),
    );
    let (old, new) = (vec![b'a'; 5000], vec![b'b'; 5000]);
    fs::write(&path, &old).unwrap();
    fs::write(&next, &new).unwrap();
    let known = [old, new].map(|bytes| ProposalFile::from_bytes(bytes).sha256);
    race(
        || exchange(&path, &next),
        // A new name is a change, too.
        || match ProposalFile::read(&path) {
            Err(_) => false,
            Ok(read) => {
                assert!(known.contains(&read.unwrap().sha256));
                true
            }
        },
    );
}

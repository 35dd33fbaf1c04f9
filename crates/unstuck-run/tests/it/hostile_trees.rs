//! Random trees of links, FIFOs, devices, sockets, huge files, directories and hard links wherever unstuck reads or
//! writes in a project, while another thread swaps them: nothing outside is changed or read, and nothing blocks.
//!
//! `UNSTUCK_CASES` is the number of cases; 2000 by default.

mod planting;
mod work;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use self::planting::{Racer, Tree};

/// Time limit of a case, whatever is planted.
const LIMIT: Duration = Duration::from_secs(20);

/// Contents of files that only their owner may read.
pub(crate) const CANARY: &str = "CANARY";

/// Contents of the owner's files to which the agent has made hard links: they may be read, but must never change.
pub(crate) const LINKED: &str = "LINKED";

/// A deterministic source of randomness.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn of(case: u64) -> Self {
        Self(case.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below another.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let drawn = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(drawn).unwrap() % most
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long to test is asked for by the environment"
)]
fn cases() -> u64 {
    let asked = std::env::var("UNSTUCK_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(2000)
}

/// Returns all files below a directory with their contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.insert(entry.path(), Vec::new());
            found.extend(contents(&entry.path()));
        } else {
            found.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    found
}

/// Runs one case: a tree, sometimes a thread that swaps parts of it, and some operations of unstuck.
fn try_case(place: &Path, outside: &Path, case: u64) {
    let mut chance = Chance::of(case);
    let tree = Tree::plant(&place.join(case.to_string()), outside, &mut chance);
    let racer = (chance.below(2) == 0).then(|| Racer::start(&tree, outside, case));
    work::work(&tree, outside, &mut chance);
    drop(racer);
    work::expect_nothing_leaked(&tree);
    tree.remove();
}

#[test]
fn planted_files_never_lead_out_of_the_project() {
    // In memory it takes a tenth of the time, on systems that have `/dev/shm`.
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let place = place.unwrap();
    let place = place.path().canonicalize().unwrap();
    let outside = place.join("outside");
    planting::make_outside(&outside);
    let before = contents(&outside);
    let (done, is_done) = mpsc::channel();
    let (worker_place, worker_outside) = (place.clone(), outside.clone());
    let worker = std::thread::spawn(move || {
        for case in 0..cases() {
            try_case(&worker_place, &worker_outside, case);
            if done.send(case).is_err() {
                return;
            }
        }
    });
    let mut next = 0;
    loop {
        match is_done.recv_timeout(LIMIT) {
            Ok(case) => {
                assert_eq!(
                    contents(&outside),
                    before,
                    "case {case} changed what is outside"
                );
                next = case + 1;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("case {next} took longer than {LIMIT:?}")
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    assert!(worker.join().is_ok(), "case {next} failed");
    assert_eq!(next, cases());
}

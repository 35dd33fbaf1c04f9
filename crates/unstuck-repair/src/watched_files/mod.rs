//! Checks that the files that decide what an approved command executes are unchanged since the owner accepted them.
//!
//! The rules are in [`unstuck_core::watched_files`]. This module reads the files: below the root of the project,
//! through no link that leads out of it, and in bounded amounts; an unreadable file is treated as changed. A file is
//! fine if it matches the last commit or the version accepted by `unstuck trust`.

mod check;
mod committed_files;
mod display_diff;
mod finder;
mod project_file_list;
mod read_entry;

pub use check::{UnacceptedWatchedFile, WatchedFile, WatchedFilesCheckResult, WatchedFilesChecker};
pub use committed_files::{LastCommitFiles, NoCommits};

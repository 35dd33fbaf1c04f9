//! Whether the files that decide what an approved command executes are what their owner last accepted.
//!
//! What counts is known to [`unstuck_core::watched_files`]. Here the files are read: below the root of the project, through
//! no link that leads out of it, and in bounded amounts; what cannot be read counts as changed. They are held against
//! the last commit and against what was accepted by `unstuck trust`; one of the two is enough.

mod check;
mod committed_files;
mod display_diff;
mod file_list;
mod finder;
mod read_entry;

pub use check::{ChangedWatchedFile, WatchedFile, WatchedFiles, WatchedFilesCheck};
pub use committed_files::{CommittedFiles, NoCommits};

//! How a repair went.

use std::path::PathBuf;
use std::time::Duration;

use unstuck_repair::sandbox::ConfinementReport;

use crate::process::ChildStatus;

/// How a repair went. Whether it helped is for the check that failed before to say.
#[derive(Debug, Clone)]
pub struct RepairOutcome {
    /// How the command ended.
    pub status: ChildStatus,
    /// From the start to the moment when nothing of it was left.
    pub duration: Duration,
    /// Whether it was stopped because it took too long.
    pub timed_out: bool,
    /// Whether it was stopped from outside.
    pub stopped: bool,
    /// The beginning and the end of what it wrote to standard output, without secrets.
    pub stdout: String,
    /// The beginning and the end of what it wrote to standard error, without secrets.
    pub stderr: String,
    /// What the sandbox really confined.
    pub confinement: ConfinementReport,
    /// The programs that plain commands were, as they were found.
    pub programs: Vec<PathBuf>,
    /// How many processes it left behind that had to be ended.
    pub leftover_count: u32,
    /// How many of those could not be ended.
    pub survivors: u32,
    /// What it made or changed where unstuck or git would obey it; that was removed or put back.
    pub removed_injections: Vec<PathBuf>,
    /// What it wrote to the home folder, which was a private copy and is gone; a few of it.
    pub discarded_writes: Vec<PathBuf>,
    /// What somebody else changed in git's folder meanwhile, so that what it changed of that was not kept.
    pub conflicting_git_changes: Vec<PathBuf>,
}

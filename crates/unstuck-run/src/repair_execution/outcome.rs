//! The outcome of a repair.

use std::path::PathBuf;
use std::time::Duration;

use unstuck_repair::sandbox::ConfinementReport;

use crate::process::ChildExitStatus;

/// The outcome of a repair. The check that failed before decides if it helped.
#[derive(Debug, Clone)]
pub struct RepairExecutionResult {
    /// The exit status of the command.
    pub status: ChildExitStatus,
    /// Duration from the start until none of its processes was left.
    pub duration: Duration,
    /// True if it timed out.
    pub timed_out: bool,
    /// True if it was stopped from outside.
    pub stopped: bool,
    /// The beginning and the end of its standard output, without secrets.
    pub stdout: String,
    /// The beginning and the end of its standard error, without secrets.
    pub stderr: String,
    /// The sandbox features that were in effect.
    pub confinement: ConfinementReport,
    /// The programs to which the command names were resolved.
    pub programs: Vec<PathBuf>,
    /// Number of leftover processes that had to be ended.
    pub leftover_count: u32,
    /// Number of leftover processes that could not be ended.
    pub survivors: u32,
    /// Files that it created or changed and that would configure unstuck or git; they were removed or restored.
    pub removed_injections: Vec<PathBuf>,
    /// Some of its writes to the home directory, which was a private copy and was discarded.
    pub discarded_writes: Vec<PathBuf>,
    /// Changes of git's directory by others meanwhile, so that the repair's changes of the same files were discarded.
    pub conflicting_git_changes: Vec<PathBuf>,
}

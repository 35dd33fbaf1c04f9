//! The report of a preview. All texts in it are sanitized: no terminal control characters.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unstuck_core::Timestamp;

/// A command that ran on a copy of a project, and the changes it would make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewReport {
    /// Id of twelve letters, derived from the command, its exit and all its changes.
    pub id: String,
    /// Root of the project.
    pub project: PathBuf,
    /// Creation time.
    pub made_at: Timestamp,
    /// Execution of the command.
    #[serde(alias = "ran")]
    pub execution: PreviewCommandExecution,
    /// Counts of files it would add, change and delete.
    pub counts: FileChangeCounts,
    /// Number of files rewritten unchanged.
    #[serde(alias = "same")]
    pub rewritten_unchanged: u64,
    /// Top-level directories of these files.
    #[serde(alias = "same_in")]
    pub rewritten_in: Vec<String>,
    /// Changes, as display rows.
    pub rows: Vec<PreviewReportRow>,
    /// Number of omitted rows.
    pub more_rows: u64,
    /// Text diffs of small files.
    pub texts: Vec<FileTextDiff>,
    /// Number of omitted text diffs.
    pub more_texts: u64,
    /// Files created where unstuck or git would obey them; never applied.
    #[serde(alias = "refused")]
    pub protected: Vec<String>,
    /// Paths of the project that changed during the run; if any, the preview cannot be applied.
    #[serde(alias = "unsettled")]
    pub changed_during_run: Vec<String>,
}

/// An executed command and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewCommandExecution {
    /// Command.
    pub command: String,
    /// Working directory relative to the root of the project; empty for the root.
    #[serde(default)]
    pub working_dir: String,
    /// Exit code, as a shell would show it.
    pub exit_code: i32,
    /// If set, the command timed out.
    pub timed_out: bool,
    /// Run time.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    /// If set, the command had network access.
    pub network: bool,
    /// Last lines of output.
    pub output: Vec<String>,
    /// Some of the writes outside the project, which went to a private copy and were discarded.
    #[serde(alias = "discarded")]
    pub discarded_writes: Vec<String>,
}

impl PreviewCommandExecution {
    /// True if the command failed or timed out, so that its result is not what it would change.
    pub fn has_failed(&self) -> bool {
        self.timed_out || self.exit_code != 0
    }
}

/// Counts of added, changed and deleted files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileChangeCounts {
    /// Added files.
    pub added: u64,
    /// Changed files.
    pub changed: u64,
    /// Deleted files.
    pub deleted: u64,
}

/// A report row about a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewReportRow {
    /// Kind of change.
    #[serde(alias = "what")]
    pub change: PreviewFileChangeKind,
    /// Path; that of a directory ends with a slash.
    pub path: String,
    /// Counts of the files in it.
    pub counts: FileChangeCounts,
    /// Remark.
    pub note: String,
}

/// The kind of change of a report row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreviewFileChangeKind {
    /// Added.
    Add,
    /// Changed.
    Change,
    /// Deleted.
    Delete,
    /// A mix of additions, changes and deletions.
    Mixed,
}

/// The diff of a text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTextDiff {
    /// Path of the file.
    pub path: String,
    /// Lines of the diff; each begins with `@`, `+`, `-` or a blank.
    pub lines: Vec<String>,
    /// Number of omitted lines.
    pub more_lines: u64,
}

impl PreviewReport {
    /// True if nothing would change.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl FileChangeCounts {
    /// Returns the total.
    pub fn sum(&self) -> u64 {
        self.added + self.changed + self.deleted
    }
}

impl std::ops::AddAssign for FileChangeCounts {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.changed += other.changed;
        self.deleted += other.deleted;
    }
}

impl PreviewFileChangeKind {
    /// Returns the name of the change.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Change => "change",
            Self::Delete => "delete",
            Self::Mixed => "mixed",
        }
    }
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};
    use unstuck_core::duration::to_millis;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(to_millis(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

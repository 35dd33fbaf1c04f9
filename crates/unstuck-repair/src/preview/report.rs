//! What a person is shown of a preview. All texts in it are fit to be shown: nothing in them commands a terminal.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use unstuck_core::Timestamp;

/// A command that ran in a copy of a project, and what it would change there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewReport {
    /// Twelve letters that stand for exactly this: the command, its end and all that it would change.
    pub id: String,
    /// The root of the project.
    pub project: PathBuf,
    /// When it was made.
    pub made_at: Timestamp,
    /// What ran.
    #[serde(rename = "ran")]
    pub execution: ExecutedCommand,
    /// How many files it would add, change and delete.
    pub counts: FileChangeCounts,
    /// How many files were written again exactly as they were.
    #[serde(rename = "same")]
    pub rewritten_unchanged: u64,
    /// Where they are: names in the root of the project.
    #[serde(rename = "same_in")]
    pub rewritten_in: Vec<String>,
    /// What it would change, in few lines.
    pub rows: Vec<ReportRow>,
    /// How many lines more there would be.
    pub more_rows: u64,
    /// How the texts of small files would change.
    pub texts: Vec<FileTextDiff>,
    /// How many changed texts are not among them.
    pub more_texts: u64,
    /// What the command made where unstuck or git would obey it; that is never applied.
    #[serde(rename = "refused")]
    pub protected: Vec<String>,
    /// What changed in the project while the command ran; then nothing can be applied.
    #[serde(rename = "unsettled")]
    pub changed_during_run: Vec<String>,
}

/// A command that ran, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedCommand {
    /// The command.
    pub command: String,
    /// The folder it ran in, below the root of the project; empty for the root.
    #[serde(default)]
    pub working_dir: String,
    /// Its exit code, as a shell would show it.
    pub exit_code: i32,
    /// Whether it took too long.
    pub timed_out: bool,
    /// How long it took.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    /// Whether it could reach the network.
    pub network: bool,
    /// The last lines of what it wrote.
    pub output: Vec<String>,
    /// What it wrote outside of the project, a few of it; that was a private copy and is gone.
    #[serde(rename = "discarded")]
    pub discarded_writes: Vec<String>,
}

impl ExecutedCommand {
    /// Whether it did not come to a good end, so that what it left is not what it would change.
    pub fn has_failed(&self) -> bool {
        self.timed_out || self.exit_code != 0
    }
}

/// How many files are added, changed and deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileChangeCounts {
    /// Files that are new.
    pub added: u64,
    /// Files that are different.
    pub changed: u64,
    /// Files that are no longer there.
    pub deleted: u64,
}

/// One line about a file or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportRow {
    /// What would happen to it.
    #[serde(rename = "what")]
    pub change: RowChange,
    /// Its path; that of a folder ends with a slash.
    pub path: String,
    /// How many files that is.
    pub counts: FileChangeCounts,
    /// What is to be said about it.
    pub note: String,
}

/// What would happen to a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowChange {
    /// It is new.
    Add,
    /// It is different.
    Change,
    /// It is no longer there.
    Delete,
    /// Some of it is new, different or no longer there.
    Mixed,
}

/// How the text of a file would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTextDiff {
    /// Its path.
    pub path: String,
    /// The difference; each line begins with `@`, `+`, `-` or a blank.
    pub lines: Vec<String>,
    /// How many lines more there would be.
    pub more_lines: u64,
}

impl PreviewReport {
    /// Whether it would change nothing at all.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl FileChangeCounts {
    /// All together.
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

impl RowChange {
    /// It in one word.
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

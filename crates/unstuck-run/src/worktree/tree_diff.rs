//! Differences between two trees.

use serde::Serialize;

use super::error::WorktreeError;
use super::path_quoting::display_path;
use super::repository::Repository;
use super::snapshot_store::SnapshotStore;

/// The kind of a file's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It was added.
    Added,
    /// It was modified: its contents, its executable bit or its type.
    Modified,
    /// It was deleted.
    Deleted,
}

impl FileChangeKind {
    /// Returns the name used in all interfaces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    /// Its path relative to the root of the work tree; bytes that are not text are escaped.
    pub path: String,
    /// The kind of change.
    pub change: FileChangeKind,
    /// Number of added lines; `None` for binary files.
    pub added: Option<u64>,
    /// Number of removed lines; `None` for binary files.
    pub removed: Option<u64>,
}

/// One line of a raw diff.
pub(super) struct RawDiffEntry {
    pub(super) path: Vec<u8>,
    /// The mode in the new tree; `None` if the file does not exist there.
    pub(super) mode: Option<String>,
    pub(super) blob: String,
    pub(super) change: FileChangeKind,
}

impl SnapshotStore {
    /// Returns the difference of two trees as a patch.
    pub fn diff(
        &self,
        from: &str,
        to: &str,
        reader: DiffAudience,
    ) -> Result<Vec<u8>, WorktreeError> {
        self.expect_trees(&[from, to])?;
        let how = match reader {
            DiffAudience::Person => "--abbrev",
            DiffAudience::Program => "--binary",
        };
        let args = ["diff-tree", "-p", "--no-color", "--find-renames", how];
        run_diff_tree(&self.repository, &args, from, to)
    }

    /// Returns the files that differ between two trees.
    pub fn changed_files(&self, from: &str, to: &str) -> Result<Vec<ChangedFile>, WorktreeError> {
        self.expect_trees(&[from, to])?;
        let raw = raw_diff(&self.repository, from, to)?;
        let args = ["diff-tree", "-r", "-z", "--numstat", "--no-renames"];
        let numbers = run_diff_tree(&self.repository, &args, from, to)?;
        let numbers = numbers
            .split(|byte| *byte == 0)
            .map(String::from_utf8_lossy);
        let file = |(raw, numbers): (RawDiffEntry, std::borrow::Cow<'_, str>)| {
            let mut words = numbers.split('\t').map(|word| word.parse().ok());
            ChangedFile {
                path: display_path(&raw.path),
                change: raw.change,
                added: words.next().flatten(),
                removed: words.next().flatten(),
            }
        };
        Ok(raw.into_iter().zip(numbers).map(file).collect())
    }

    /// Checks that trees exist, to report missing ones better than git does.
    pub(super) fn expect_trees(&self, trees: &[&str]) -> Result<(), WorktreeError> {
        let input = trees.join("\n").into_bytes();
        let args = ["cat-file", "--batch-check=%(objecttype)"];
        let look = self.repository.git_command("find the snapshots").args(args);
        let output = look.input(input).output()?;
        let text = String::from_utf8_lossy(&output);
        let lost = trees
            .iter()
            .zip(text.lines())
            .find(|(_, line)| *line != "tree");
        lost.map_or(Ok(()), |(tree, _)| {
            Err(WorktreeError::Pruned {
                tree: (*tree).to_owned(),
            })
        })
    }
}

/// The reader of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffAudience {
    /// A human: binary contents are only mentioned.
    Person,
    /// A program such as `git apply`: the diff is complete.
    Program,
}

/// Compares two trees without the external diff programs that the repository configures.
fn run_diff_tree(
    repository: &Repository,
    args: &[&str],
    from: &str,
    to: &str,
) -> Result<Vec<u8>, WorktreeError> {
    let safe = ["--no-ext-diff", "--no-textconv", from, to];
    let args = args.iter().copied().chain(safe);
    repository
        .git_command("compare the snapshots")
        .args(args)
        .output()
}

/// Returns the raw diff of two trees.
pub(super) fn raw_diff(
    repository: &Repository,
    from: &str,
    to: &str,
) -> Result<Vec<RawDiffEntry>, WorktreeError> {
    let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames"];
    let output = run_diff_tree(repository, &args, from, to)?;
    let mut parts = output.split(|byte| *byte == 0);
    let mut all = Vec::new();
    while let (Some(facts), Some(path)) = (parts.next(), parts.next()) {
        let facts = String::from_utf8_lossy(facts);
        let [_, mode, _, blob, status] = facts.split(' ').collect::<Vec<_>>()[..] else {
            continue;
        };
        all.push(RawDiffEntry {
            path: path.to_vec(),
            mode: Some(mode.to_owned()).filter(|mode| mode != "000000"),
            blob: blob.to_owned(),
            change: match status {
                "A" => FileChangeKind::Added,
                "D" => FileChangeKind::Deleted,
                _ => FileChangeKind::Modified,
            },
        });
    }
    Ok(all)
}

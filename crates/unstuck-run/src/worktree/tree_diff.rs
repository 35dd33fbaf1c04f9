//! What lies between two trees.

use serde::Serialize;

use super::error::WorktreeError;
use super::git_paths::display_path;
use super::repository::Repository;
use super::snapshot_store::SnapshotStore;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// It is new.
    Added,
    /// It is another one: its contents, its executable bit or what it is.
    Modified,
    /// It is gone.
    Deleted,
}

impl FileChange {
    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    /// Its path below the root of the work tree; bytes that are not text are escaped.
    pub path: String,
    /// What became of it.
    pub change: FileChange,
    /// How many lines are new; none for what is not text.
    pub added: Option<u64>,
    /// How many lines are gone; none for what is not text.
    pub removed: Option<u64>,
}

/// One line of a raw difference.
pub(super) struct RawDiffEntry {
    pub(super) path: Vec<u8>,
    /// The mode on the new side; none if there is no such file.
    pub(super) mode: Option<String>,
    pub(super) blob: String,
    pub(super) change: FileChange,
}

impl SnapshotStore {
    /// The difference of two trees as a patch.
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

    /// The files that differ between two trees.
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

    /// Says which tree is not there any more, before git does so in other words.
    pub(super) fn expect_trees(&self, trees: &[&str]) -> Result<(), WorktreeError> {
        let input = trees.join("\n").into_bytes();
        let args = ["cat-file", "--batch-check=%(objecttype)"];
        let look = self
            .repository
            .git_command("look at the snapshots")
            .args(args);
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

/// Who reads a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffAudience {
    /// Somebody who wants to see what changed: contents that are not text are only named.
    Person,
    /// `git apply` and the like: everything is in it.
    Program,
}

/// Compares two trees without any program that the repository names for that.
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

/// The files that differ between two trees, with what they are on the new side.
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
                "A" => FileChange::Added,
                "D" => FileChange::Deleted,
                _ => FileChange::Modified,
            },
        });
    }
    Ok(all)
}

//! Snapshots, stored as tag objects outside of all branches that point to a tree.

use serde::{Deserialize, Serialize};

/// The state of a work tree at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name within the run.
    pub label: String,
    /// The id of the git tree with the files.
    pub tree: String,
    /// The commit of HEAD; `None` in a repository without commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Files in the work tree that are not in the snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(alias = "left_out")]
    pub excluded: Vec<SnapshotExcludedFile>,
}

/// A file or directory that is not in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SnapshotExcludedFile {
    /// Its path relative to the root of the work tree; bytes that are not text are escaped.
    pub path: String,
    /// The reason.
    #[serde(alias = "because")]
    pub reason: SnapshotExclusionReason,
}

/// A reason to exclude a file from a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotExclusionReason {
    /// It is untracked and too large to be stored.
    TooLarge,
    /// It is a repository of its own.
    Repository,
    /// It is not readable.
    Unreadable,
}

impl SnapshotExclusionReason {
    /// Returns the reason as text for humans.
    pub const fn description(self) -> &'static str {
        match self {
            Self::TooLarge => "untracked and larger than 50 MB",
            Self::Repository => "a nested repository",
            Self::Unreadable => "permission denied",
        }
    }
}

impl Snapshot {
    /// Returns true if a path is excluded or lies below an excluded one.
    pub(super) fn is_excluded(&self, path: &str) -> bool {
        self.excluded.iter().any(|left| {
            let rest = path.strip_prefix(left.path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns the tag object that stores it.
    pub(super) fn to_tag_object(&self) -> serde_json::Result<Vec<u8>> {
        let (tree, label) = (&self.tree, &self.label);
        let head = format!(
            "object {tree}\ntype tree\ntag {label}\ntagger unstuck <unstuck@localhost> 0 +0000\n\n"
        );
        let mut tag = head.into_bytes();
        serde_json::to_writer(&mut tag, self)?;
        tag.push(b'\n');
        Ok(tag)
    }
}

/// Converts a label to a part of a ref name: letters, digits, `_` and `-`.
pub(super) fn ref_part(label: &str) -> String {
    let plain = |letter: char| match letter {
        '_' | '-' => letter,
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    label.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_an_excluded_directory_are_excluded() {
        let snapshot = Snapshot {
            label: "before".into(),
            tree: "t".into(),
            head: None,
            excluded: vec![SnapshotExcludedFile {
                path: "vendor/lib".into(),
                reason: SnapshotExclusionReason::Repository,
            }],
        };
        assert!(snapshot.is_excluded("vendor/lib"));
        assert!(snapshot.is_excluded("vendor/lib/a.c"));
        assert!(!snapshot.is_excluded("vendor/library"));
        assert!(!snapshot.is_excluded("vendor"));
    }
}

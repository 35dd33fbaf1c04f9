//! What a snapshot is, and how it is kept: as a tag object outside all branches that points to the tree.

use serde::{Deserialize, Serialize};

/// The state of a work tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What it is called within its run.
    pub label: String,
    /// The id of the git tree that holds the files.
    pub tree: String,
    /// The commit that HEAD was at; none in a repository without commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// What is in the work tree but not in the snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "left_out")]
    pub excluded: Vec<ExcludedFile>,
}

/// A file or folder that a snapshot does not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExcludedFile {
    /// Its path below the root of the work tree; bytes that are not text are escaped.
    pub path: String,
    /// Why it was left out.
    #[serde(rename = "because")]
    pub reason: ExclusionReason,
}

/// Why something was left out of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExclusionReason {
    /// It is not tracked, and larger than what is worth keeping.
    TooLarge,
    /// It is a repository of its own.
    Repository,
    /// It may not be read.
    Unreadable,
}

impl ExclusionReason {
    /// It in words for people.
    pub const fn description(self) -> &'static str {
        match self {
            Self::TooLarge => "untracked and larger than 50 MB",
            Self::Repository => "a repository of its own",
            Self::Unreadable => "no permission to read it",
        }
    }
}

impl Snapshot {
    /// Whether a path is one that was left out, or lies below one.
    pub(super) fn is_excluded(&self, path: &str) -> bool {
        self.excluded.iter().any(|left| {
            let rest = path.strip_prefix(left.path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The tag object that keeps it.
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

/// A label as a part of the name of a ref: letters, digits, `_` and `-`.
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
    fn what_lies_below_something_left_out_is_left_out() {
        let snapshot = Snapshot {
            label: "before".into(),
            tree: "t".into(),
            head: None,
            excluded: vec![ExcludedFile {
                path: "vendor/lib".into(),
                reason: ExclusionReason::Repository,
            }],
        };
        assert!(snapshot.is_excluded("vendor/lib"));
        assert!(snapshot.is_excluded("vendor/lib/a.c"));
        assert!(!snapshot.is_excluded("vendor/library"));
        assert!(!snapshot.is_excluded("vendor"));
    }
}

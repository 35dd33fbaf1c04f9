//! How a child ended.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::path::Path;

use serde::{Deserialize, Serialize};

const SIGINT: i32 = 2;

/// How the child itself ended, or why it never began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildStatus {
    /// It returned this exit code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// There is no such program; with a sentence for people.
    NotFound(String),
    /// The file is there and cannot be executed; with a sentence for people.
    NotExecutable(String),
    /// It could not be started for another reason; with a sentence for people.
    CannotStart(String),
}

impl ChildStatus {
    /// The exit code that a shell would show for it.
    ///
    /// ```
    /// use unstuck_run::process::ChildStatus;
    ///
    /// assert_eq!(ChildStatus::Exited(3).code(), 3);
    /// assert_eq!(ChildStatus::Signaled(15).code(), 143);
    /// assert_eq!(ChildStatus::NotFound("no such program".into()).code(), 127);
    /// ```
    pub fn code(&self) -> i32 {
        match self {
            Self::Exited(code) => *code,
            Self::Signaled(signal) => 128 + signal,
            Self::NotFound(_) => 127,
            Self::NotExecutable(_) | Self::CannotStart(_) => 126,
        }
    }

    /// Whether it did what it was asked to.
    pub fn is_success(&self) -> bool {
        *self == Self::Exited(0)
    }

    /// Whether an interrupt from the keyboard explains it.
    pub(crate) fn is_interrupt(&self) -> bool {
        self.code() == 128 + SIGINT
    }

    /// Reads the status that a child left at its `exit_record`, if it ended by itself and left one.
    pub fn from_record(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_the_signal_or_the_code_that_stands_for_it() {
        assert!(ChildStatus::Signaled(2).is_interrupt());
        assert!(ChildStatus::Exited(130).is_interrupt());
        assert!(!ChildStatus::Exited(2).is_interrupt());
        assert!(!ChildStatus::Signaled(15).is_interrupt());
    }

    #[test]
    fn a_damaged_record_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exit");
        std::fs::write(&path, "{\"exited\":").unwrap();
        assert_eq!(ChildStatus::from_record(&path), None);
        std::fs::write(&path, "{\"exited\":7}").unwrap();
        assert_eq!(
            ChildStatus::from_record(&path),
            Some(ChildStatus::Exited(7))
        );
    }
}

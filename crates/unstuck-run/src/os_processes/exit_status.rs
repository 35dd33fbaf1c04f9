//! The exit status of a child.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::path::Path;

use serde::{Deserialize, Serialize};

const SIGINT: i32 = 2;

/// The exit status of a child, or the reason why it did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildExitStatus {
    /// It returned this exit code.
    Exited(i32),
    /// It was ended by this signal.
    Signaled(i32),
    /// The program does not exist; with a message.
    NotFound(String),
    /// The file exists but cannot be executed; with a message.
    NotExecutable(String),
    /// It could not be started for another reason; with a message.
    CannotStart(String),
}

impl ChildExitStatus {
    /// Returns the exit code that a shell would show.
    ///
    /// ```
    /// use unstuck_run::process::ChildExitStatus;
    ///
    /// assert_eq!(ChildExitStatus::Exited(3).code(), 3);
    /// assert_eq!(ChildExitStatus::Signaled(15).code(), 143);
    /// assert_eq!(ChildExitStatus::NotFound("no such program".into()).code(), 127);
    /// ```
    pub fn code(&self) -> i32 {
        match self {
            Self::Exited(code) => *code,
            Self::Signaled(signal) => 128 + signal,
            Self::NotFound(_) => 127,
            Self::NotExecutable(_) | Self::CannotStart(_) => 126,
        }
    }

    /// Returns true if it exited with code 0.
    pub fn is_success(&self) -> bool {
        *self == Self::Exited(0)
    }

    /// Returns true if it was interrupted from the keyboard.
    pub(crate) fn is_interrupt(&self) -> bool {
        self.code() == 128 + SIGINT
    }

    /// Reads the status from a child's `exit_record`; `None` if the child did not end by itself or left none.
    pub fn from_record(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupt_is_the_signal_or_its_exit_code() {
        assert!(ChildExitStatus::Signaled(2).is_interrupt());
        assert!(ChildExitStatus::Exited(130).is_interrupt());
        assert!(!ChildExitStatus::Exited(2).is_interrupt());
        assert!(!ChildExitStatus::Signaled(15).is_interrupt());
    }

    #[test]
    fn damaged_record_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exit");
        std::fs::write(&path, "{\"exited\":").unwrap();
        assert_eq!(ChildExitStatus::from_record(&path), None);
        std::fs::write(&path, "{\"exited\":7}").unwrap();
        assert_eq!(
            ChildExitStatus::from_record(&path),
            Some(ChildExitStatus::Exited(7))
        );
    }
}

//! What may run: a text that the owner wrote or approved.

use super::characters::trimmed;
use super::fields::check_command;
use super::proposal::ProposalError;

/// The only thing that an executor takes: a command with somebody's right to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    text: String,
    by: ApprovedBy,
}

/// Whose word it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovedBy {
    /// It stands in `auto_approve`.
    List,
    /// It is plain, and the owner set `on_unknown = "allow"`; it must not run without a sandbox.
    Allowance,
    /// A person approved this very text.
    Person,
    /// Nobody approved it: it may only be tried on an overlay that takes all that it writes.
    Preview,
}

impl Approved {
    /// An entry of the owner's list.
    pub(super) fn listed(entry: &str) -> Self {
        Self::new(entry, ApprovedBy::List)
    }

    /// A plain command that is allowed although nobody listed it.
    pub(super) fn allowed(command: &str) -> Self {
        Self::new(command, ApprovedBy::Allowance)
    }

    /// A text that a person has seen and approved; whoever calls this has made sure of that.
    pub fn by_person(command: &str) -> Result<Self, ProposalError> {
        check_command(command, "command")?;
        Ok(Self::new(command, ApprovedBy::Person))
    }

    /// A text that nobody approved, to be tried on an overlay; it gets nowhere else.
    pub fn for_preview(command: &str) -> Result<Self, ProposalError> {
        check_command(command, "command")?;
        Ok(Self::new(command, ApprovedBy::Preview))
    }

    fn new(text: &str, by: ApprovedBy) -> Self {
        Self {
            text: trimmed(text).to_owned(),
            by,
        }
    }

    /// The text that runs.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whose word it is.
    pub fn by(&self) -> ApprovedBy {
        self.by
    }
}

//! What may run: a text that the owner wrote or approved.

use super::charset::trim_ascii_whitespace;
use super::proposal::ProposalError;
use super::proposal_fields::check_command;

/// The only thing that an executor takes: a command with somebody's right to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedCommand {
    text: String,
    by: ApprovalOrigin,
}

/// Whose word it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalOrigin {
    /// It stands in `auto_approve`.
    List,
    /// It is plain, and the owner set `on_unknown = "allow"`; it must not run without a sandbox.
    Allowance,
    /// A person approved this very text.
    Person,
    /// Nobody approved it: it may only be tried on an overlay that takes all that it writes.
    Preview,
}

impl ApprovedCommand {
    /// An entry of the owner's list.
    pub(super) fn from_list(entry: &str) -> Self {
        Self::new(entry, ApprovalOrigin::List)
    }

    /// A plain command that is allowed although nobody listed it.
    pub(super) fn from_allowance(command: &str) -> Self {
        Self::new(command, ApprovalOrigin::Allowance)
    }

    /// A text that a person has seen and approved; whoever calls this has made sure of that.
    pub fn by_person(command: &str) -> Result<Self, ProposalError> {
        check_command(command, "command")?;
        Ok(Self::new(command, ApprovalOrigin::Person))
    }

    /// A text that nobody approved, to be tried on an overlay; it gets nowhere else.
    pub fn for_preview(command: &str) -> Result<Self, ProposalError> {
        check_command(command, "command")?;
        Ok(Self::new(command, ApprovalOrigin::Preview))
    }

    fn new(text: &str, by: ApprovalOrigin) -> Self {
        Self {
            text: trim_ascii_whitespace(text).to_owned(),
            by,
        }
    }

    /// The text that runs.
    pub fn command_text(&self) -> &str {
        &self.text
    }

    /// Whose word it is.
    pub fn origin(&self) -> ApprovalOrigin {
        self.by
    }
}

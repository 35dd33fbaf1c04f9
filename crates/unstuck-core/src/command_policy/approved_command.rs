//! Commands that may run: texts that the owner listed or approved.

use super::hidden_characters::trim_ascii_whitespace;
use super::proposal::ProposalError;
use super::proposal_parser::check_command;

/// The only type an executor accepts: a command with the permission to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedCommand {
    text: String,
    by: ApprovalOrigin,
}

/// The origin of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalOrigin {
    /// Listed in `auto_approve`.
    List,
    /// A simple command, and the owner set `on_unknown = "allow"`; it must not run without a sandbox.
    Allowance,
    /// A human approved this exact text.
    Person,
    /// Not approved: it may only run as a preview, on an overlay that captures all writes.
    Preview,
}

impl ApprovedCommand {
    /// Approves an entry of the owner's list.
    pub(super) fn from_list(entry: &str) -> Self {
        Self::new(entry, ApprovalOrigin::List)
    }

    /// Approves a simple command that is allowed although it is not listed.
    pub(super) fn from_allowance(command: &str) -> Self {
        Self::new(command, ApprovalOrigin::Allowance)
    }

    /// Approves a text that a human has seen and approved, which the caller must ensure.
    pub fn by_person(command: &str) -> Result<Self, ProposalError> {
        check_command(command, "command")?;
        Ok(Self::new(command, ApprovalOrigin::Person))
    }

    /// Wraps a text without approval for a preview on an overlay; it cannot run elsewhere.
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

    /// The origin of the approval.
    pub fn origin(&self) -> ApprovalOrigin {
        self.by
    }
}

//! Why a run could not be driven; a child that fails is not an error.

use std::path::PathBuf;

use unstuck_core::agent::{BuildError, ChangeError};
use unstuck_core::pipeline::RoleChange;
use unstuck_core::planner::PromptError;
use unstuck_core::{RunId, Timestamp};
use unstuck_store::StoreError;

use crate::blobs::BlobError;
use crate::process::ProcessError;
use crate::prompt::PromptFault;

/// Why a run could not be driven.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store did not take or give what it should.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store cannot be written, and nothing was begun.
    #[error(transparent)]
    StoreUnwritable(StoreError),
    /// The child could not be supervised.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The prompt could not be changed.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The call of a role could not be built.
    #[error(transparent)]
    Invocation(#[from] BuildError),
    /// A file that unstuck itself needs could not be written or read.
    #[error("cannot keep {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The output of a role could not be kept, or is not what was kept.
    #[error(transparent)]
    Output(#[from] BlobError),
    /// The command line could not be changed.
    #[error(transparent)]
    Command(#[from] ChangeError),
    /// The prompt of a role could not be filled.
    #[error(transparent)]
    PromptRender(#[from] PromptFault),
    /// No earlier run has the output of a role that others build on.
    #[error(
        "no earlier run of this project has an output of `{role}`, which the selected roles need"
    )]
    NoOutput {
        /// The role.
        role: String,
    },
    /// An output that is to be reused is not there any more.
    #[error("the output of `{role}` is not there any more, or was changed: {why}")]
    OutputMissing {
        /// The role.
        role: String,
        /// What is wrong with it.
        why: String,
    },
    /// What was done already was made from a configuration that was changed since.
    #[error(
        "what run {run} has done was made from something else: {}",
        describe_changes(changes)
    )]
    InputsChanged {
        /// The run.
        run: RunId,
        /// What was changed.
        changes: Vec<RoleChange>,
    },
    /// It goes on only when a person has answered a question about a budget.
    #[error("run {run} waits for an answer about money: {reason}")]
    BudgetApprovalPending {
        /// The run.
        run: RunId,
        /// The question.
        question: String,
        /// What is used up.
        reason: String,
    },
    /// There is nothing to take up again.
    #[error("run {run} cannot be resumed: {why}")]
    NotResumable {
        /// The run.
        run: RunId,
        /// Why not.
        why: String,
    },
    /// Another process drives the run.
    #[error("run {run} is driven by process {pid} on {host}, last seen {seen}")]
    AlreadyActive {
        /// The run.
        run: RunId,
        /// The process.
        pid: u32,
        /// Its machine.
        host: String,
        /// When it was last seen.
        seen: Timestamp,
    },
    /// Another process has taken the run over.
    #[error("run {run} was taken over by another process")]
    TakenOver {
        /// The run.
        run: RunId,
    },
}

impl RunError {
    /// Returns the error of a run whose store cannot be written, before anything of it was done.
    #[must_use]
    pub fn into_not_started(self) -> Self {
        match self {
            Self::Store(error) if error.is_unwritable() => Self::StoreUnwritable(error),
            other => other,
        }
    }

    pub(super) fn budget_approval_pending(run: &RunId, question: &str, reason: &str) -> Self {
        Self::BudgetApprovalPending {
            run: run.clone(),
            question: question.to_owned(),
            reason: reason.to_owned(),
        }
    }

    /// Whether what a role is told, or how it is called, is at fault: the others can go on.
    pub(super) fn is_invocation_error(&self) -> bool {
        matches!(
            self,
            Self::Invocation(_) | Self::Prompt(_) | Self::PromptRender(_)
        )
    }
}

/// What was changed, in one sentence.
fn describe_changes(changes: &[RoleChange]) -> String {
    let told = changes.iter().map(|change| {
        let what = change.descriptions.join("; ");
        match &change.role {
            Some(role) => format!("{role}: {what}"),
            None => what,
        }
    });
    told.collect::<Vec<_>>().join("; ")
}

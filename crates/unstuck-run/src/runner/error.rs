//! Errors of running a session or pipeline; a child that fails is not an error.

use std::path::PathBuf;

use unstuck_core::agent::{CommandBuildError, CommandRewriteError};
use unstuck_core::pipeline::RoleConfigChange;
use unstuck_core::recovery_plan::PromptNoteError;
use unstuck_core::{RunId, Timestamp};
use unstuck_store::StoreError;

use crate::blobs::BlobError;
use crate::process::ProcessError;
use crate::prompt::RolePromptError;

/// An error of running a session or pipeline.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A store operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store is not writable, and nothing was started.
    #[error(transparent)]
    StoreUnwritable(StoreError),
    /// The child could not be supervised.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The prompt could not be changed.
    #[error(transparent)]
    Prompt(#[from] PromptNoteError),
    /// The command of a role could not be built.
    #[error(transparent)]
    Invocation(#[from] CommandBuildError),
    /// A file of unstuck itself could not be read or written.
    #[error("cannot store {}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the error.
        source: std::io::Error,
    },
    /// The output of a role could not be stored, or has changed since.
    #[error(transparent)]
    Output(#[from] BlobError),
    /// The command line could not be changed.
    #[error(transparent)]
    Command(#[from] CommandRewriteError),
    /// The prompt of a role could not be rendered.
    #[error(transparent)]
    PromptRender(#[from] RolePromptError),
    /// No earlier run has an output of a role that the selected roles need.
    #[error(
        "no earlier run of this project has an output of `{role}`, which the selected roles need"
    )]
    NoOutput {
        /// The role.
        role: String,
    },
    /// An output that should be reused is gone.
    #[error("the output of `{role}` is missing or has changed: {why}")]
    OutputMissing {
        /// The role.
        role: String,
        /// Cause of the error.
        why: String,
    },
    /// The completed roles used a configuration that has changed since.
    #[error(
        "inputs of completed roles in run {run} have changed: {}",
        describe_changes(changes)
    )]
    InputsChanged {
        /// The run.
        run: RunId,
        /// The changes.
        changes: Vec<RoleConfigChange>,
    },
    /// The run cannot continue until a budget escalation is answered.
    #[error("run {run} needs your input: {reason}")]
    BudgetApprovalPending {
        /// The run.
        run: RunId,
        /// The escalation id.
        question: String,
        /// The exhausted budget.
        reason: String,
    },
    /// The run cannot be resumed.
    #[error("run {run} cannot be resumed: {why}")]
    NotResumable {
        /// The run.
        run: RunId,
        /// The reason.
        why: String,
    },
    /// Another process supervises the run.
    #[error("run {run} is already active (pid {pid} on {host}, last seen {seen})")]
    AlreadyActive {
        /// The run.
        run: RunId,
        /// Its process id.
        pid: u32,
        /// Its host.
        host: String,
        /// Timestamp of its last heartbeat.
        seen: Timestamp,
    },
    /// Another process has taken over the run.
    #[error("run {run} was taken over by another process")]
    TakenOver {
        /// The run.
        run: RunId,
    },
}

impl RunError {
    /// Converts the error of an unwritable store into [`StoreUnwritable`](Self::StoreUnwritable): nothing was started.
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

    /// Returns true if the prompt or the command line of a role is at fault: other roles can continue.
    pub(super) fn is_invocation_error(&self) -> bool {
        matches!(
            self,
            Self::Invocation(_) | Self::Prompt(_) | Self::PromptRender(_)
        )
    }
}

/// Describes the changes in one sentence.
fn describe_changes(changes: &[RoleConfigChange]) -> String {
    let told = changes.iter().map(|change| {
        let what = change.descriptions.join("; ");
        match &change.role {
            Some(role) => format!("{role}: {what}"),
            None => what,
        }
    });
    told.collect::<Vec<_>>().join("; ")
}

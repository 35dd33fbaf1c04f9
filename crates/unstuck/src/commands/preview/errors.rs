//! Errors of previews, with hints.

use unstuck_repair::preview::{PreviewApplyError, PreviewError};
use unstuck_run::repair_execution::{PreviewJobError, RepairError};

use crate::error_report::{error_with_hint, refusal};

/// Converts an error of the preview store, with a hint.
pub(super) fn preview_error(error: PreviewError) -> anyhow::Error {
    let told = error_chain(&error);
    match &error {
        PreviewError::NotFound { .. } | PreviewError::Ambiguous { .. } => {
            refusal(told, "`unstuck preview` lists saved previews")
        }
        PreviewError::Busy { .. } => refusal(told, "retry when it has finished"),
        PreviewError::Damaged { .. } => refusal(
            told,
            "the preview cannot be applied and is removed automatically",
        ),
        PreviewError::StateInsideProject { .. } => error_with_hint(
            told,
            "use a store outside the project: --store FILE or UNSTUCK_STORE",
        ),
        PreviewError::Mounted { .. } => refusal(
            told,
            "nothing was run; previews require the whole project on one file system",
        ),
        PreviewError::TooMuch(_) => refusal(told, "the project is unchanged"),
        PreviewError::NoProject { .. }
        | PreviewError::UnsupportedEntry { .. }
        | PreviewError::Unreadable { .. }
        | PreviewError::Storage { .. } => error_with_hint(told, "the project is unchanged"),
    }
}

/// Describes why the command was not run.
pub(super) fn trial_error(error: PreviewJobError) -> anyhow::Error {
    let told = error_chain(&error);
    match error {
        PreviewJobError::Preview(error) => preview_error(error),
        PreviewJobError::Command(_) => error_with_hint(
            told.trim_start_matches("recovery.json: "),
            "this command cannot be proposed or approved either",
        ),
        PreviewJobError::OtherOwner(uid) => refusal(
            told,
            format!("nothing was run; preview it as that user: sudo -u '#{uid}' unstuck preview …"),
        ),
        PreviewJobError::Repair(RepairError::SandboxSetup {
            operation: doing,
            reason: why,
        }) => refusal(
            format!("previews are not available here: cannot {doing}: {why}"),
            "nothing was run; previews require a full sandbox with user namespaces and overlays",
        ),
        PreviewJobError::Repair(RepairError::Busy) => refusal(told, "retry when it has finished"),
        PreviewJobError::Repair(_) => error_with_hint(told, "the project is unchanged"),
        PreviewJobError::Stopped | PreviewJobError::SurvivingProcesses(_) => {
            refusal(told, "the project is unchanged, and no preview was saved")
        }
    }
}

/// Describes why a preview was not applied.
pub(super) fn apply_error(error: PreviewApplyError) -> anyhow::Error {
    let told = error_chain(&error);
    match error {
        PreviewApplyError::Preview(error) => preview_error(error),
        PreviewApplyError::Changed { .. } | PreviewApplyError::ChangedDuringRun { .. } => refusal(
            format!("not applied: {told}"),
            "the project is unchanged; run the preview again",
        ),
        PreviewApplyError::ProjectReplaced { .. } => refusal(told, "the project is unchanged"),
        PreviewApplyError::Busy => {
            refusal(told, "the project is unchanged; retry when it has finished")
        }
        PreviewApplyError::Failed { .. } => error_with_hint(
            format!("not applied: {told}"),
            "all changes were rolled back",
        ),
        PreviewApplyError::PartiallyApplied { .. } => error_with_hint(
            told,
            "another process changed the project at the same time; check these paths",
        ),
    }
}

/// Renders an error with its causes.
fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut told = error.to_string();
    let mut behind = error.source();
    while let Some(cause) = behind {
        let more = cause.to_string();
        if !told.ends_with(&more) {
            told = format!("{told}: {more}");
        }
        behind = cause.source();
    }
    told
}

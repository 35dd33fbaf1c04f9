//! Errors of previews, with hints.

use unstuck_repair::preview::{ApplyError, PreviewError};
use unstuck_run::repair::{PreviewJobError, RepairError};

use crate::error_report::{error_with_hint, refusal};

/// Converts an error of the preview store, with a hint.
pub(super) fn preview_error(error: PreviewError) -> anyhow::Error {
    let told = error_chain(&error);
    match &error {
        PreviewError::NotFound { .. } | PreviewError::Ambiguous { .. } => refusal(
            told,
            "`unstuck preview` lists those that are kept, with their ids",
        ),
        PreviewError::Busy { .. } => refusal(told, "try again when that is done"),
        PreviewError::Damaged { id } => refusal(
            told,
            format!(
                "it cannot be applied; `unstuck preview --drop {id}` is not needed, it goes by itself"
            ),
        ),
        PreviewError::StateInsideProject { .. } => error_with_hint(
            told,
            "name a store outside of the project: --store FILE, or UNSTUCK_STORE",
        ),
        PreviewError::Mounted { .. } => refusal(
            told,
            "nothing was run; a command can only be previewed where all of the project is one file system",
        ),
        PreviewError::TooMuch(_) => refusal(told, "nothing of the project was changed"),
        PreviewError::NoProject { .. }
        | PreviewError::UnsupportedEntry { .. }
        | PreviewError::Unreadable { .. }
        | PreviewError::Storage { .. } => {
            error_with_hint(told, "nothing of the project was changed")
        }
    }
}

/// Describes why the command was not run.
pub(super) fn trial_error(error: PreviewJobError) -> anyhow::Error {
    let told = error_chain(&error);
    match error {
        PreviewJobError::Preview(error) => preview_error(error),
        PreviewJobError::Command(_) => error_with_hint(
            told.trim_start_matches("recovery.json: "),
            "no such command could be proposed or approved",
        ),
        PreviewJobError::OtherOwner(uid) => refusal(
            told,
            format!("nothing was run; preview it as that user: sudo -u '#{uid}' unstuck preview …"),
        ),
        PreviewJobError::Repair(RepairError::SandboxSetup {
            operation: doing,
            reason: why,
        }) => refusal(
            format!("a preview is not possible here: cannot {doing}: {why}"),
            "nothing was run; a preview needs the whole sandbox, with user namespaces and overlays",
        ),
        PreviewJobError::Repair(RepairError::Busy) => refusal(told, "try again when that is done"),
        PreviewJobError::Repair(_) => error_with_hint(told, "nothing of the project was changed"),
        PreviewJobError::Stopped | PreviewJobError::SurvivingProcesses(_) => refusal(
            told,
            "nothing of the project was changed, and nothing is kept",
        ),
    }
}

/// Describes why a preview was not applied.
pub(super) fn apply_error(error: ApplyError) -> anyhow::Error {
    let told = error_chain(&error);
    match error {
        ApplyError::Preview(error) => preview_error(error),
        ApplyError::Changed { .. } | ApplyError::ChangedDuringRun { .. } => refusal(
            format!("not applied, {told}"),
            "nothing was changed; run the preview again to see what the command would do now",
        ),
        ApplyError::ProjectReplaced { .. } => refusal(told, "nothing was changed"),
        ApplyError::Busy => refusal(told, "nothing was changed; try again when that is done"),
        ApplyError::Failed { .. } => error_with_hint(
            format!("not applied: {told}"),
            "all of it was undone, nothing was changed",
        ),
        ApplyError::PartiallyApplied { .. } => error_with_hint(
            told,
            "somebody else changed the project at the same moment; look at these paths",
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

//! What went wrong with a preview, and what to do about it.

use unstuck_repair::preview::{ApplyError, PreviewError};
use unstuck_run::repair::{RepairError, TrialError};

use crate::report::{hinted, refused};

/// Why there is no such preview.
pub(super) fn of_preview(error: PreviewError) -> anyhow::Error {
    let told = whole(&error);
    match &error {
        PreviewError::None { .. } | PreviewError::Ambiguous { .. } => refused(
            told,
            "`unstuck preview` lists those that are kept, with their ids",
        ),
        PreviewError::Busy { .. } => refused(told, "try again when that is done"),
        PreviewError::Damaged { id } => refused(
            told,
            format!(
                "it cannot be applied; `unstuck preview --drop {id}` is not needed, it goes by itself"
            ),
        ),
        PreviewError::StateInside { .. } => hinted(
            told,
            "name a store outside of the project: --store FILE, or UNSTUCK_STORE",
        ),
        PreviewError::Mounted { .. } => refused(
            told,
            "nothing was run; a command can only be previewed where all of the project is one file system",
        ),
        PreviewError::TooMuch(_) => refused(told, "nothing of the project was changed"),
        PreviewError::NoProject { .. }
        | PreviewError::Unknown { .. }
        | PreviewError::Unreadable { .. }
        | PreviewError::Keeping { .. } => hinted(told, "nothing of the project was changed"),
    }
}

/// Why nothing was tried.
pub(super) fn of_trial(error: TrialError) -> anyhow::Error {
    let told = whole(&error);
    match error {
        TrialError::Preview(error) => of_preview(error),
        TrialError::Command(_) => hinted(
            told.trim_start_matches("recovery.json: "),
            "no such command could be proposed or approved",
        ),
        TrialError::AnotherUser(uid) => refused(
            told,
            format!("nothing was run; preview it as that user: sudo -u '#{uid}' unstuck preview …"),
        ),
        TrialError::Repair(RepairError::SetUp { doing, why }) => refused(
            format!("a preview is not possible here: cannot {doing}: {why}"),
            "nothing was run; a preview needs the whole sandbox, with user namespaces and overlays",
        ),
        TrialError::Repair(RepairError::Busy) => refused(told, "try again when that is done"),
        TrialError::Repair(_) => hinted(told, "nothing of the project was changed"),
        TrialError::Stopped | TrialError::Survived(_) => refused(
            told,
            "nothing of the project was changed, and nothing is kept",
        ),
    }
}

/// Why a preview was not applied.
pub(super) fn of_apply(error: ApplyError) -> anyhow::Error {
    let told = whole(&error);
    match error {
        ApplyError::Preview(error) => of_preview(error),
        ApplyError::Changed { .. } | ApplyError::Unsettled { .. } => refused(
            format!("not applied, {told}"),
            "nothing was changed; run the preview again to see what the command would do now",
        ),
        ApplyError::AnotherProject { .. } => refused(told, "nothing was changed"),
        ApplyError::Busy => refused(told, "nothing was changed; try again when that is done"),
        ApplyError::Failed { .. } => hinted(
            format!("not applied: {told}"),
            "all of it was undone, nothing was changed",
        ),
        ApplyError::Half { .. } => hinted(
            told,
            "somebody else changed the project at the same moment; look at these paths",
        ),
    }
}

/// An error with what is behind it.
fn whole(error: &(dyn std::error::Error + 'static)) -> String {
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

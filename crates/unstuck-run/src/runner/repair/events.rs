//! The events of a repair execution: approved, started, finished.

use std::path::PathBuf;

use unstuck_core::command_policy::{ApprovalOrigin, sanitize};
use unstuck_core::duration::to_millis;
use unstuck_core::event::{
    ApprovalSource, Event, RepairApproved, RepairExecuted, RepairFailed, RepairSandboxReport,
    RepairStarted, SessionId,
};
use unstuck_core::redact::Redactor;
use unstuck_core::session_state::RepairRecord;

use super::candidate_policy_check::ApprovedRepair;
use crate::repair_execution::{RepairError, RepairExecutionResult};
use crate::runner::excerpt::tail_excerpt;

/// Largest part of a repair's output that is kept.
const MAX_OUTPUT_BYTES: usize = 4000;

/// Returns the start event, preceded by the approval if no human has approved it before.
pub(in crate::runner) fn started_events(
    repair: &RepairRecord,
    allowed: &ApprovedRepair,
    tree: Option<String>,
) -> Vec<Event> {
    let (session, id) = (&repair.proposed.session, &repair.proposed.id);
    let command = allowed.command().to_owned();
    let approved = RepairApproved {
        session: session.clone(),
        id: id.clone(),
        source: ApprovalSource::Auto,
        command: command.clone(),
    };
    let started = RepairStarted {
        session: session.clone(),
        id: id.clone(),
        source: repair.source.unwrap_or(ApprovalSource::Auto),
        command,
        tree,
        is_unlisted: allowed.approved.origin() == ApprovalOrigin::Allowance,
    };
    let by_person = repair.source == Some(ApprovalSource::Human);
    let approved = (!by_person).then(|| approved.into());
    approved.into_iter().chain([started.into()]).collect()
}

/// Returns the events about the result.
pub(in crate::runner) fn finished_events(
    repair: &RepairRecord,
    allowed: &ApprovedRepair,
    ran: Result<RepairExecutionResult, RepairError>,
    tree: Option<String>,
    redactor: &Redactor,
) -> Vec<Event> {
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => return vec![failed_event(repair, error.to_string()).into()],
    };
    let written = [ran.stdout.as_str(), ran.stderr.as_str()].join("\n");
    let output = tail_excerpt(redactor.redact(written.trim()).as_ref(), MAX_OUTPUT_BYTES);
    let executed = RepairExecuted {
        session: repair.proposed.session.clone(),
        id: repair.proposed.id.clone(),
        command: allowed.command().to_owned(),
        exit_code: ran.status.code(),
        duration_ms: to_millis(ran.duration),
        sandbox: ran.confinement.level.name().to_owned(),
        output: output.clone(),
        tree,
        side_effects: repair_traces(&ran, redactor),
    };
    let exit_code = executed.exit_code;
    let why = match (ran.stopped, ran.timed_out, exit_code) {
        (true, ..) => Some("stopped".to_owned()),
        (_, true, _) => Some("timed out".to_owned()),
        (_, _, 0) => None,
        (_, _, code) => {
            let last = output.trim_end().lines().next_back().unwrap_or_default();
            Some(format!("exit code {code}: {last}"))
        }
    };
    let failed = why.map(|why| RepairFailed {
        exit_code: Some(exit_code),
        ..failed_event(repair, why)
    });
    let failed = failed.map(Event::from);
    [executed.into()].into_iter().chain(failed).collect()
}

fn repair_traces(ran: &RepairExecutionResult, redactor: &Redactor) -> RepairSandboxReport {
    let texts = |all: &[String]| {
        all.iter()
            .map(|one| redactor.redact(one).into_owned())
            .collect()
    };
    let paths = |all: &[PathBuf]| {
        let shown = all.iter().map(|path| sanitize(&path.to_string_lossy()));
        shown
            .map(|path| redactor.redact(&path).into_owned())
            .collect()
    };
    RepairSandboxReport {
        missing: texts(&ran.confinement.missing),
        notes: texts(&ran.confinement.notes),
        injected_files: paths(&ran.removed_injections),
        discarded: paths(&ran.discarded_writes),
        overwritten_by_others: paths(&ran.conflicting_git_changes),
        leftover_processes: ran.leftover_count,
        surviving_processes: ran.survivors,
    }
}

/// Returns the event of a repair that did not help or could not be run.
pub(in crate::runner) fn failed_event(repair: &RepairRecord, error: String) -> RepairFailed {
    RepairFailed {
        session: repair.proposed.session.clone(),
        id: repair.proposed.id.clone(),
        command: repair.proposed.command.clone(),
        exit_code: repair.exit_code,
        error,
        was_interrupted: false,
    }
}

/// Returns the event of a repair that cannot be run because it is unknown.
pub(in crate::runner) fn unknown_repair_event(
    session: Option<SessionId>,
    id: &str,
    error: String,
) -> RepairFailed {
    RepairFailed {
        session,
        id: id.to_owned(),
        command: String::new(),
        exit_code: None,
        error,
        was_interrupted: false,
    }
}

/// Returns the event of an interrupted repair: its effects are unknown, and it is not run again.
pub(in crate::runner) fn interrupted_event(session: Option<SessionId>, id: &str) -> RepairFailed {
    RepairFailed {
        was_interrupted: true,
        ..unknown_repair_event(
            session,
            id,
            "interrupted because unstuck exited; not re-run".to_owned(),
        )
    }
}

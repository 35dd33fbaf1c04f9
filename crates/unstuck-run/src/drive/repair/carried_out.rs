//! The events of a repair that is run: allowed, begun, ended.

use std::path::PathBuf;

use unstuck_core::duration::in_millis;
use unstuck_core::event::{
    ApprovalSource, Event, RecoveryApproved, RecoveryExecuted, RecoveryFailed, RecoveryStarted,
    RepairTraces, SessionId,
};
use unstuck_core::guard::{ApprovedBy, show};
use unstuck_core::recovery::Repair;
use unstuck_core::redact::Redactor;

use super::weighing::Allowed;
use crate::drive::tail::end_of;
use crate::repair::{Ran, RepairError};

/// How much of what a repair wrote is kept.
const OUTPUT: usize = 4000;

/// It is allowed, if a person has not said so before, and it begins.
pub(in crate::drive) fn begun(
    repair: &Repair,
    allowed: &Allowed,
    tree: Option<String>,
) -> Vec<Event> {
    let (session, id) = (&repair.proposed.session, &repair.proposed.id);
    let command = allowed.text().to_owned();
    let approved = RecoveryApproved {
        session: session.clone(),
        id: id.clone(),
        source: ApprovalSource::Auto,
        command: command.clone(),
    };
    let started = RecoveryStarted {
        session: session.clone(),
        id: id.clone(),
        source: repair.source.unwrap_or(ApprovalSource::Auto),
        command,
        tree,
        unlisted: allowed.approved.by() == ApprovedBy::Allowance,
    };
    let by_person = repair.source == Some(ApprovalSource::Human);
    let approved = (!by_person).then(|| approved.into());
    approved.into_iter().chain([started.into()]).collect()
}

/// What came of it.
pub(in crate::drive) fn ended(
    repair: &Repair,
    allowed: &Allowed,
    ran: Result<Ran, RepairError>,
    tree: Option<String>,
    redactor: &Redactor,
) -> Vec<Event> {
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => return vec![failed(repair, error.to_string()).into()],
    };
    let written = [ran.stdout.as_str(), ran.stderr.as_str()].join("\n");
    let output = end_of(redactor.redact(written.trim()).as_ref(), OUTPUT);
    let executed = RecoveryExecuted {
        session: repair.proposed.session.clone(),
        id: repair.proposed.id.clone(),
        command: allowed.text().to_owned(),
        exit_code: ran.status.code(),
        duration_ms: in_millis(ran.duration),
        sandbox: ran.sandbox.confinement.name().to_owned(),
        output: output.clone(),
        tree,
        traces: traces(&ran, redactor),
    };
    let exit_code = executed.exit_code;
    let why = match (ran.stopped, ran.timed_out, exit_code) {
        (true, ..) => Some("it was stopped".to_owned()),
        (_, true, _) => Some("its time was up".to_owned()),
        (_, _, 0) => None,
        (_, _, code) => {
            let last = output.trim_end().lines().next_back().unwrap_or_default();
            Some(format!("exit code {code}: {last}"))
        }
    };
    let failed = why.map(|why| RecoveryFailed {
        exit_code: Some(exit_code),
        ..failed(repair, why)
    });
    let failed = failed.map(Event::from);
    [executed.into()].into_iter().chain(failed).collect()
}

fn traces(ran: &Ran, redactor: &Redactor) -> RepairTraces {
    let texts = |all: &[String]| {
        all.iter()
            .map(|one| redactor.redact(one).into_owned())
            .collect()
    };
    let paths = |all: &[PathBuf]| {
        let shown = all.iter().map(|path| show(&path.to_string_lossy()));
        shown
            .map(|path| redactor.redact(&path).into_owned())
            .collect()
    };
    RepairTraces {
        missing: texts(&ran.sandbox.missing),
        notes: texts(&ran.sandbox.notes),
        planted: paths(&ran.planted),
        discarded: paths(&ran.discarded),
        overtaken: paths(&ran.overtaken),
        left: ran.left,
        survivors: ran.survivors,
    }
}

/// It did not help, or could not be run.
pub(in crate::drive) fn failed(repair: &Repair, error: String) -> RecoveryFailed {
    RecoveryFailed {
        session: repair.proposed.session.clone(),
        id: repair.proposed.id.clone(),
        command: repair.proposed.command.clone(),
        exit_code: repair.exit_code,
        error,
        cut_off: false,
    }
}

/// One that cannot be run because nobody knows it any more.
pub(in crate::drive) fn unknown(
    session: Option<SessionId>,
    id: &str,
    error: String,
) -> RecoveryFailed {
    RecoveryFailed {
        session,
        id: id.to_owned(),
        command: String::new(),
        exit_code: None,
        error,
        cut_off: false,
    }
}

/// It was cut off: nobody knows what it had done, and it is not run again.
pub(in crate::drive) fn cut_off(session: Option<SessionId>, id: &str) -> RecoveryFailed {
    RecoveryFailed {
        cut_off: true,
        ..unknown(
            session,
            id,
            "unstuck ended while it ran; it is not run again".to_owned(),
        )
    }
}

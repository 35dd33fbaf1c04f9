//! Renders run events, one compact line each.

use std::time::Duration;

use unstuck_core::duration::HumanDuration;
use unstuck_core::event::{
    AttemptFailed, AttemptStarted, EarlyWaitEndCause, Event, RunFinished, RunOutcome, WaitStarted,
};
use unstuck_core::session_state::NextSessionStep;
use unstuck_core::{FailureKind, SessionState};

use crate::clock;
use crate::output::{BOLD, GREEN, RED, YELLOW};
use crate::repair_rendering;
use crate::sanitized_text::{one_line, signed_usd};

/// Maximum length of evidence in a line; the child has just printed all of it.
const MAX_EVIDENCE: usize = 100;

/// Renders an event; `option` is appended to every suggested command.
pub(super) fn event_lines(event: &Event, recovery: &SessionState, option: &str) -> Vec<String> {
    match event {
        Event::RunResumed(resumed) => resumed_lines(&resumed.stop_reason, recovery),
        Event::AttemptStarted(attempt) => attempt_started_line(attempt).into_iter().collect(),
        // An exit code that is a result rather than a failure needs no line.
        Event::AttemptFailed(attempt) if attempt.diagnosis.kind == FailureKind::None => Vec::new(),
        Event::AttemptFailed(attempt) => vec![attempt_failed_line(attempt)],
        Event::EscalationOpened(asked) if is_waiting_for_human(recovery) => {
            let mut lines = escalation_lines(&asked.reason, recovery, option);
            lines.push("waiting for you to fix this (Ctrl-C to stop)".to_owned());
            lines
        }
        // Skipped strategies are shown by `unstuck explain`.
        Event::DecisionMade(made) => match made.decision.delay() {
            Some(_) => vec![made.decision.reason.clone()],
            None => Vec::new(),
        },
        Event::WaitStarted(wait) => reread_cost_text(wait).into_iter().collect(),
        Event::WaitEnded(ended) => vec![wait_ended_text(ended.by).to_owned()],
        Event::ModelSwitched(model) => vec![format!(
            "{BOLD}model {} → {}{BOLD:#}{}",
            model.switch.from_model,
            model.switch.to_model,
            model
                .switch
                .cost_estimate
                .map(|usd| format!(" (about {} for the rest of the session)", signed_usd(usd)))
                .unwrap_or_default()
        )],
        Event::RunFinished(end) => run_finished_lines(end, recovery, option),
        other => repair_rendering::event_line(other).into_iter().collect(),
    }
}

/// Describes the cost of re-reading the conversation after a wait.
pub(super) fn reread_cost_text(wait: &WaitStarted) -> Option<String> {
    let cost = wait.reread?;
    Some(format!("continuing the conversation afterwards: {cost}"))
}

fn wait_ended_text(by: EarlyWaitEndCause) -> &'static str {
    match by {
        EarlyWaitEndCause::Network => "network is back; continuing",
        EarlyWaitEndCause::Person => "retrying now, as requested",
    }
}

/// Describes why the run had stopped, and the remaining wait.
fn resumed_lines(after: &str, recovery: &SessionState) -> Vec<String> {
    let mut lines = vec![format!(
        "resuming run {} (stopped: {})",
        recovery.id().short(),
        one_line(after, MAX_EVIDENCE)
    )];
    if let NextSessionStep::Wait(until) = recovery.next_step(clock::now().at) {
        let next = recovery.attempt_count() + 1;
        lines.push(format!("attempt {next} at {}", clock::format_time(until)));
    }
    lines
}

/// True if the process keeps waiting for human input.
fn is_waiting_for_human(recovery: &SessionState) -> bool {
    recovery.spec().options["wait"] == true
}

/// Renders the start of an attempt; only changed or repeated attempts are reported.
fn attempt_started_line(attempt: &AttemptStarted) -> Option<String> {
    let number = attempt.number;
    match (&attempt.cause, attempt.changes.as_slice()) {
        (None, _) => None,
        (Some(_), []) => Some(format!("attempt {number}")),
        (Some(_), changes) => Some(format!("attempt {number} ({})", changes.join(", "))),
    }
}

fn attempt_failed_line(attempt: &AttemptFailed) -> String {
    let diagnosis = &attempt.diagnosis;
    let took = HumanDuration(Duration::from_millis(attempt.end.duration_ms));
    let seen = one_line(&diagnosis.evidence.line, MAX_EVIDENCE);
    // The last output line of a stopped child does not explain the stop.
    let seen = if seen.is_empty() || attempt.end.limit.is_some() {
        exit_text(attempt)
    } else {
        seen
    };
    format!(
        "{YELLOW}attempt {} failed{YELLOW:#} after {took}: {BOLD}{}{BOLD:#}: {seen}",
        attempt.end.number, diagnosis.kind
    )
}

/// Describes how a child without output ended.
fn exit_text(attempt: &AttemptFailed) -> String {
    let end = &attempt.end;
    match (&end.limit, end.signal, end.exit_code) {
        (Some(limit), ..) if limit == "idle_timeout" => "no output for too long".to_owned(),
        (Some(_), ..) => "timed out".to_owned(),
        _ if attempt.diagnosis.kind == FailureKind::EmptyOutput => {
            "exited without producing output".to_owned()
        }
        (_, Some(signal), _) => format!("killed by signal {signal}"),
        (_, _, Some(code)) => format!("exit code {code}"),
        _ => "no reason given".to_owned(),
    }
}

fn run_finished_lines(end: &RunFinished, recovery: &SessionState, option: &str) -> Vec<String> {
    let id = recovery.id();
    let show = format!("unstuck show {}{option}", id.short());
    match end.outcome {
        RunOutcome::Succeeded => Vec::new(),
        RunOutcome::Failed if is_passed_through(recovery) => Vec::new(),
        RunOutcome::Recovered => with_command(
            format!(
                "{GREEN}recovered{GREEN:#}{} ({} attempts, {})",
                recovery_text(&end.reason),
                end.attempts,
                HumanDuration(Duration::from_millis(end.duration_ms)),
            ),
            &show,
            option,
        ),
        RunOutcome::Failed => {
            with_command(format!("{RED}failed{RED:#}: {}", end.reason), &show, option)
        }
        RunOutcome::Interrupted => {
            // Lost output was already reported as a warning.
            let is_signal = matches!(end.exit_code, 129 | 143);
            let why = if is_signal { &*end.reason } else { "stopped" };
            vec![format!("{why} · unstuck resume {}{option}", id.short())]
        }
        RunOutcome::AwaitingHuman => escalation_lines(&end.reason, recovery, option),
    }
}

/// Continues "recovered" with the reason: "succeeded after 1 failure" becomes "recovered after 1 failure".
fn recovery_text(reason: &str) -> String {
    match reason.strip_prefix("succeeded") {
        Some(rest) => rest.to_owned(),
        None => format!(": {reason}"),
    }
}

/// Appends a command for details; a long one gets its own line, so that it can be copied.
fn with_command(told: String, command: &str, option: &str) -> Vec<String> {
    if option.is_empty() {
        vec![format!("{told} · {command}")]
    } else {
        vec![told, format!("details: {command}")]
    }
}

fn is_passed_through(recovery: &SessionState) -> bool {
    let failed = recovery.last_failure();
    failed.is_some_and(|failed| failed.diagnosis.kind == FailureKind::None)
}

fn escalation_lines(reason: &str, recovery: &SessionState, option: &str) -> Vec<String> {
    let short = recovery.id().short();
    let mut lines = vec![format!("{RED}needs your input{RED:#}: {reason}")];
    if let Some((question, _)) = recovery.open_budget_escalation() {
        let more = [
            format!("raise the budget: unstuck approve {question}{option}"),
            format!("more options: unstuck inbox {question}{option}"),
        ];
        lines.extend(more);
        return lines;
    }
    if let Some(failed) = recovery.last_failure()
        && !failed.diagnosis.hint.is_empty()
    {
        lines.push(format!("{BOLD}hint{BOLD:#}: {}", failed.diagnosis.hint));
    }
    if let Some(asked) = recovery
        .open_escalation()
        .filter(|asked| asked.repair.is_some())
    {
        let repair = asked.details.command.as_deref().unwrap_or_default();
        let conditions = asked
            .details
            .conditions
            .iter()
            .flat_map(repair_rendering::condition_lines);
        lines.extend(conditions.map(|(name, text)| format!("{name}: {text}")));
        lines.extend(repair_rendering::answer_commands(repair, short, option));
    }
    let unrepeatable = recovery.spec().unrepeatable_reason.as_ref();
    let asked = recovery.open_escalation().map(|asked| &asked.details);
    let unrepeatable = unrepeatable.or(asked.and_then(|shown| shown.unrepeatable_reason.as_ref()));
    lines.push(match unrepeatable {
        None if recovery.escalated_repair().is_some() => {
            format!("already fixed: unstuck resume {short}{option}")
        }
        None => format!("fix it, then run: unstuck resume {short}{option}"),
        Some(why) => format!("cannot be resumed: {why}; start it again"),
    });
    lines.push(format!("more options: unstuck inbox{option}"));
    lines.push(format!("details: unstuck explain {short}{option}"));
    lines
}

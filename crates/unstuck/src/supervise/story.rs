//! One compact line for each thing that happens.

use std::time::Duration;

use unstuck_core::duration::Human;
use unstuck_core::event::{
    AttemptFailed, AttemptStarted, Event, Outcome, RunFinished, WaitEndedBy, WaitingUntil,
};
use unstuck_core::recovery::Next;
use unstuck_core::{Kind, Recovery};

use crate::clock;
use crate::output::{BOLD, GREEN, RED, YELLOW};
use crate::repair_words;
use crate::show_text::{one_line, signed_usd};

/// How much of a line of evidence is shown; all of it was just printed by the child.
const EVIDENCE: usize = 100;

/// What there is to tell about an event; `option` belongs behind every command that is proposed.
pub(super) fn lines(event: &Event, recovery: &Recovery, option: &str) -> Vec<String> {
    match event {
        Event::RunResumed(resumed) => resumed_lines(&resumed.after, recovery),
        Event::AttemptStarted(attempt) => started(attempt).into_iter().collect(),
        // An exit code that is an answer and no failure is the child's own business.
        Event::AttemptFailed(attempt) if attempt.diagnosis.kind == Kind::None => Vec::new(),
        Event::AttemptFailed(attempt) => vec![failed(attempt)],
        Event::RecoveryEscalated(asked) if waits_for_person(recovery) => {
            let mut lines = question(&asked.reason, recovery, option);
            lines.push("waiting until you have seen to it (Ctrl-C stops)".to_owned());
            lines
        }
        // What was passed over is for `unstuck explain`.
        Event::DecisionMade(made) => match made.decision.delay() {
            Some(_) => vec![made.decision.reason.clone()],
            None => Vec::new(),
        },
        Event::WaitingUntil(wait) => rereads(wait).into_iter().collect(),
        Event::WaitEnded(ended) => vec![wait_ended(ended.by).to_owned()],
        Event::ModelEscalated(model) => vec![format!(
            "{BOLD}model {} → {}{BOLD:#}{}",
            model.change.from_model,
            model.change.to_model,
            model
                .change
                .cost_estimate
                .map(|usd| format!(" (about {} for the rest of the session)", signed_usd(usd)))
                .unwrap_or_default()
        )],
        Event::RunFinished(end) => finished(end, recovery, option),
        other => repair_words::line(other).into_iter().collect(),
    }
}

/// What waking the conversation costs when a wait is over.
pub(super) fn rereads(wait: &WaitingUntil) -> Option<String> {
    let cost = wait.reread?;
    Some(format!("to continue the conversation then, {cost}"))
}

fn wait_ended(by: WaitEndedBy) -> &'static str {
    match by {
        WaitEndedBy::Network => "the network is back: going on",
        WaitEndedBy::Person => "going on at once, as you asked",
    }
}

/// Why it had stopped, and how long there still is to wait.
fn resumed_lines(after: &str, recovery: &Recovery) -> Vec<String> {
    let mut lines = vec![format!(
        "run {} goes on; it had stopped: {}",
        recovery.id().short(),
        one_line(after, EVIDENCE)
    )];
    if let Next::Wait(until) = recovery.next(clock::now().at) {
        let next = recovery.attempts() + 1;
        lines.push(format!("attempt {next} at {}", clock::shown(until)));
    }
    lines
}

/// Whether the process stays when a person is needed.
fn waits_for_person(recovery: &Recovery) -> bool {
    recovery.spec().options["wait"] == true
}

/// Only an attempt that was changed or follows another is worth a line.
fn started(attempt: &AttemptStarted) -> Option<String> {
    let number = attempt.number;
    match (&attempt.answering, attempt.changes.as_slice()) {
        (None, _) => None,
        (Some(_), []) => Some(format!("attempt {number}")),
        (Some(_), changes) => Some(format!("attempt {number} ({})", changes.join(", "))),
    }
}

fn failed(attempt: &AttemptFailed) -> String {
    let diagnosis = &attempt.diagnosis;
    let took = Human(Duration::from_millis(attempt.end.duration_ms));
    let seen = one_line(&diagnosis.evidence.line, EVIDENCE);
    // Of a child that was stopped, the last line says nothing about why.
    let seen = if seen.is_empty() || attempt.end.limit.is_some() {
        ended(attempt)
    } else {
        seen
    };
    format!(
        "{YELLOW}attempt {} failed{YELLOW:#} after {took}: {BOLD}{}{BOLD:#}: {seen}",
        attempt.end.number, diagnosis.kind
    )
}

/// How a child ended that said nothing.
fn ended(attempt: &AttemptFailed) -> String {
    let end = &attempt.end;
    match (&end.limit, end.signal, end.exit_code) {
        (Some(limit), ..) if limit == "idle_timeout" => "no output for too long".to_owned(),
        (Some(_), ..) => "its time was up".to_owned(),
        _ if attempt.diagnosis.kind == Kind::EmptyOutput => "it ended without an answer".to_owned(),
        (_, Some(signal), _) => format!("ended by signal {signal}"),
        (_, _, Some(code)) => format!("exit code {code}"),
        _ => "no reason given".to_owned(),
    }
}

fn finished(end: &RunFinished, recovery: &Recovery, option: &str) -> Vec<String> {
    let id = recovery.id();
    let show = format!("unstuck show {}{option}", id.short());
    match end.outcome {
        Outcome::Succeeded => Vec::new(),
        Outcome::Failed if is_answer(recovery) => Vec::new(),
        Outcome::Recovered => with_command(
            format!(
                "{GREEN}recovered{GREEN:#}: {} ({} attempts, {})",
                end.reason,
                end.attempts,
                Human(Duration::from_millis(end.duration_ms)),
            ),
            &show,
            option,
        ),
        Outcome::Failed => {
            with_command(format!("{RED}failed{RED:#}: {}", end.reason), &show, option)
        }
        Outcome::Interrupted => {
            // That output is lost was told as a warning.
            let is_signal = matches!(end.exit_code, 129 | 143);
            let why = if is_signal { &*end.reason } else { "stopped" };
            vec![format!("{why} · unstuck resume {}{option}", id.short())]
        }
        Outcome::AwaitingHuman => question(&end.reason, recovery, option),
    }
}

/// What is told with the command that tells more; a long one stands alone, so that it can be copied.
fn with_command(told: String, command: &str, option: &str) -> Vec<String> {
    if option.is_empty() {
        vec![format!("{told} · {command}")]
    } else {
        vec![told, format!("more: {command}")]
    }
}

fn is_answer(recovery: &Recovery) -> bool {
    let failed = recovery.failure();
    failed.is_some_and(|failed| failed.diagnosis.kind == Kind::None)
}

fn question(reason: &str, recovery: &Recovery, option: &str) -> Vec<String> {
    let short = recovery.id().short();
    let mut lines = vec![format!("{RED}a person is needed{RED:#}: {reason}")];
    if let Some((question, _)) = recovery.waits_for_money() {
        let more = [
            format!("allow more: unstuck approve {question}{option}"),
            format!("other answers: unstuck inbox {question}{option}"),
        ];
        lines.extend(more);
        return lines;
    }
    if let Some(failed) = recovery.failure()
        && !failed.diagnosis.hint.is_empty()
    {
        lines.push(format!("{BOLD}hint{BOLD:#}: {}", failed.diagnosis.hint));
    }
    if let Some(asked) = recovery.question().filter(|asked| asked.repair.is_some()) {
        let repair = asked.shown.command.as_deref().unwrap_or_default();
        let conditions = asked
            .shown
            .conditions
            .iter()
            .flat_map(repair_words::conditions);
        lines.extend(conditions.map(|(name, text)| format!("{name}: {text}")));
        lines.extend(repair_words::answers(repair, short, option));
    }
    let unrepeatable = recovery.spec().unrepeatable.as_ref();
    let asked = recovery.question().map(|asked| &asked.shown);
    let unrepeatable = unrepeatable.or(asked.and_then(|shown| shown.unrepeatable.as_ref()));
    lines.push(match unrepeatable {
        None if recovery.asked_repair().is_some() => {
            format!("repaired by hand: unstuck resume {short}{option}")
        }
        None => format!("then: unstuck resume {short}{option}"),
        Some(why) => format!("it cannot be resumed: {why}; start it again"),
    });
    lines.push(format!("other answers: unstuck inbox{option}"));
    lines.push(format!("why: unstuck explain {short}{option}"));
    lines
}

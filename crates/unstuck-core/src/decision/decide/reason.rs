//! Reasons of decisions, in one sentence for readers who do not know the code.

use std::fmt::Write as _;
use std::time::Duration;

use crate::decision::model_catalog::{CostEstimate, PossiblyUnknownAmount};
use crate::duration::HumanDuration;
use crate::knowledge::Strategy;

use super::decision_types::{ConcreteAttemptChange, EscalationReason, NoRecoveryReason};
use super::delay::{RetryDelay, money_cap};
use super::input::DecisionInput;
use super::time_bounded_retries::RetryBound;

/// Returns the reason of an unchanged retry.
pub(super) fn retry(s: &DecisionInput<'_>, wait: &RetryDelay, bound: RetryBound) -> String {
    let mut text = String::with_capacity(128);
    let _ = write!(
        text,
        "{}: retrying in {}",
        title(s),
        HumanDuration(wait.delay)
    );
    push_cause(&mut text, wait);
    let _ = match bound {
        RetryBound::Count { n, limit: of } => write!(text, " (retry {n} of {of})."),
        RetryBound::Time { passed, of } => write!(
            text,
            " ({} of {}).",
            HumanDuration(passed),
            HumanDuration(of)
        ),
    };
    text
}

/// Returns the reason of a wait for the network.
pub(super) fn offline(s: &DecisionInput<'_>, left: Duration) -> String {
    format!(
        "{}: network is down; waiting up to {} until it is back.",
        title(s),
        HumanDuration(left)
    )
}

/// Returns the reason why a session is parked.
pub(super) fn parked(s: &DecisionInput<'_>, probe: &RetryDelay, left: Option<Duration>) -> String {
    let passed = HumanDuration(s.history.time_without_progress(s.now));
    let left = left.map(|left| format!(", for {} more", HumanDuration(left)));
    format!(
        "{}: no progress for {passed}; parked, probing again in {}{}.",
        title(s),
        HumanDuration(probe.delay),
        left.unwrap_or_default()
    )
}

/// Returns the reason of a retry with changes.
pub(super) fn change(
    s: &DecisionInput<'_>,
    strategy: &Strategy,
    changes: &[ConcreteAttemptChange],
    wait: &RetryDelay,
    (n, of): (u32, u32),
) -> String {
    let mut text = String::with_capacity(160);
    let _ = write!(
        text,
        "{}: retrying in {}",
        title(s),
        HumanDuration(wait.delay)
    );
    push_cause(&mut text, wait);
    let _ = write!(text, ": {}", strategy.title.trim_end_matches('.'));
    changes.iter().for_each(|one| push_change(&mut text, one));
    let _ = write!(text, " (strategy {n} of {of}).");
    text
}

fn push_change(text: &mut String, change: &ConcreteAttemptChange) {
    let _ = match change {
        ConcreteAttemptChange::Model { from, to } => write!(text, ", from {from} to {to}"),
        ConcreteAttemptChange::Timeout { to_seconds, .. } => {
            let time = HumanDuration(std::time::Duration::from_secs(*to_seconds));
            write!(text, ", timeout {time}")
        }
        _ => Ok(()),
    };
}

fn push_cause(text: &mut String, wait: &RetryDelay) {
    if wait.is_reset {
        text.push_str(", when the limit resets");
    } else if wait.is_stated {
        text.push_str(", as the server asked");
    }
}

/// Returns the reason of an escalation.
pub(super) fn escalation(s: &DecisionInput<'_>, why: EscalationReason) -> String {
    let title = title(s);
    match why {
        EscalationReason::Fatal => {
            format!("{title}: retrying will not help; manual action required.")
        }
        EscalationReason::Exhausted => exhausted(s),
        EscalationReason::NotRepeatable => {
            format!(
                "{title}: the attempt may already have had an effect; approval required to retry."
            )
        }
        EscalationReason::Chain | EscalationReason::Repair | EscalationReason::Trust => {
            format!("{title}: no automatic recovery left.")
        }
        EscalationReason::WaitTooLong => format!(
            "{title}: the stated wait of {} exceeds the limit of {} (maxWait).",
            HumanDuration(s.diagnosis.retry_after.unwrap_or_default()),
            HumanDuration(s.policy.max_wait.unwrap_or_default()),
        ),
        EscalationReason::MaxElapsed => format!(
            "{title}: the next retry would exceed the recovery time limit of {}.",
            HumanDuration(time_cap(s)),
        ),
        EscalationReason::MaxAttempts => format!(
            "{title}: the attempt limit of {} is reached.",
            s.history.counted_execution_count()
        ),
        EscalationReason::MaxCost | EscalationReason::CostlierModel => format!(
            "{title}: ${:.2} of the ${:.2} budget is spent.",
            s.history.spent(),
            money_cap(s).unwrap_or_default(),
        ),
    }
}

fn exhausted(s: &DecisionInput<'_>) -> String {
    let title = title(s);
    match s.history.execution_count() {
        1 => format!("{title}: no automatic recovery available."),
        n => format!("{title}: gave up after {n} attempts."),
    }
}

fn time_cap(s: &DecisionInput<'_>) -> std::time::Duration {
    match (s.policy.max_elapsed, s.session_limits.elapsed) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b).unwrap_or_default(),
    }
}

/// Returns the reason of an escalation about a more expensive model.
pub(super) fn costlier_model(
    s: &DecisionInput<'_>,
    from: &str,
    to: &str,
    cost: &CostEstimate,
) -> String {
    let title = title(s);
    match &cost.amount {
        PossiblyUnknownAmount::Known(usd) => format!(
            "{title}: switching the model from {from} to {to} would cost about ${usd:.2} more; \
             approval required."
        ),
        PossiblyUnknownAmount::Unknown { why } => format!(
            "{title}: the cost of switching the model from {from} to {to} is unknown ({why}); \
             approval required."
        ),
    }
}

/// Returns the reason why nothing is done.
pub(super) fn stop(s: &DecisionInput<'_>, why: NoRecoveryReason) -> String {
    match why {
        NoRecoveryReason::PolicyOff => {
            format!("{}: not retried (policy: off).", title(s))
        }
        NoRecoveryReason::Code => format!("{}: not retried: fix the code.", title(s)),
        NoRecoveryReason::NotAFailure => "Nothing failed.".to_owned(),
        NoRecoveryReason::InputNotReplayable => format!(
            "{}: not retried: stdin is too large to be replayed; redirect it from a file (< FILE), \
             which has no size limit.",
            title(s)
        ),
        NoRecoveryReason::Interactive => format!(
            "{}: not retried: the session is interactive; run the command again to continue.",
            title(s)
        ),
        NoRecoveryReason::OuterRetries => format!(
            "{}: not retried here: the outer unstuck process retries it; --retries N retries here, too.",
            title(s)
        ),
    }
}

fn title<'a>(s: &DecisionInput<'a>) -> &'a str {
    &s.kind_knowledge.title
}

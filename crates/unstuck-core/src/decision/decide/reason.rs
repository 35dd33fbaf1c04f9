//! Reasons of decisions, in one sentence for people who do not know the code.

use std::fmt::Write as _;
use std::time::Duration;

use crate::decision::model::{CostEstimate, EstimatedAmount};
use crate::duration::HumanDuration;
use crate::knowledge::Strategy;

use super::decision_types::{ConcreteChange, EscalationReason, StopReason};
use super::delay::{RetryDelay, money_cap};
use super::input::DecisionInput;
use super::time_bound::RetryBound;

/// Returns the reason of an unchanged retry.
pub(super) fn retry(s: &DecisionInput<'_>, wait: &RetryDelay, bound: RetryBound) -> String {
    let mut text = String::with_capacity(128);
    let _ = write!(
        text,
        "{}: trying again in {}",
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
        "{}: there is no network at all; going on when it is back (for at most {}).",
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
    changes: &[ConcreteChange],
    wait: &RetryDelay,
    (n, of): (u32, u32),
) -> String {
    let mut text = String::with_capacity(160);
    let _ = write!(
        text,
        "{}: trying another way in {}",
        title(s),
        HumanDuration(wait.delay)
    );
    push_cause(&mut text, wait);
    let _ = write!(text, ": {}", strategy.title.trim_end_matches('.'));
    changes.iter().for_each(|one| push_change(&mut text, one));
    let _ = write!(text, " (way {n} of at most {of}).");
    text
}

fn push_change(text: &mut String, change: &ConcreteChange) {
    let _ = match change {
        ConcreteChange::Model { from, to } => write!(text, ", from {from} to {to}"),
        ConcreteChange::Timeout { to_seconds, .. } => {
            let time = HumanDuration(std::time::Duration::from_secs(*to_seconds));
            write!(text, ", with {time} allowed")
        }
        _ => Ok(()),
    };
}

fn push_cause(text: &mut String, wait: &RetryDelay) {
    if wait.is_reset {
        text.push_str(", when the limit has been reset");
    } else if wait.is_stated {
        text.push_str(", as the server asked");
    }
}

/// Returns the reason of an escalation.
pub(super) fn escalation(s: &DecisionInput<'_>, why: EscalationReason) -> String {
    let title = title(s);
    match why {
        EscalationReason::Fatal => {
            format!("{title}: trying again cannot help, a person has to act.")
        }
        EscalationReason::Exhausted => exhausted(s),
        EscalationReason::NotRepeatable => format!(
            "{title}: it may already have had an effect, so a person is asked before it is done again."
        ),
        EscalationReason::Chain | EscalationReason::Repair | EscalationReason::Trust => {
            format!("{title}: what is left to try needs a person.")
        }
        EscalationReason::WaitTooLong => format!(
            "{title}: the stated wait of {} is longer than the {} that may be waited without asking.",
            HumanDuration(s.diagnosis.retry_after.unwrap_or_default()),
            HumanDuration(s.policy.max_wait.unwrap_or_default()),
        ),
        EscalationReason::MaxElapsed => format!(
            "{title}: the next try would come after the {} that recovery may take, so a person is asked.",
            HumanDuration(time_cap(s)),
        ),
        EscalationReason::MaxAttempts => format!(
            "{title}: it was executed {} times, which is the cap, so a person is asked.",
            s.history.counted_execution_count()
        ),
        EscalationReason::MaxCost | EscalationReason::CostlierModel => format!(
            "{title}: {:.2} USD are spent of the {:.2} USD that may be, so a person is asked.",
            s.history.spent(),
            money_cap(s).unwrap_or_default(),
        ),
    }
}

fn exhausted(s: &DecisionInput<'_>) -> String {
    let title = title(s);
    match s.history.execution_count() {
        1 => format!("{title}: there is nothing that may be tried without a person."),
        n => format!(
            "{title}: all that may be tried was tried ({n} executions), so a person is asked."
        ),
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
        EstimatedAmount::Known(usd) => format!(
            "{title}: changing the model from {from} to {to} would cost about {usd:.2} USD more, \
             which needs a person's consent."
        ),
        EstimatedAmount::Unknown { why } => format!(
            "{title}: what changing the model from {from} to {to} costs is unknown ({why}), \
             which needs a person's consent."
        ),
    }
}

/// Returns the reason why nothing is done.
pub(super) fn stop(s: &DecisionInput<'_>, why: StopReason) -> String {
    match why {
        StopReason::PolicyOff => {
            format!("{}: passed on as it is, since the policy is off.", title(s))
        }
        StopReason::Code => format!(
            "{}: left to the agent or developer, since trying again changes nothing.",
            title(s)
        ),
        StopReason::NotAFailure => "Nothing failed.".to_owned(),
        StopReason::InputNotReplayable => format!(
            "{}: not retried, since its standard input was too large to be kept for a second attempt; a file (< FILE) \
             of any size can be read again.",
            title(s)
        ),
        StopReason::Interactive => format!(
            "{}: passed on as it is, since a person works with it; start it again to go on.",
            title(s)
        ),
        StopReason::OuterRetries => format!(
            "{}: passed on to the unstuck that runs this one, which retries; --retries N retries here, too.",
            title(s)
        ),
    }
}

fn title<'a>(s: &DecisionInput<'a>) -> &'a str {
    &s.kind_knowledge.title
}

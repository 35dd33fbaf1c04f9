//! The one sentence with each decision, for people who do not know our code.

use std::fmt::Write as _;
use std::time::Duration;

use crate::decision::model::{Amount, CostEstimate};
use crate::duration::Human;
use crate::knowledge::Strategy;

use super::made::{AskWhy, Changed, StopWhy};
use super::patience::Bound;
use super::situation::Situation;
use super::wait::{Wait, money_cap};

/// Why the same is done again.
pub(super) fn retry(s: &Situation<'_>, wait: &Wait, bound: Bound) -> String {
    let mut text = String::with_capacity(128);
    let _ = write!(text, "{}: trying again in {}", title(s), Human(wait.delay));
    push_cause(&mut text, wait);
    let _ = match bound {
        Bound::Count { n, of } => write!(text, " (retry {n} of {of})."),
        Bound::Time { passed, of } => write!(text, " ({} of {}).", Human(passed), Human(of)),
    };
    text
}

/// Why it is waited for the network.
pub(super) fn offline(s: &Situation<'_>, left: Duration) -> String {
    format!(
        "{}: there is no network at all; going on when it is back (for at most {}).",
        title(s),
        Human(left)
    )
}

/// Why it is only probed now and then.
pub(super) fn parked(s: &Situation<'_>, probe: &Wait, left: Option<Duration>) -> String {
    let passed = Human(s.history.without_progress(s.now));
    let left = left.map(|left| format!(", for {} more", Human(left)));
    format!(
        "{}: no progress for {passed}; parked, probing again in {}{}.",
        title(s),
        Human(probe.delay),
        left.unwrap_or_default()
    )
}

/// Why it is done again with changes.
pub(super) fn change(
    s: &Situation<'_>,
    strategy: &Strategy,
    changes: &[Changed],
    wait: &Wait,
    (n, of): (u32, u32),
) -> String {
    let mut text = String::with_capacity(160);
    let _ = write!(
        text,
        "{}: trying another way in {}",
        title(s),
        Human(wait.delay)
    );
    push_cause(&mut text, wait);
    let _ = write!(text, ": {}", strategy.title.trim_end_matches('.'));
    changes.iter().for_each(|one| push_change(&mut text, one));
    let _ = write!(text, " (way {n} of at most {of}).");
    text
}

fn push_change(text: &mut String, change: &Changed) {
    let _ = match change {
        Changed::Model { from, to } => write!(text, ", from {from} to {to}"),
        Changed::Timeout { to_seconds, .. } => {
            let time = Human(std::time::Duration::from_secs(*to_seconds));
            write!(text, ", with {time} allowed")
        }
        _ => Ok(()),
    };
}

fn push_cause(text: &mut String, wait: &Wait) {
    if wait.reset {
        text.push_str(", when the limit has been reset");
    } else if wait.asked {
        text.push_str(", as the server asked");
    }
}

/// Why a person is asked.
pub(super) fn ask(s: &Situation<'_>, why: AskWhy) -> String {
    let title = title(s);
    match why {
        AskWhy::Fatal => format!("{title}: trying again cannot help, a person has to act."),
        AskWhy::Exhausted => exhausted(s),
        AskWhy::NotRepeatable => format!(
            "{title}: it may already have had an effect, so a person is asked before it is done again."
        ),
        AskWhy::Chain | AskWhy::Repair | AskWhy::Trust => {
            format!("{title}: what is left to try needs a person.")
        }
        AskWhy::WaitTooLong => format!(
            "{title}: the stated wait of {} is longer than the {} that may be waited without asking.",
            Human(s.diagnosis.retry_after.unwrap_or_default()),
            Human(s.policy.max_wait.unwrap_or_default()),
        ),
        AskWhy::MaxElapsed => format!(
            "{title}: the next try would come after the {} that recovery may take, so a person is asked.",
            Human(time_cap(s)),
        ),
        AskWhy::MaxAttempts => format!(
            "{title}: it was executed {} times, which is the cap, so a person is asked.",
            s.history.counted_executions()
        ),
        AskWhy::MaxCost | AskWhy::DearerModel => format!(
            "{title}: {:.2} USD are spent of the {:.2} USD that may be, so a person is asked.",
            s.history.spent(),
            money_cap(s).unwrap_or_default(),
        ),
    }
}

fn exhausted(s: &Situation<'_>) -> String {
    let title = title(s);
    match s.history.executions() {
        1 => format!("{title}: there is nothing that may be tried without a person."),
        n => format!(
            "{title}: all that may be tried was tried ({n} executions), so a person is asked."
        ),
    }
}

fn time_cap(s: &Situation<'_>) -> std::time::Duration {
    match (s.policy.max_elapsed, s.caps.elapsed) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b).unwrap_or_default(),
    }
}

/// Why a person is asked before a dearer model is used.
pub(super) fn dearer(s: &Situation<'_>, from: &str, to: &str, cost: &CostEstimate) -> String {
    let title = title(s);
    match &cost.amount {
        Amount::Known(usd) => format!(
            "{title}: changing the model from {from} to {to} would cost about {usd:.2} USD more, \
             which needs a person's consent."
        ),
        Amount::Unknown { why } => format!(
            "{title}: what changing the model from {from} to {to} costs is unknown ({why}), \
             which needs a person's consent."
        ),
    }
}

/// Why nothing is done.
pub(super) fn stop(s: &Situation<'_>, why: StopWhy) -> String {
    match why {
        StopWhy::PolicyOff => format!("{}: passed on as it is, since the policy is off.", title(s)),
        StopWhy::Code => format!(
            "{}: left to the agent or developer, since trying again changes nothing.",
            title(s)
        ),
        StopWhy::NotAFailure => "Nothing failed.".to_owned(),
        StopWhy::InputSpent => format!(
            "{}: not retried, since its standard input was too large to be kept for a second attempt; a file (< FILE) \
             of any size can be read again.",
            title(s)
        ),
        StopWhy::Interactive => format!(
            "{}: passed on as it is, since a person works with it; start it again to go on.",
            title(s)
        ),
        StopWhy::OuterRetries => format!(
            "{}: passed on to the unstuck that runs this one, which retries; --retries N retries here, too.",
            title(s)
        ),
    }
}

fn title<'a>(s: &Situation<'a>) -> &'a str {
    &s.knowledge.title
}

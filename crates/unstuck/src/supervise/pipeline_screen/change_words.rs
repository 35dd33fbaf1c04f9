//! What is done about a failure, in the words of one short line.

use std::time::Duration;

use unstuck_core::action::Prompts;
use unstuck_core::decision::{Changed, Chosen, CostEstimate, Decision};
use unstuck_core::duration::Human;
use unstuck_core::knowledge::{Playbook, SessionChoice};

use crate::clock;
use crate::show_text::signed_usd;

/// What follows a failure before and in the next attempt; none where no attempt follows.
///
/// `asked` tells whether the server said how long to wait.
pub(super) fn next_try(decision: &Decision, prompts: &Prompts, asked: bool) -> Option<String> {
    match &decision.action {
        Chosen::Retry { .. } => Some(same_again(decision, asked)),
        Chosen::Change { changes, delay, .. } => {
            let mut text = match changes.is_empty() {
                true => another_way(decision),
                false => changed(changes, decision.cost.as_ref(), prompts),
            };
            if *delay >= Duration::from_secs(1) {
                text.push_str(&format!(" ({})", wait(decision, *delay, asked)));
            }
            Some(text)
        }
        Chosen::Ask { .. } | Chosen::Stop { .. } => None,
    }
}

fn same_again(decision: &Decision, asked: bool) -> String {
    let delay = decision.delay().unwrap_or_default();
    let kind = decision.kind;
    let at_most = at_most(decision);
    match delay < Duration::from_millis(100) {
        true => format!("trying the same again{at_most} ({kind})"),
        false => format!(
            "trying again {}{at_most} ({kind})",
            wait(decision, delay, asked)
        ),
    }
}

/// For how long it is tried again, where the time and not the number of retries is limited.
fn at_most(decision: &Decision) -> String {
    match decision.give_up_at {
        Some(give_up_at) => format!(", for at most {}", Human(give_up_at.since(decision.at))),
        None => String::new(),
    }
}

/// How long is waited, until when where that is long, and because of what.
fn wait(decision: &Decision, delay: Duration, asked: bool) -> String {
    let mut text = format!("in {}", Human(delay));
    if delay >= Duration::from_secs(60) {
        let until = clock::shown(decision.at.after(delay));
        text = format!("at {until}, {text}");
    }
    if decision.stated {
        text.push_str(", when the limit has been reset");
    } else if asked {
        text.push_str(", as the server asked");
    }
    text
}

/// What is changed: first the limits, then who works, then what they are told.
fn changed(changes: &[Changed], cost: Option<&CostEstimate>, prompts: &Prompts) -> String {
    let mut changes: Vec<_> = changes.iter().collect();
    changes.sort_by_key(|change| place(change));
    let words = changes.into_iter().map(|change| match change {
        Changed::Timeout {
            from_seconds,
            to_seconds,
        } => {
            let lower = from_seconds.is_some_and(|from| from > *to_seconds);
            let verb = if lower { "lowering" } else { "raising" };
            format!("{verb} timeout to {to_seconds}s")
        }
        Changed::Model { from, to } => {
            format!("changing the model from {from} to {to}{}", about(cost))
        }
        Changed::Session(SessionChoice::Resume) => "going on in the same conversation".to_owned(),
        Changed::Session(SessionChoice::Fresh) => "starting a new conversation".to_owned(),
        Changed::Prompt(template) => match prompts.doing(template) {
            Some(doing) => doing.to_owned(),
            None => format!("using the prompt template `{template}`"),
        },
        Changed::OutputLimit { .. } => "asking for a shorter output".to_owned(),
        Changed::Repair { command, .. } => format!("repairing with `{command}` first"),
        Changed::Words(_) => "adding a person's words".to_owned(),
        Changed::Text(_) => "with a prompt that a person has written".to_owned(),
    });
    format!("{}…", words.collect::<Vec<_>>().join(", "))
}

/// A way that the agent is told, and that changes nothing else.
fn another_way(decision: &Decision) -> String {
    let strategy = decision.strategy.as_deref();
    let known = strategy.and_then(|id| Playbook::built_in().strategy(id));
    match known {
        Some(known) => format!("telling it another way: {}…", known.title),
        None => "trying another way…".to_owned(),
    }
}

const fn place(change: &Changed) -> u8 {
    match change {
        Changed::Repair { .. } => 0,
        Changed::Timeout { .. } => 1,
        Changed::Model { .. } => 2,
        Changed::Session(_) => 3,
        Changed::Prompt(_) | Changed::Words(_) | Changed::Text(_) => 4,
        Changed::OutputLimit { .. } => 5,
    }
}

fn about(cost: Option<&CostEstimate>) -> String {
    let usd = cost.and_then(CostEstimate::usd);
    usd.map(|usd| format!(" (about {})", signed_usd(usd)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unstuck_core::decision::{Amount, Draw};
    use unstuck_core::{Kind, Timestamp};

    fn decided(kind: Kind, action: Chosen) -> Decision {
        Decision {
            kind,
            level: None,
            action,
            strategy: None,
            reason: String::new(),
            attempt: 1,
            of: 2,
            fell_through: Vec::new(),
            cost: None,
            stated: false,
            give_up_at: None,
            wait_for: Default::default(),
            draw: Draw(0),
            at: Timestamp::from_seconds(0),
        }
    }

    fn change(changes: Vec<Changed>, seconds: u64) -> Decision {
        let delay = Duration::from_secs(seconds);
        let until = Timestamp::from_seconds(0).after(delay);
        decided(
            Kind::Timeout,
            Chosen::Change {
                changes,
                delay,
                until,
            },
        )
    }

    fn again(seconds: u64) -> Decision {
        let delay = Duration::from_secs(seconds);
        let until = Timestamp::from_seconds(0).after(delay);
        decided(Kind::RateLimit, Chosen::Retry { delay, until })
    }

    fn told(decision: &Decision) -> String {
        next_try(decision, &Prompts::embedded(), false).unwrap()
    }

    #[test]
    fn limits_are_told_before_the_prompt() {
        let timeout = Changed::Timeout {
            from_seconds: Some(1200),
            to_seconds: 1800,
        };
        let both = change(vec![Changed::Prompt("focus".into()), timeout], 0);
        assert_eq!(
            told(&both),
            "raising timeout to 1800s, simplifying the prompt…"
        );
    }

    #[test]
    fn a_dearer_model_is_told_with_what_it_costs() {
        let model = Changed::Model {
            from: "haiku".into(),
            to: "opus".into(),
        };
        let dearer = Decision {
            cost: Some(CostEstimate {
                amount: Amount::Known(0.142),
                formula: String::new(),
            }),
            ..change(vec![model, Changed::Session(SessionChoice::Fresh)], 3)
        };
        assert_eq!(
            told(&dearer),
            "changing the model from haiku to opus (about +$0.14), starting a new conversation… (in 3 s)"
        );
    }

    #[test]
    fn a_template_of_the_project_is_told_by_its_name() {
        let own = change(vec![Changed::Prompt("hurry".into())], 0);
        assert_eq!(told(&own), "using the prompt template `hurry`…");
    }

    #[test]
    fn a_wait_is_told_with_its_cause() {
        assert_eq!(told(&again(12)), "trying again in 12 s (rate_limit)");
        assert_eq!(told(&again(0)), "trying the same again (rate_limit)");
        let asked = next_try(&again(12), &Prompts::embedded(), true);
        assert_eq!(
            asked.as_deref(),
            Some("trying again in 12 s, as the server asked (rate_limit)")
        );
        let limited = Decision {
            give_up_at: Some(Timestamp::from_seconds(1800)),
            ..again(12)
        };
        assert_eq!(
            told(&limited),
            "trying again in 12 s, for at most 30 min (rate_limit)"
        );
        let stated = Decision {
            stated: true,
            ..again(3600)
        };
        let stated = told(&stated);
        assert!(stated.starts_with("trying again at "), "{stated}");
        assert!(
            stated.contains("in 1 h, when the limit has been reset"),
            "{stated}"
        );
    }
}

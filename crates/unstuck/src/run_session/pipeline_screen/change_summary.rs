//! Summarizes the reaction to a failure in one short line.

use std::time::Duration;

use unstuck_core::decision::{Action, ConcreteChange, CostEstimate, Decision};
use unstuck_core::duration::HumanDuration;
use unstuck_core::knowledge::{ConversationMode, Playbook};
use unstuck_core::planner::PromptTemplates;

use crate::clock;
use crate::text_display::signed_usd;

/// Summarizes the delay and the changes of the next attempt; none if there is none.
///
/// `asked` is true if the server stated the delay.
pub(super) fn next_attempt_text(
    decision: &Decision,
    prompts: &PromptTemplates,
    asked: bool,
) -> Option<String> {
    match &decision.action {
        Action::Retry { .. } => Some(same_retry_text(decision, asked)),
        Action::Change { changes, delay, .. } => {
            let mut text = if changes.is_empty() {
                strategy_text(decision)
            } else {
                changes_text(changes, decision.cost.as_ref(), prompts)
            };
            if *delay >= Duration::from_secs(1) {
                text.push_str(&format!(" ({})", wait_text(decision, *delay, asked)));
            }
            Some(text)
        }
        Action::Escalate { .. } | Action::Stop { .. } => None,
    }
}

fn same_retry_text(decision: &Decision, asked: bool) -> String {
    let delay = decision.delay().unwrap_or_default();
    let kind = decision.kind;
    let at_most = time_limit_text(decision);
    if delay < Duration::from_millis(100) {
        format!("trying the same again{at_most} ({kind})")
    } else {
        format!(
            "trying again {}{at_most} ({kind})",
            wait_text(decision, delay, asked)
        )
    }
}

/// Renders the time limit for retries, if time rather than the number of retries is limited.
fn time_limit_text(decision: &Decision) -> String {
    match decision.give_up_at {
        Some(give_up_at) => format!(
            ", for at most {}",
            HumanDuration(give_up_at.since(decision.decided_at))
        ),
        None => String::new(),
    }
}

/// Renders the delay, its end if it is long, and its cause.
fn wait_text(decision: &Decision, delay: Duration, asked: bool) -> String {
    let mut text = format!("in {}", HumanDuration(delay));
    if delay >= Duration::from_secs(60) {
        let until = clock::format_time(decision.decided_at.after(delay));
        text = format!("at {until}, {text}");
    }
    if decision.is_stated_reset {
        text.push_str(", when the limit has been reset");
    } else if asked {
        text.push_str(", as the server asked");
    }
    text
}

/// Renders the changes: limits first, then agent and model, then the prompt.
fn changes_text(
    changes: &[ConcreteChange],
    cost: Option<&CostEstimate>,
    prompts: &PromptTemplates,
) -> String {
    let mut changes: Vec<_> = changes.iter().collect();
    changes.sort_by_key(|change| sort_rank(change));
    let words = changes.into_iter().map(|change| match change {
        ConcreteChange::Timeout {
            from_seconds,
            to_seconds,
        } => {
            let lower = from_seconds.is_some_and(|from| from > *to_seconds);
            let verb = if lower { "lowering" } else { "raising" };
            format!("{verb} timeout to {to_seconds}s")
        }
        ConcreteChange::Model { from, to } => {
            format!("changing the model from {from} to {to}{}", cost_text(cost))
        }
        ConcreteChange::Conversation(ConversationMode::Resume) => {
            "going on in the same conversation".to_owned()
        }
        ConcreteChange::Conversation(ConversationMode::Fresh) => {
            "starting a new conversation".to_owned()
        }
        ConcreteChange::Prompt(template) => match prompts.description(template) {
            Some(doing) => doing.to_owned(),
            None => format!("using the prompt template `{template}`"),
        },
        ConcreteChange::OutputLimit { .. } => "asking for a shorter output".to_owned(),
        ConcreteChange::Repair { command, .. } => format!("repairing with `{command}` first"),
        ConcreteChange::UserMessage(_) => "adding a person's words".to_owned(),
        ConcreteChange::PromptText(_) => "with a prompt that a person has written".to_owned(),
    });
    format!("{}…", words.collect::<Vec<_>>().join(", "))
}

/// Renders a strategy that only changes the prompt.
fn strategy_text(decision: &Decision) -> String {
    let strategy = decision.strategy.as_deref();
    let known = strategy.and_then(|id| Playbook::built_in().strategy(id));
    match known {
        Some(known) => format!("telling it another way: {}…", known.title),
        None => "trying another way…".to_owned(),
    }
}

const fn sort_rank(change: &ConcreteChange) -> u8 {
    match change {
        ConcreteChange::Repair { .. } => 0,
        ConcreteChange::Timeout { .. } => 1,
        ConcreteChange::Model { .. } => 2,
        ConcreteChange::Conversation(_) => 3,
        ConcreteChange::Prompt(_)
        | ConcreteChange::UserMessage(_)
        | ConcreteChange::PromptText(_) => 4,
        ConcreteChange::OutputLimit { .. } => 5,
    }
}

fn cost_text(cost: Option<&CostEstimate>) -> String {
    let usd = cost.and_then(CostEstimate::usd);
    usd.map(|usd| format!(" (about {})", signed_usd(usd)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unstuck_core::decision::{EstimatedAmount, RandomDraw};
    use unstuck_core::{Kind, Timestamp};

    fn decided(kind: Kind, action: Action) -> Decision {
        Decision {
            kind,
            level: None,
            action,
            strategy: None,
            reason: String::new(),
            attempt: 1,
            max_attempts: 2,
            skipped: Vec::new(),
            cost: None,
            is_stated_reset: false,
            give_up_at: None,
            wait_purpose: Default::default(),
            draw: RandomDraw(0),
            decided_at: Timestamp::from_seconds(0),
        }
    }

    fn change(changes: Vec<ConcreteChange>, seconds: u64) -> Decision {
        let delay = Duration::from_secs(seconds);
        let until = Timestamp::from_seconds(0).after(delay);
        decided(
            Kind::Timeout,
            Action::Change {
                changes,
                delay,
                until,
            },
        )
    }

    fn again(seconds: u64) -> Decision {
        let delay = Duration::from_secs(seconds);
        let until = Timestamp::from_seconds(0).after(delay);
        decided(Kind::RateLimit, Action::Retry { delay, until })
    }

    fn told(decision: &Decision) -> String {
        next_attempt_text(decision, &PromptTemplates::embedded(), false).unwrap()
    }

    #[test]
    fn limits_come_before_the_prompt() {
        let timeout = ConcreteChange::Timeout {
            from_seconds: Some(1200),
            to_seconds: 1800,
        };
        let both = change(vec![ConcreteChange::Prompt("focus".into()), timeout], 0);
        assert_eq!(
            told(&both),
            "raising timeout to 1800s, simplifying the prompt…"
        );
    }

    #[test]
    fn more_expensive_model_is_shown_with_its_extra_cost() {
        let model = ConcreteChange::Model {
            from: "haiku".into(),
            to: "opus".into(),
        };
        let dearer = Decision {
            cost: Some(CostEstimate {
                amount: EstimatedAmount::Known(0.142),
                formula: String::new(),
            }),
            ..change(
                vec![model, ConcreteChange::Conversation(ConversationMode::Fresh)],
                3,
            )
        };
        assert_eq!(
            told(&dearer),
            "changing the model from haiku to opus (about +$0.14), starting a new conversation… (in 3 s)"
        );
    }

    #[test]
    fn project_template_is_shown_by_name() {
        let own = change(vec![ConcreteChange::Prompt("hurry".into())], 0);
        assert_eq!(told(&own), "using the prompt template `hurry`…");
    }

    #[test]
    fn wait_is_shown_with_its_cause() {
        assert_eq!(told(&again(12)), "trying again in 12 s (rate_limit)");
        assert_eq!(told(&again(0)), "trying the same again (rate_limit)");
        let asked = next_attempt_text(&again(12), &PromptTemplates::embedded(), true);
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
            is_stated_reset: true,
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

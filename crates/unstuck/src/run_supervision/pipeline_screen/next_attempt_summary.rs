//! Summarizes the next attempt after a failure, its delay and changes, in one short line.

use std::time::Duration;

use unstuck_core::decision::{ConcreteAttemptChange, CostEstimate, Decision, RecoveryAction};
use unstuck_core::duration::HumanDuration;
use unstuck_core::knowledge::{ConversationMode, RecoveryKnowledge};
use unstuck_core::recovery_plan::PromptNoteTemplates;

use crate::clock;
use crate::sanitized_text::signed_usd;

/// Summarizes the delay and the changes of the next attempt; none if there is none.
///
/// `asked` is true if the server stated the delay.
pub(super) fn next_attempt_text(
    decision: &Decision,
    prompts: &PromptNoteTemplates,
    asked: bool,
) -> Option<String> {
    match &decision.action {
        RecoveryAction::Retry { .. } => Some(same_retry_text(decision, asked)),
        RecoveryAction::Change { changes, delay, .. } => {
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
        RecoveryAction::Escalate { .. } | RecoveryAction::Stop { .. } => None,
    }
}

fn same_retry_text(decision: &Decision, asked: bool) -> String {
    let delay = decision.delay().unwrap_or_default();
    let kind = decision.kind;
    let at_most = time_limit_text(decision);
    if delay < Duration::from_millis(100) {
        format!("retrying{at_most} ({kind})")
    } else {
        format!(
            "retrying {}{at_most} ({kind})",
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
        text.push_str(", when the limit resets");
    } else if asked {
        text.push_str(", as the server asked");
    }
    text
}

/// Renders the changes: limits first, then agent and model, then the prompt.
fn changes_text(
    changes: &[ConcreteAttemptChange],
    cost: Option<&CostEstimate>,
    prompts: &PromptNoteTemplates,
) -> String {
    let mut changes: Vec<_> = changes.iter().collect();
    changes.sort_by_key(|change| sort_rank(change));
    let words = changes.into_iter().map(|change| match change {
        ConcreteAttemptChange::Timeout {
            from_seconds,
            to_seconds,
        } => {
            let lower = from_seconds.is_some_and(|from| from > *to_seconds);
            let verb = if lower { "lowering" } else { "raising" };
            format!("{verb} timeout to {to_seconds}s")
        }
        ConcreteAttemptChange::Model { from, to } => {
            format!("switching the model from {from} to {to}{}", cost_text(cost))
        }
        ConcreteAttemptChange::Conversation(ConversationMode::Resume) => {
            "continuing the same conversation".to_owned()
        }
        ConcreteAttemptChange::Conversation(ConversationMode::Fresh) => {
            "starting a new conversation".to_owned()
        }
        ConcreteAttemptChange::Prompt(template) => match prompts.description(template) {
            Some(doing) => doing.to_owned(),
            None => format!("using the prompt template `{template}`"),
        },
        ConcreteAttemptChange::OutputLimit { .. } => "requesting shorter output".to_owned(),
        ConcreteAttemptChange::Repair { command, .. } => format!("running fix `{command}` first"),
        ConcreteAttemptChange::UserMessage(_) => "adding your message".to_owned(),
        ConcreteAttemptChange::PromptText(_) => "using your prompt".to_owned(),
    });
    format!("{}…", words.collect::<Vec<_>>().join(", "))
}

/// Renders a strategy that only changes the prompt.
fn strategy_text(decision: &Decision) -> String {
    let strategy = decision.strategy.as_deref();
    let known = strategy.and_then(|id| RecoveryKnowledge::built_in().strategy(id));
    match known {
        Some(known) => format!("modifying the prompt: {}…", known.title),
        None => "trying another strategy…".to_owned(),
    }
}

const fn sort_rank(change: &ConcreteAttemptChange) -> u8 {
    match change {
        ConcreteAttemptChange::Repair { .. } => 0,
        ConcreteAttemptChange::Timeout { .. } => 1,
        ConcreteAttemptChange::Model { .. } => 2,
        ConcreteAttemptChange::Conversation(_) => 3,
        ConcreteAttemptChange::Prompt(_)
        | ConcreteAttemptChange::UserMessage(_)
        | ConcreteAttemptChange::PromptText(_) => 4,
        ConcreteAttemptChange::OutputLimit { .. } => 5,
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
    use unstuck_core::decision::{PossiblyUnknownAmount, RandomDraw};
    use unstuck_core::{FailureKind, Timestamp};

    fn decided(kind: FailureKind, action: RecoveryAction) -> Decision {
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
            selection: Default::default(),
            draw: RandomDraw(0),
            decided_at: Timestamp::from_seconds(0),
        }
    }

    fn change(changes: Vec<ConcreteAttemptChange>, seconds: u64) -> Decision {
        let delay = Duration::from_secs(seconds);
        let until = Timestamp::from_seconds(0).after(delay);
        decided(
            FailureKind::Timeout,
            RecoveryAction::Change {
                changes,
                delay,
                until,
            },
        )
    }

    fn again(seconds: u64) -> Decision {
        let delay = Duration::from_secs(seconds);
        let until = Timestamp::from_seconds(0).after(delay);
        decided(
            FailureKind::RateLimit,
            RecoveryAction::Retry { delay, until },
        )
    }

    fn told(decision: &Decision) -> String {
        next_attempt_text(decision, &PromptNoteTemplates::embedded(), false).unwrap()
    }

    #[test]
    fn limits_come_before_the_prompt() {
        let timeout = ConcreteAttemptChange::Timeout {
            from_seconds: Some(1200),
            to_seconds: 1800,
        };
        let both = change(
            vec![ConcreteAttemptChange::Prompt("focus".into()), timeout],
            0,
        );
        assert_eq!(
            told(&both),
            "raising timeout to 1800s, simplifying the prompt…"
        );
    }

    #[test]
    fn more_expensive_model_is_shown_with_its_extra_cost() {
        let model = ConcreteAttemptChange::Model {
            from: "haiku".into(),
            to: "opus".into(),
        };
        let dearer = Decision {
            cost: Some(CostEstimate {
                amount: PossiblyUnknownAmount::Known(0.142),
                formula: String::new(),
            }),
            ..change(
                vec![
                    model,
                    ConcreteAttemptChange::Conversation(ConversationMode::Fresh),
                ],
                3,
            )
        };
        assert_eq!(
            told(&dearer),
            "switching the model from haiku to opus (about +$0.14), starting a new conversation… (in 3 s)"
        );
    }

    #[test]
    fn project_template_is_shown_by_name() {
        let own = change(vec![ConcreteAttemptChange::Prompt("hurry".into())], 0);
        assert_eq!(told(&own), "using the prompt template `hurry`…");
    }

    #[test]
    fn wait_is_shown_with_its_cause() {
        assert_eq!(told(&again(12)), "retrying in 12 s (rate_limit)");
        assert_eq!(told(&again(0)), "retrying (rate_limit)");
        let asked = next_attempt_text(&again(12), &PromptNoteTemplates::embedded(), true);
        assert_eq!(
            asked.as_deref(),
            Some("retrying in 12 s, as the server asked (rate_limit)")
        );
        let limited = Decision {
            give_up_at: Some(Timestamp::from_seconds(1800)),
            ..again(12)
        };
        assert_eq!(
            told(&limited),
            "retrying in 12 s, for at most 30 min (rate_limit)"
        );
        let stated = Decision {
            is_stated_reset: true,
            ..again(3600)
        };
        let stated = told(&stated);
        assert!(stated.starts_with("retrying at "), "{stated}");
        assert!(stated.contains("in 1 h, when the limit resets"), "{stated}");
    }
}

//! Events about decisions, waits and models.

use std::time::Duration;

use unstuck_core::decision::{
    ConcreteAttemptChange, CostEstimate, Decision, EligibleAction, EscalationReason,
    EscalationTrigger, ModelSwitch, ModelSwitchReason, NoRecoveryReason, PossiblyUnknownAmount,
    ProposedAction, RandomDraw, RecoveryAction, RecoveryActionSelection, RereadCost,
    SkippedStrategy, SuccessRates, WaitPurpose,
};
use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::event::{
    DecisionMade, EarlyWaitEndCause, EffectiveRetryLimits, Event, ModelSwitched,
    RecordedDecisionInputs, SessionParked, WaitEnded, WaitStarted,
};
use unstuck_core::knowledge::ConversationMode;
use unstuck_core::{FailureKind, RecoveryLevel};

use super::{later, session};

pub(super) fn all() -> Vec<Event> {
    let mut all: Vec<_> = actions().into_iter().map(made).collect();
    all.extend([WaitPurpose::Retry, WaitPurpose::Probe, WaitPurpose::Network].map(waiting));
    all.extend([EarlyWaitEndCause::Network, EarlyWaitEndCause::Person].map(wait_ended));
    all.push(Event::from(SessionParked {
        session: Some(session()),
        kind: FailureKind::ServerError,
        reason: "no progress for 30 min".into(),
        since: later(1),
        until: Some(later(3600)),
    }));
    let reasons = [
        ModelSwitchReason::Manual,
        ModelSwitchReason::AutoAfterRetries,
        ModelSwitchReason::ContextLimit,
    ];
    all.extend(reasons.map(model_changed));
    all
}

/// Returns every kind of action.
fn actions() -> Vec<RecoveryAction> {
    let mut all = vec![
        retry(),
        RecoveryAction::Change {
            changes: changes(),
            delay: Duration::from_millis(1500),
            until: later(60),
        },
        RecoveryAction::Escalate {
            trigger: EscalationTrigger::CostConfirmation,
            why: EscalationReason::CostlierModel,
            proposed: Some(proposed()),
        },
    ];
    let stops = [
        NoRecoveryReason::PolicyOff,
        NoRecoveryReason::Code,
        NoRecoveryReason::NotAFailure,
        NoRecoveryReason::InputNotReplayable,
        NoRecoveryReason::OuterRetries,
        NoRecoveryReason::Interactive,
    ];
    all.extend(stops.map(|why| RecoveryAction::Stop { why }));
    all
}

pub(super) fn retry() -> RecoveryAction {
    RecoveryAction::Retry {
        delay: Duration::from_millis(1500),
        until: later(60),
    }
}

/// Returns every kind of change.
pub(super) fn changes() -> Vec<ConcreteAttemptChange> {
    vec![
        ConcreteAttemptChange::Prompt("focus".into()),
        ConcreteAttemptChange::Timeout {
            from_seconds: Some(1200),
            to_seconds: 1800,
        },
        ConcreteAttemptChange::OutputLimit { factor: 0.85 },
        ConcreteAttemptChange::Model {
            from: "claude-sonnet-5-5".into(),
            to: "claude-opus-5-5".into(),
        },
        ConcreteAttemptChange::Conversation(ConversationMode::Fresh),
        ConcreteAttemptChange::Conversation(ConversationMode::Resume),
        ConcreteAttemptChange::Repair {
            id: "r1".into(),
            command: "npm ci".into(),
        },
        ConcreteAttemptChange::UserMessage("use the other database".into()),
        ConcreteAttemptChange::PromptText("Fix it.".into()),
    ]
}

pub(super) fn proposed() -> ProposedAction {
    ProposedAction {
        strategy: "next_model".into(),
        changes: changes(),
    }
}

pub(super) fn cost() -> CostEstimate {
    CostEstimate {
        amount: PossiblyUnknownAmount::Known(0.142),
        formula: "100k × 1.42 USD per million".into(),
    }
}

pub(super) fn decision(action: RecoveryAction) -> Decision {
    Decision {
        kind: FailureKind::RateLimit,
        level: Some(RecoveryLevel::Alternative),
        action,
        strategy: Some("reduce_scope".into()),
        reason: "Rate limited: trying again in 1.5 s (retry 1 of 3).".into(),
        attempt: 1,
        max_attempts: 3,
        skipped: vec![SkippedStrategy {
            strategy: "same".into(),
            why: "3 of 3 retries are used".into(),
        }],
        cost: Some(cost()),
        is_stated_reset: true,
        give_up_at: Some(later(1800)),
        wait_purpose: WaitPurpose::Probe,
        selection: RecoveryActionSelection {
            eligible: vec![
                EligibleAction {
                    action: "reduce_scope".into(),
                    confidence: Some(0.75),
                },
                EligibleAction {
                    action: "escalate".into(),
                    confidence: None,
                },
            ],
            chosen: "reduce_scope".into(),
            probability: 1.0,
        },
        draw: RandomDraw(0x0123_4567_89ab_cdef),
        decided_at: later(3),
    }
}

fn made(action: RecoveryAction) -> Event {
    let mut odds = SuccessRates::empty();
    odds.record(FailureKind::RateLimit, "reduce_scope", true);
    Event::from(Box::new(DecisionMade {
        session: Some(session()),
        number: 2,
        decision: decision(action),
        inputs: RecordedDecisionInputs {
            knowledge: "0.1.0".into(),
            policy_hash: "cbf29ce484222325".into(),
            limits: EffectiveRetryLimits {
                retries: 3,
                give_up_after_ms: Some(1_800_000),
                retries_from: "template standard".into(),
                backoff_base: 0.5,
                backoff_multiplier: 2.0,
                max_backoff: 60.0,
            },
            success_rates: odds,
            capabilities: vec!["prompt".into(), "timeout".into()],
            upstream: serde_json::json!({ "breaker": "open" }),
        },
    }))
}

fn waiting(wait_for: WaitPurpose) -> Event {
    Event::from(WaitStarted {
        session: Some(session()),
        until: later(60),
        reason: "a rate limit".into(),
        is_stated: true,
        source: Some(RetryAfterSource::Body),
        wait_purpose: wait_for,
        give_up_at: Some(later(1800)),
        reread: Some(reread()),
    })
}

pub(super) fn reread() -> RereadCost {
    RereadCost {
        tokens: 42_000,
        usd: Some(0.15),
    }
}

fn wait_ended(by: EarlyWaitEndCause) -> Event {
    let session = Some(session());
    Event::from(WaitEnded { session, by })
}

fn model_changed(reason: ModelSwitchReason) -> Event {
    Event::from(ModelSwitched {
        session: Some(session()),
        switch: ModelSwitch {
            from_model: "claude-sonnet-5-5".into(),
            to_model: "claude-opus-5-5".into(),
            reason,
            timestamp: later(3),
            cost_estimate: Some(0.142),
        },
    })
}

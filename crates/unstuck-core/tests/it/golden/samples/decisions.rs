//! Events about decisions, waits and models.

use std::time::Duration;

use unstuck_core::decision::{
    Amount, AskWhy, Changed, Chosen, CostEstimate, Decision, Draw, EscalationReason,
    EscalationRecord, FellThrough, Odds, Proposed, RereadCost, StopWhy, Trigger, WaitFor,
};
use unstuck_core::diagnosis::WaitSource;
use unstuck_core::event::{
    DecisionMade, Event, LimitsInForce, MadeFrom, ModelEscalated, SessionParked, WaitEnded,
    WaitEndedBy, WaitingUntil,
};
use unstuck_core::knowledge::SessionChoice;
use unstuck_core::{Kind, Level};

use super::{later, session};

pub(super) fn all() -> Vec<Event> {
    let mut all: Vec<_> = actions().into_iter().map(made).collect();
    all.extend([WaitFor::Retry, WaitFor::Probe, WaitFor::Network].map(waiting));
    all.extend([WaitEndedBy::Network, WaitEndedBy::Person].map(wait_ended));
    all.push(Event::from(SessionParked {
        session: Some(session()),
        kind: Kind::ServerError,
        reason: "no progress for 30 min".into(),
        since: later(1),
        until: Some(later(3600)),
    }));
    let reasons = [
        EscalationReason::Manual,
        EscalationReason::AutoAfterRetries,
        EscalationReason::ContextLimit,
    ];
    all.extend(reasons.map(model_changed));
    all
}

/// Every kind of action.
fn actions() -> Vec<Chosen> {
    let mut all = vec![
        retry(),
        Chosen::Change {
            changes: changes(),
            delay: Duration::from_millis(1500),
            until: later(60),
        },
        Chosen::Ask {
            trigger: Trigger::CostConfirmation,
            why: AskWhy::DearerModel,
            proposed: Some(proposed()),
        },
    ];
    let stops = [
        StopWhy::PolicyOff,
        StopWhy::Code,
        StopWhy::NotAFailure,
        StopWhy::InputSpent,
        StopWhy::OuterRetries,
        StopWhy::Interactive,
    ];
    all.extend(stops.map(|why| Chosen::Stop { why }));
    all
}

pub(super) fn retry() -> Chosen {
    Chosen::Retry {
        delay: Duration::from_millis(1500),
        until: later(60),
    }
}

/// Every kind of change.
pub(super) fn changes() -> Vec<Changed> {
    vec![
        Changed::Prompt("focus".into()),
        Changed::Timeout {
            from_seconds: Some(1200),
            to_seconds: 1800,
        },
        Changed::OutputLimit { factor: 0.85 },
        Changed::Model {
            from: "claude-sonnet-5-5".into(),
            to: "claude-opus-5-5".into(),
        },
        Changed::Session(SessionChoice::Fresh),
        Changed::Session(SessionChoice::Resume),
        Changed::Repair {
            id: "r1".into(),
            command: "npm ci".into(),
        },
        Changed::Words("use the other database".into()),
        Changed::Text("Fix it.".into()),
    ]
}

pub(super) fn proposed() -> Proposed {
    Proposed {
        strategy: "next_model".into(),
        changes: changes(),
    }
}

pub(super) fn cost() -> CostEstimate {
    CostEstimate {
        amount: Amount::Known(0.142),
        formula: "100k × 1.42 USD per million".into(),
    }
}

pub(super) fn decision(action: Chosen) -> Decision {
    Decision {
        kind: Kind::RateLimit,
        level: Some(Level::Alternative),
        action,
        strategy: Some("reduce_scope".into()),
        reason: "Rate limited: trying again in 1.5 s (retry 1 of 3).".into(),
        attempt: 1,
        of: 3,
        fell_through: vec![FellThrough {
            strategy: "same".into(),
            why: "3 of 3 retries are used".into(),
        }],
        cost: Some(cost()),
        stated: true,
        give_up_at: Some(later(1800)),
        wait_for: WaitFor::Probe,
        draw: Draw(0x0123_4567_89ab_cdef),
        at: later(3),
    }
}

fn made(action: Chosen) -> Event {
    let mut odds = Odds::none();
    odds.record(Kind::RateLimit, "reduce_scope", true);
    Event::from(Box::new(DecisionMade {
        session: Some(session()),
        number: 2,
        decision: decision(action),
        made_from: MadeFrom {
            knowledge: "0.1.0".into(),
            policy_hash: "cbf29ce484222325".into(),
            limits: LimitsInForce {
                retries: 3,
                give_up_after_ms: Some(1_800_000),
                retries_from: "template standard".into(),
                backoff_base: 0.5,
                backoff_multiplier: 2.0,
                max_backoff: 60.0,
            },
            odds,
            can: vec!["prompt".into(), "timeout".into()],
            upstream: serde_json::json!({ "breaker": "open" }),
        },
    }))
}

fn waiting(wait_for: WaitFor) -> Event {
    Event::from(WaitingUntil {
        session: Some(session()),
        until: later(60),
        reason: "a rate limit".into(),
        stated: true,
        source: Some(WaitSource::Body),
        wait_for,
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

fn wait_ended(by: WaitEndedBy) -> Event {
    let session = Some(session());
    Event::from(WaitEnded { session, by })
}

fn model_changed(reason: EscalationReason) -> Event {
    Event::from(ModelEscalated {
        session: Some(session()),
        change: EscalationRecord {
            from_model: "claude-sonnet-5-5".into(),
            to_model: "claude-opus-5-5".into(),
            reason,
            timestamp: later(3),
            cost_estimate: Some(0.142),
        },
    })
}

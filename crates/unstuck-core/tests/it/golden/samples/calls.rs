//! Events about calls of LLM APIs.

use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::event::{
    ApiCallOutcome, ApiCallRecord, CallFailed, CallHeld, CallResumed, Event, RunId, SkippedUpstream,
};
use unstuck_core::{FailureKind, FailureLayer, RecoveryLevel};

use super::{RUN, decisions, diagnosis, later, runs, session};

pub(super) fn all() -> Vec<Event> {
    let held = RetryAfterSource::ALL.map(|source| {
        Event::from(CallHeld {
            session: session(),
            call: "c1".into(),
            until: later(60),
            kind: FailureKind::RateLimitTimed,
            source,
        })
    });
    let resumed = Event::from(CallResumed {
        session: session(),
        call: "c1".into(),
    });
    let mut all = vec![failed()];
    all.extend(held);
    all.push(resumed);
    all.extend(ApiCallOutcome::ALL.map(finished));
    all
}

fn failed() -> Event {
    Event::from(Box::new(CallFailed {
        session: session(),
        call: "c1".into(),
        number: 1,
        upstream: "anthropic".into(),
        model: Some("claude-sonnet-5-5".into()),
        status: Some(429),
        diagnosis: diagnosis(
            FailureKind::RateLimit,
            FailureLayer::Api,
            Some(RecoveryLevel::Same),
        ),
        decision: decisions::decision(decisions::retry()),
        fallback: Some("anthropic-2".into()),
        skipped_upstreams: vec![SkippedUpstream {
            upstream: "openai".into(),
            model: Some("gpt-5".into()),
            why: "it speaks another protocol".into(),
        }],
        policy_hash: "cbf29ce484222325".into(),
        conversation: Some("0f1e".into()),
    }))
}

fn finished(outcome: ApiCallOutcome) -> Event {
    Event::from(Box::new(ApiCallRecord {
        call: "c1".into(),
        run: RunId::new(RUN),
        session: session(),
        at: later(1),
        protocol: "anthropic".into(),
        endpoint: "messages".into(),
        upstream: "anthropic".into(),
        requested_model: Some("claude-sonnet-5-5".into()),
        model: Some("claude-haiku-5-5".into()),
        is_stream: true,
        outcome,
        status: 200,
        kind: Some(FailureKind::RateLimit),
        attempts: 2,
        waited_ms: 1500,
        first_byte_ms: 400,
        duration_ms: 2000,
        sent_bytes: 4096,
        tokens: Some(runs::tokens()),
        cost_usd: Some(0.25),
    }))
}

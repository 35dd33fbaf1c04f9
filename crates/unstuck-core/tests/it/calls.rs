//! Call events of a gateway do not disturb the state of a supervised run.

use std::time::Duration;

use unstuck_core::agent::Agents;
use unstuck_core::decision::{
    Decision, ModelSwitch, ModelSwitchReason, RandomDraw, RecoveryAction,
};
use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord};
use unstuck_core::event::{
    AttemptEnd, AttemptFailed, AttemptStarted, AttemptSucceeded, AttemptUsage, CallFailed,
    CallHeld, CallResumed, ModelSwitched, OutputExcerpt, RunFinished, RunKind, RunOutcome,
    RunStarted, SessionSpec, VERSION,
};
use unstuck_core::views::{
    NextActionActor, RunProjection, RunStatus, RunSummary, RunTimeline, SessionStatusSummary,
    SessionSummary, UsageGap,
};
use unstuck_core::{
    Event, EventRecord, Failure, FailureKind, FailureLayer, RecoveryLevel, RetryPolicy, RunId,
    SessionState, Timestamp,
};

use crate::diagnose;

pub(crate) fn run() -> RunId {
    RunId::new("k3v9x0m2qa")
}

pub(crate) fn second(second: i64) -> Timestamp {
    Timestamp::from_seconds(1_794_777_000 + second)
}

pub(crate) fn started(agent: &str) -> Event {
    Event::from(Box::new(RunStarted {
        head: None,
        project: "/p".into(),
        kind: RunKind::Command(Box::new(SessionSpec {
            cwd: "/p".into(),
            command: vec![agent.into()],
            agent: None,
            model: Some("small".into()),
            session: run().session_id(1),
            policy: RetryPolicy::default(),
            origins: Default::default(),
            timeout_ms: None,
            idle_timeout_ms: None,
            options: serde_json::Value::Null,
            unrepeatable_reason: None,
            knowledge: "test".into(),
        })),
    }))
}

pub(crate) fn attempt(number: u32) -> Event {
    Event::from(Box::new(AttemptStarted {
        session: run().session_id(1),
        number,
        command: vec!["claude".into()],
        model: Some("small".into()),
        timeout_ms: None,
        cause: None,
        changes: Vec::new(),
        agent_session: None,
        reaper: None,
        tree: None,
    }))
}

pub(crate) fn end(number: u32, cost_usd: Option<f64>) -> AttemptEnd {
    AttemptEnd {
        session: run().session_id(1),
        number,
        exit_code: Some(1),
        signal: None,
        limit: None,
        duration_ms: 9_000,
        stdout_bytes: 0,
        stderr_bytes: 0,
        leftover_processes: 0,
        model: None,
        cause: None,
        usage: AttemptUsage {
            cost_usd,
            ..AttemptUsage::default()
        },
        tree: None,
        last_progress: None,
        failing_since: None,
    }
}

fn overloaded() -> unstuck_core::Diagnosis {
    diagnose(&Failure {
        status: Some(529),
        ..Failure::new(FailureLayer::Api)
    })
}

pub(crate) fn failed(number: u32) -> Event {
    Event::from(Box::new(AttemptFailed {
        end: end(number, None),
        diagnosis: diagnose(&Failure::new(FailureLayer::Agent)),
        validation_errors: Vec::new(),
        excerpt: OutputExcerpt::default(),
        check: None,
        lost_conversation: false,
    }))
}

pub(crate) fn succeeded(number: u32) -> Event {
    Event::from(Box::new(AttemptSucceeded {
        end: end(number, Some(0.5)),
        truncated: false,
    }))
}

pub(crate) fn finished() -> Event {
    Event::from(RunFinished {
        outcome: RunOutcome::Recovered,
        exit_code: 0,
        reason: "done".into(),
        attempts: 2,
        retry_count: 1,
        recovery_level: Some(RecoveryLevel::Same),
        cost_usd: Some(0.5),
        duration_ms: 30_000,
    })
}

pub(crate) fn call_failed() -> Event {
    let delay = Duration::from_secs(1);
    Event::from(Box::new(CallFailed {
        session: run().session_id(1),
        call: "c1".into(),
        number: 1,
        upstream: "first".into(),
        model: Some("small".into()),
        status: Some(529),
        diagnosis: overloaded(),
        decision: Decision {
            kind: FailureKind::ServerOverloaded,
            level: Some(RecoveryLevel::Alternative),
            action: RecoveryAction::Retry {
                delay,
                until: second(1),
            },
            strategy: None,
            reason: "trying again in 1 s".into(),
            attempt: 1,
            max_attempts: 3,
            skipped: Vec::new(),
            cost: None,
            is_stated_reset: false,
            give_up_at: None,
            wait_purpose: Default::default(),
            selection: Default::default(),
            draw: RandomDraw(1),
            decided_at: second(0),
        },
        fallback: None,
        skipped_upstreams: Vec::new(),
        policy_hash: "h".into(),
        conversation: None,
    }))
}

pub(crate) fn call_finished() -> Event {
    Event::from(Box::new(ApiCallRecord {
        call: "c1".into(),
        run: run(),
        session: run().session_id(1),
        at: second(0),
        protocol: "anthropic".into(),
        endpoint: "messages".into(),
        upstream: "first".into(),
        requested_model: Some("small".into()),
        model: Some("small".into()),
        is_stream: true,
        outcome: ApiCallOutcome::Recovered,
        status: 200,
        kind: Some(FailureKind::ServerOverloaded),
        attempts: 2,
        waited_ms: 1_000,
        first_byte_ms: 1_400,
        duration_ms: 2_000,
        sent_bytes: 100,
        tokens: None,
        cost_usd: Some(9.0),
    }))
}

fn moved() -> Event {
    Event::from(ModelSwitched {
        session: Some(run().session_id(1)),
        switch: ModelSwitch {
            from_model: "small".into(),
            to_model: "large".into(),
            reason: ModelSwitchReason::AutoAfterRetries,
            timestamp: second(0),
            cost_estimate: None,
        },
    })
}

pub(crate) fn log(events: Vec<(i64, Event)>) -> Vec<EventRecord> {
    let numbered = (1..).zip(events);
    let recorded = numbered.map(|(seq, (at, event))| EventRecord {
        version: VERSION,
        run: run(),
        seq,
        at: second(at),
        event,
    });
    recorded.collect()
}

fn driven() -> Vec<(i64, Event)> {
    vec![
        (0, started("claude")),
        (0, attempt(1)),
        (10, failed(1)),
        (20, attempt(2)),
        (30, succeeded(2)),
        (30, finished()),
    ]
}

/// Returns the same without the times of the latest events.
fn timeless(view: &RunSummary) -> RunSummary {
    RunSummary {
        seq: 0,
        updated: second(0),
        ..view.clone()
    }
}

/// A call that fails during an attempt does not change the attempt, wherever it is in the log.
#[test]
fn calls_do_not_disturb_a_supervised_run() {
    let plain = log(driven());
    let (fold, recovery) = (
        RunProjection::from_events(&plain).unwrap(),
        SessionState::from_events(&plain).unwrap(),
    );
    for place in 2..=driven().len() {
        let mut events = driven();
        let at = events[place - 1].0;
        let noted = [call_failed(), call_finished(), moved()];
        events.splice(place..place, noted.map(|event| (at, event)));
        let noted = log(events);
        let again = RunProjection::from_events(&noted).unwrap();
        assert_eq!(timeless(&again.summary), timeless(&fold.summary), "{place}");
        assert_eq!(again.sessions, fold.sessions, "{place}");
        assert_eq!(again.repairs, fold.repairs, "{place}");
        assert_eq!(again.open_escalations, fold.open_escalations, "{place}");
        assert_eq!(
            SessionState::from_events(&noted).unwrap(),
            recovery,
            "{place}"
        );
        assert_eq!(
            UsageGap::from_events(&noted),
            UsageGap::from_events(&plain),
            "{place}"
        );
    }
}

/// Call events arrive a moment later and are shown with the attempt in which they happened.
#[test]
fn calls_are_shown_with_the_attempt_in_which_they_happened() {
    let mut events = driven();
    let late = [(5, call_failed()), (6, call_finished()), (6, moved())];
    events.splice(4..4, late);
    let timeline = RunTimeline::from_events(&log(events)).unwrap();
    let [first, second] = timeline.attempts.as_slice() else {
        panic!("{:?}", timeline.attempts);
    };
    assert_eq!(first.calls.len(), 1);
    assert_eq!(
        first.calls[0].failed_attempts[0].kind,
        FailureKind::ServerOverloaded
    );
    let ended = first.calls[0].finished.as_ref().unwrap();
    assert_eq!(ended.outcome, ApiCallOutcome::Recovered);
    assert_eq!(first.gateway_model_switches[0].to_model, "large");
    assert_eq!(first.model_switch, None);
    assert!(second.calls.is_empty() && second.gateway_model_switches.is_empty());
    assert!(timeline.calls.is_empty());
}

/// A client's own session has no attempts: its calls determine its status.
#[test]
fn client_session_status_follows_from_its_calls() {
    let events = vec![
        (0, started("(gateway)")),
        (1, call_failed()),
        (2, call_finished()),
        (2, moved()),
    ];
    let timeline = RunTimeline::from_events(&log(events)).unwrap();
    let view = &timeline.summary;
    assert_eq!(view.kind, Some(FailureKind::ServerOverloaded));
    assert_eq!((view.error_count, view.retry_count), (1, 1));
    assert_eq!(view.model.as_deref(), Some("large"));
    assert_eq!(
        view.cost_usd, 0.0,
        "the calls themselves are counted elsewhere"
    );
    assert_eq!(timeline.calls.len(), 1);
    assert_eq!(timeline.model_switches.len(), 1);
}

/// An agent that reports its cost has included its calls.
#[test]
fn calls_are_counted_only_for_unreported_usage() {
    let times = UsageGap::from_events(&log(driven()));
    let told: Vec<_> = times
        .iter()
        .map(|time| (time.from, time.to, time.lacks_cost, time.lacks_tokens))
        .collect();
    let first = (second(0), Some(second(10)), true, true);
    let last = (second(20), Some(second(30)), false, true);
    assert_eq!(told, [first, last]);
}

#[test]
fn agents_are_recognized_by_their_user_agent() {
    let agents = Agents::built_in();
    let id = |client: &str| {
        agents
            .by_user_agent(client)
            .map(|agent| agent.id().to_owned())
    };
    assert_eq!(
        id("claude-cli/2.0.31 (external, cli)").as_deref(),
        Some("claude")
    );
    assert_eq!(
        id("codex_cli_rs/0.50.0 (Ubuntu 24.4.0; x86_64) xterm").as_deref(),
        Some("codex")
    );
    assert_eq!(
        id("GeminiCLI/0.9.0/gemini-3-pro (linux; x64)").as_deref(),
        Some("gemini")
    );
    assert_eq!(
        id("GeminiCLI-tui/0.61.0/gemini-3-pro (linux; x64; terminal)").as_deref(),
        Some("gemini")
    );
    assert_eq!(
        id("CloudCodeVSCode/0.61.0 (aidev_client; os_type=Linux; proxy_client=geminicli)")
            .as_deref(),
        Some("gemini")
    );
    assert_eq!(id("GeminiCLI2/1.0"), None);
    assert_eq!(id("ai-sdk/5.0 opencode/1.0.2").as_deref(), Some("opencode"));
    assert_eq!(id("OpenAI/Python 1.2.3"), None);
    assert_eq!(id(""), None);
}

/// A gateway client without a supervisor is waiting while one of its calls is held, and running when it is sent.
#[test]
fn gateway_client_waits_with_its_calls() {
    let held = |call: &str, until| {
        Event::from(CallHeld {
            session: run().session_id(1),
            call: call.into(),
            until: second(until),
            kind: FailureKind::RateLimit,
            source: RetryAfterSource::Header,
        })
    };
    let resumed = |call: &str| {
        Event::from(CallResumed {
            session: run().session_id(1),
            call: call.into(),
        })
    };
    let mut events = vec![started("(gateway)")];
    let state = |events: &[Event]| {
        let recorded = (1..).zip(events).map(|(seq, event)| EventRecord {
            version: VERSION,
            run: run(),
            seq,
            at: second(i64::try_from(seq).unwrap()),
            event: event.clone(),
        });
        let recorded: Vec<_> = recorded.collect();
        let of_run =
            SessionStatusSummary::for_run(&RunSummary::from_events(&recorded).unwrap(), true);
        let of_session =
            SessionStatusSummary::for_session(&SessionSummary::from_events(&recorded)[0], false);
        assert_eq!(of_run, of_session);
        of_run
    };
    events.push(held("c2", 90));
    events.push(held("c3", 60));
    let waits = state(&events);
    assert_eq!(
        (waits.state, waits.reason, waits.until, waits.source),
        (
            RunStatus::Waiting,
            Some(FailureKind::RateLimit),
            Some(second(60)),
            Some(RetryAfterSource::Header)
        )
    );
    assert_eq!(waits.next.unwrap().actor, NextActionActor::Gateway);
    events.push(resumed("c3"));
    assert_eq!(state(&events).until, Some(second(90)));
    events.push(resumed("c2"));
    assert_eq!(state(&events).state, RunStatus::Running);
    events.push(call_failed());
    assert_eq!(state(&events).state, RunStatus::Running, "its wait is over");
    events.push(held("c1", 90));
    events.push(call_finished());
    assert_eq!(state(&events).state, RunStatus::Running);
}

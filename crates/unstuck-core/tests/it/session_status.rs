//! The five status fields of a session, derived from its events and whether its supervisor is alive.

use unstuck_core::decision::WaitPurpose;
use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::event::{AttemptFailed, OutputExcerpt, WaitStarted};
use unstuck_core::views::{
    NextActionActor, NextActionAndTime, RunStatus, RunSummary, SessionNextAction,
    SessionStatusSummary, SessionSummary,
};
use unstuck_core::{Event, EventRecord, Failure, FailureKind};

use crate::calls::{
    attempt, call_failed, call_finished, end, finished, log, run, second, started, succeeded,
};
use crate::diagnose;

/// Returns the status of the run, which is that of its only session.
fn status(events: &[EventRecord], is_alive: bool) -> SessionStatusSummary {
    let view = RunSummary::from_events(events).unwrap();
    let of_run = SessionStatusSummary::for_run(&view, is_alive);
    let session = SessionSummary::from_events(events).pop().unwrap();
    let is_orphaned = view.finished.is_none() && !is_alive;
    assert_eq!(
        of_run,
        SessionStatusSummary::for_session(&session, is_orphaned)
    );
    of_run
}

fn failed_with(failure: &Failure) -> Event {
    Event::from(Box::new(AttemptFailed {
        end: end(1, None),
        diagnosis: diagnose(failure),
        validation_errors: Vec::new(),
        excerpt: OutputExcerpt::default(),
        check: None,
        lost_conversation: false,
    }))
}

fn waiting(seconds: i64, stated: bool, parked: bool) -> Event {
    Event::from(WaitStarted {
        session: Some(run().session_id(1)),
        until: second(seconds),
        reason: "a wait".into(),
        is_stated: stated,
        wait_purpose: if parked {
            WaitPurpose::Probe
        } else {
            WaitPurpose::Retry
        },
        give_up_at: None,
        source: None,
        reread: None,
    })
}

fn step(
    who: NextActionActor,
    action: SessionNextAction,
    at: Option<i64>,
) -> Option<NextActionAndTime> {
    Some(NextActionAndTime {
        actor: who,
        action,
        at: at.map(second),
    })
}

#[test]
fn stated_limit_is_a_wait_with_its_source() {
    let limit = Failure::agent("claude")
        .with_exit_code(1)
        .with_stdout("Claude usage limit reached. Your limit will reset in 5 hours.");
    let events = log(vec![
        (0, started("claude")),
        (1, attempt(1)),
        (2, failed_with(&limit)),
        (2, waiting(18_000, true, false)),
    ]);
    let expected = SessionStatusSummary {
        state: RunStatus::Waiting,
        reason: Some(FailureKind::RateLimitTimed),
        until: Some(second(18_000)),
        source: Some(RetryAfterSource::Screen),
        next: step(
            NextActionActor::Unstuck,
            SessionNextAction::Retry,
            Some(18_000),
        ),
    };
    assert_eq!(status(&events, true), expected);
    // The limit still applies when the process is gone, but nothing happens at its end.
    let crashed = SessionStatusSummary {
        state: RunStatus::Crashed,
        next: step(NextActionActor::Human, SessionNextAction::Resume, None),
        ..expected
    };
    assert_eq!(status(&events, false), crashed);
}

#[test]
fn unstated_wait_is_a_guess() {
    let reset = Failure::tool("curl")
        .with_exit_code(56)
        .with_stderr("curl: (56) Recv failure: Connection reset by peer");
    let events = log(vec![
        (0, started("curl")),
        (1, attempt(1)),
        (2, failed_with(&reset)),
        (2, waiting(3, false, false)),
    ]);
    let status = status(&events, true);
    assert_eq!(status.source, Some(RetryAfterSource::Guess));
    assert_eq!(status.reason, Some(FailureKind::NetworkError));
}

#[test]
fn parked_session_waits_for_a_probe() {
    let events = log(vec![
        (0, started("claude")),
        (1, attempt(1)),
        (2, failed_with(&Failure::api("anthropic").with_status(529))),
        (2, waiting(300, false, true)),
    ]);
    let next = step(
        NextActionActor::Unstuck,
        SessionNextAction::Probe,
        Some(300),
    );
    assert_eq!(status(&events, true).next, next);
}

#[test]
fn call_held_by_the_gateway_is_a_wait_until_it_ends() {
    let mut events = vec![(0, started("claude")), (0, attempt(1)), (0, call_failed())];
    let held = status(&log(events.clone()), true);
    assert_eq!(
        held,
        SessionStatusSummary {
            state: RunStatus::Waiting,
            reason: Some(FailureKind::ServerOverloaded),
            until: Some(second(1)),
            source: Some(RetryAfterSource::Guess),
            next: step(NextActionActor::Gateway, SessionNextAction::Retry, Some(1)),
        }
    );
    for over in [call_finished(), succeeded(1), attempt(2)] {
        let mut events = events.clone();
        events.push((2, over));
        let running = status(&log(events), true);
        assert_eq!(running.state, RunStatus::Running);
        assert_eq!((running.reason, running.until), (None, None));
        assert_eq!(
            running.next,
            step(NextActionActor::Agent, SessionNextAction::Work, None)
        );
    }
    events.push((2, finished()));
    let done = status(&log(events), false);
    assert_eq!((done.state, done.next), (RunStatus::Recovered, None));
}

#[test]
fn killed_supervisor_is_a_crash_and_not_a_run() {
    let events = log(vec![(0, started("claude")), (0, attempt(1))]);
    assert_eq!(status(&events, true).state, RunStatus::Running);
    let crashed = status(&events, false);
    assert_eq!(crashed.state, RunStatus::Crashed);
    assert_eq!(
        crashed.next,
        step(NextActionActor::Human, SessionNextAction::Resume, None)
    );
}

#[test]
fn five_fields_have_stable_names() {
    let events = log(vec![
        (0, started("claude")),
        (0, attempt(1)),
        (0, call_failed()),
    ]);
    let json = serde_json::to_value(status(&events, true)).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "state": "waiting",
            "reason": "server_overloaded",
            "until": second(1),
            "source": "guess",
            "next": { "actor": "gateway", "action": "retry", "at": second(1) },
        })
    );
}

#[test]
fn source_of_a_wait_is_where_it_is_stated() {
    let limited = || Failure::api("openai").with_status(429);
    let said = |text: &str| {
        Failure::agent("claude")
            .with_exit_code(1)
            .with_stdout(text)
            .with_stderr("")
    };
    let limit = "Claude usage limit reached. Your limit will reset in 5 hours.";
    let result = format!(r#"{{"type":"result","is_error":true,"result":"{limit}"}}"#);
    for (failure, source) in [
        (
            limited().with_header("retry-after", "20"),
            RetryAfterSource::Header,
        ),
        (
            limited().with_body("Please try again in 20s."),
            RetryAfterSource::Body,
        ),
        (said(limit), RetryAfterSource::Screen),
        (said(&result), RetryAfterSource::Event),
    ] {
        let diagnosis = diagnose(&failure);
        assert_eq!(diagnosis.retry_after_source, Some(source), "{failure:?}");
    }
    assert_eq!(diagnose(&limited()).retry_after_source, None);
}

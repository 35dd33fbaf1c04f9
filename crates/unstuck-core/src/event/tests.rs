use super::*;
use crate::decision::RetryPolicy;

fn started() -> Event {
    Event::from(Box::new(RunStarted {
        head: None,
        project: "/p".into(),
        kind: RunKind::Command(Box::new(SessionSpec {
            cwd: "/p/sub".into(),
            command: vec!["claude".into(), "-p".into(), "x".into()],
            agent: Some("claude".into()),
            model: None,
            session: RunId::new("k3v9x0m2qa").session_id(1),
            policy: RetryPolicy::default(),
            origins: [("policy".to_owned(), "template standard".to_owned())].into(),
            timeout_ms: Some(1000),
            idle_timeout_ms: None,
            options: serde_json::json!({"tty": true}),
            unrepeatable_reason: None,
            knowledge: "0.1.0".into(),
        })),
    }))
}

fn recorded(event: Event) -> EventRecord {
    EventRecord {
        version: VERSION,
        run: RunId::new("k3v9x0m2qa"),
        seq: 1,
        at: Timestamp::from_seconds(1_794_777_000),
        event,
    }
}

#[test]
fn an_event_is_one_line_and_round_trips() {
    let one = recorded(started());
    let line = serde_json::to_string(&one).unwrap();
    assert!(line.starts_with(
        r#"{"v":2,"run":"k3v9x0m2qa","seq":1,"at":"2026-11-15T21:10:00Z","event":"run_started","#
    ));
    assert!(!line.contains('\n'));
    assert_eq!(serde_json::from_str::<EventRecord>(&line).unwrap(), one);
}

#[test]
fn an_event_of_a_newer_version_is_kept_verbatim() {
    let line = r#"{"v":2,"run":"r","seq":9,"at":"2026-11-15T21:10:00Z","event":"run_started","shape":["new"]}"#;
    let one: EventRecord = serde_json::from_str(line).unwrap();
    assert!(
        matches!(one.event, Event::Unknown(_)),
        "its fields are not those known here"
    );
    assert_eq!(one.event.name(), "run_started");
    assert_eq!(serde_json::to_string(&one).unwrap(), line);
}

#[test]
fn a_line_without_an_event_is_rejected() {
    for line in [
        "{}",
        "[]",
        r#"{"v":1,"run":"r","seq":-1,"at":"x","event":"y"}"#,
    ] {
        assert!(serde_json::from_str::<EventRecord>(line).is_err(), "{line}");
    }
}

/// S3-31 to S3-36: the names of the events about repairs.
#[test]
fn repair_events_have_the_agreed_names() {
    for name in [
        "run_started",
        "attempt_started",
        "attempt_failed",
        "decision_made",
        "recovery_proposed",
        "recovery_approved",
        "recovery_executed",
        "recovery_failed",
        "recovery_escalated",
        "recovery_resolved",
        "model_escalated",
        "waiting_until",
        "attempt_succeeded",
        "config_reloaded",
        "config_rejected",
        "run_finished",
    ] {
        assert!(Event::NAMES.contains(&name), "{name}");
    }
}

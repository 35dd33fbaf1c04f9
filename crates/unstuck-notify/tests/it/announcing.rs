//! Messages for events.

use unstuck_core::event::RunId;
use unstuck_notify::{
    NotificationEvent, NotificationMessage, NotificationSubscriptions, WebhookTarget,
};
use unstuck_store::NewOutboxMessage;

use crate::samples::{START, answered, asked, ended, failed, fold, hook, started};

fn everyone() -> NotificationSubscriptions {
    let told = |on: NotificationEvent| {
        hook(
            on,
            WebhookTarget::unsigned_json(format!("https://example.org/{on}")),
        )
    };
    NotificationSubscriptions {
        list: NotificationEvent::ALL.map(told).into(),
        store_option: " --store /x/y.db".into(),
    }
}

fn message(outgoing: &NewOutboxMessage) -> NotificationMessage {
    serde_json::from_value(outgoing.body.clone()).unwrap()
}

/// S3-24: an escalation is sent to the targets in `webhooks.on_escalation`, with all that is needed to answer.
#[test]
fn escalation_message_contains_its_answers() {
    let run = RunId::new("k3v9x0m2qa");
    let before = fold(
        &run,
        &[started(&run), failed(&run, "f1", "401 token expired")],
    );
    let told = everyone().build_messages(&before, &[asked(&run, "Sign in again.")], START);
    let [one] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!((one.event, &*one.event_name), (0, "escalation"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&message(one)).unwrap(), @r#"
    {
      "id": "",
      "type": "escalation",
      "timestamp": "2026-11-15T21:20:09Z",
      "run": "k3v9x0m2qa",
      "project": "/home/me/shop",
      "role": null,
      "loop_id": "k3v9x0m2qa",
      "iteration": 0,
      "request": "k3v9x0m2qa-e1",
      "question": "k3v9x0m2qa-e1",
      "kind": "auth_expired",
      "trigger": "HICCUP",
      "fingerprint": "f1",
      "outcome": null,
      "state": {
        "state": "awaiting_human",
        "reason": "auth_expired",
        "until": null,
        "source": null,
        "next": {
          "actor": "human",
          "action": "answer",
          "at": null
        }
      },
      "title": "shop: claude needs your input (auth_expired)",
      "text": "Sign in again.",
      "evidence": "401 token expired",
      "proposal": null,
      "answers": {
        "manual": "unstuck resolve k3v9x0m2qa-e1 --store /x/y.db",
        "skip": "unstuck skip k3v9x0m2qa-e1 --store /x/y.db",
        "explain": "unstuck explain k3v9x0m2qa --store /x/y.db"
      },
      "url": null,
      "count": 1,
      "messages": []
    }
    "#);
}

#[test]
fn each_event_reaches_its_subscribers() {
    let run = RunId::new("k3v9x0m2qa");
    let before = fold(&run, &[started(&run), failed(&run, "f1", "401")]);
    let told = |events: &[_]| {
        let told = everyone().build_messages(&before, events, START);
        let told = told.iter().map(|one| (one.event, message(one).title));
        told.collect::<Vec<_>>()
    };
    assert_eq!(told(&[failed(&run, "f2", "again")]), []);
    let answer = "shop: claude: request answered (manual)".to_owned();
    assert_eq!(
        told(&[failed(&run, "f2", "x"), answered(&run)]),
        [(1, answer)]
    );
    let recovered = "shop: claude recovered after auth_expired".to_owned();
    let done = "shop: claude succeeded after a failure".to_owned();
    assert_eq!(told(&[ended("recovered")]), [(0, recovered), (0, done)]);
    assert_eq!(
        told(&[ended("failed")]),
        [(0, "shop: claude failed".to_owned())]
    );
    // The request was reported; that the process then exits is not the end of the run.
    assert_eq!(told(&[ended("awaiting_human")]), []);
}

#[test]
fn same_failure_is_grouped_and_others_are_not() {
    let group = |fingerprint: &str| {
        let run = RunId::new("k3v9x0m2qa");
        let before = fold(&run, &[started(&run), failed(&run, fingerprint, "x")]);
        let told = everyone().build_messages(&before, &[asked(&run, "y")], START);
        told[0].group.clone()
    };
    assert_eq!(group("f1"), group("f1"));
    assert_ne!(group("f1"), group("f2"));
}

#[test]
fn foreign_text_is_bounded_and_contains_no_terminal_codes() {
    let run = RunId::new("k3v9x0m2qa");
    let line = format!("\u{1b}]0;owned\u{7}{}", "x".repeat(100_000));
    let before = fold(&run, &[started(&run), failed(&run, "f1", &line)]);
    let told = everyone().build_messages(&before, &[asked(&run, &"y".repeat(100_000))], START);
    let text = told[0].body.to_string();
    assert!(text.len() < 6000, "{}", text.len());
    assert!(!text.contains("\\u001b") && !text.contains("\\u0007"));
}

#[test]
fn no_subscription_sends_no_message() {
    let run = RunId::new("k3v9x0m2qa");
    let before = fold(&run, &[started(&run)]);
    let told =
        NotificationSubscriptions::default().build_messages(&before, &[asked(&run, "y")], START);
    assert_eq!(told, []);
}

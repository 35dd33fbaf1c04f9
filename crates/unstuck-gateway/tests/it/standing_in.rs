//! Whether a fallback can be paid is looked at before it is asked, and what was found is told.

use unstuck_core::Event;
use unstuck_core::event::CallFailed;
use unstuck_gateway::GatewaySettings;
use unstuck_gateway::protocol::Protocol::Anthropic;

use crate::Ground;
use crate::ground::Reply;

const DOWN: &str = "[[step]]\nstatus = { code = 503 }\ntimes = \"always\"\n";
const GOOD: &str = "[[step]]\nanswer = { text = \"Done\", input_tokens = 1000, output_tokens = 1000 }\ntimes = \"always\"\n";
/// What an answer of `claude-haiku-5-5` is expected to cost is less, of `claude-opus-5-5` more.
const BETWEEN: f64 = 0.005;

/// The second upstream has a dearer model in the place of the first one's.
fn dear(settings: &mut GatewaySettings) {
    let names = [("claude-haiku-5-5".into(), "claude-opus-5-5".into())];
    settings.upstreams[1].models.extend(names);
}

async fn asked(ground: &Ground) -> Reply {
    let body = r#"{"model":"claude-haiku-5-5","max_tokens":4000,"messages":[{"role":"user","content":"x"}]}"#;
    ground.post("/s/one/anthropic/v1/messages", body).await
}

/// What was written down of the newest try that failed.
fn failed(ground: &Ground) -> CallFailed {
    let events = ground.book.events.lock().unwrap();
    let failed = events.iter().rev().find_map(|event| match event {
        Event::CallFailed(call) => Some((**call).clone()),
        _ => None,
    });
    failed.expect("a try failed")
}

/// S4-35: a fallback whose price does not fit into what the session has left is passed over; the next one is asked.
#[tokio::test]
async fn a_fallback_that_the_budget_does_not_pay_is_passed_over() {
    let poor = |settings: &mut GatewaySettings| {
        dear(settings);
        settings.budgets.session = Some(BETWEEN);
    };
    let ground = Ground::with(Anthropic, &[DOWN, GOOD, GOOD], poor).await;
    let reply = asked(&ground).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (200, vec![3, 0, 1]),
        "{reply:?}"
    );
    let failed = failed(&ground);
    assert_eq!(failed.fallback.as_deref(), Some("u2"));
    let [passed] = &failed.skipped_upstreams[..] else {
        panic!("{:?}", failed.skipped_upstreams);
    };
    assert_eq!(
        (&*passed.upstream, passed.model.as_deref()),
        ("u1", Some("claude-opus-5-5"))
    );
    assert!(passed.why.contains("the session has $0.005"), "{passed}");
}

/// S4-35: so it is with what all sessions of a day may spend; without anybody else the client gets the upstream's own words.
#[tokio::test]
async fn a_fallback_that_the_day_does_not_pay_is_not_asked() {
    let poor = |settings: &mut GatewaySettings| {
        dear(settings);
        settings.budgets.day = Some(BETWEEN);
    };
    let ground = Ground::with(Anthropic, &[DOWN, GOOD], poor).await;
    let reply = asked(&ground).await;
    assert_eq!(
        (reply.status.as_u16(), ground.asked()),
        (503, vec![3, 0]),
        "{reply:?}"
    );
    let passed = failed(&ground).skipped_upstreams;
    assert!(passed[0].why.contains("today's budget has"), "{passed:?}");
    // Where nobody counts the money, the same fallback answers.
    let ground = Ground::with(Anthropic, &[DOWN, GOOD], dear).await;
    assert_eq!(asked(&ground).await.status.as_u16(), 200);
    assert_eq!(ground.asked(), [3, 1]);
}

/// S4-13: a fallback with a dearer model needs the same yes as a step up the ladder does.
#[tokio::test]
async fn a_dearer_fallback_that_needs_a_yes_is_not_asked() {
    let careful = |settings: &mut GatewaySettings| {
        dear(settings);
        settings.policy.confirm_above = Some(0.0);
    };
    let ground = Ground::with(Anthropic, &[DOWN, GOOD], careful).await;
    assert_eq!(asked(&ground).await.status.as_u16(), 503);
    assert_eq!(ground.asked(), [3, 0]);
    let passed = failed(&ground).skipped_upstreams;
    assert!(passed[0].why.contains("needs your yes"), "{passed:?}");
}

/// What an upstream is given a rest for is told with who could not stand in for it.
#[tokio::test]
async fn whoever_waits_for_a_resting_upstream_is_told_why_nobody_stands_in() {
    let poor = |settings: &mut GatewaySettings| {
        dear(settings);
        settings.budgets.session = Some(BETWEEN);
    };
    let limited = "[[step]]\nrate_limit = { retry_after = 900 }\ntimes = \"always\"\n";
    let ground = Ground::with(Anthropic, &[limited, GOOD], poor).await;
    assert_eq!(asked(&ground).await.status.as_u16(), 429);
    let held = asked(&ground).await;
    assert_eq!(ground.asked(), [1, 0]);
    for part in [
        "u0 is not asked for",
        "u1 (claude-opus-5-5) is not asked instead",
    ] {
        assert!(held.body.contains(part), "{part} in {}", held.body);
    }
}

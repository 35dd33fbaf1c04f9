//! Price checks of fallbacks, and their reports.

use unstuck_core::Event;
use unstuck_core::event::CallFailed;
use unstuck_gateway::GatewaySettings;
use unstuck_gateway::protocol::Protocol::Anthropic;

use crate::Ground;
use crate::ground::Reply;

const DOWN: &str = "[[step]]\nstatus = { code = 503 }\ntimes = \"always\"\n";
const GOOD: &str = "[[step]]\nanswer = { text = \"Done\", input_tokens = 1000, output_tokens = 1000 }\ntimes = \"always\"\n";
/// An amount between the expected cost of a response of `claude-haiku-5-5` and one of `claude-opus-5-5`.
const BETWEEN: f64 = 0.005;

/// Gives the second upstream a more expensive model in place of the first one's.
fn dear(settings: &mut GatewaySettings) {
    let names = [("claude-haiku-5-5".into(), "claude-opus-5-5".into())];
    settings.upstreams[1].models.extend(names);
}

async fn asked(ground: &Ground) -> Reply {
    let body = r#"{"model":"claude-haiku-5-5","max_tokens":4000,"messages":[{"role":"user","content":"x"}]}"#;
    ground.post("/s/one/anthropic/v1/messages", body).await
}

/// Returns the record of the newest failed attempt.
fn failed(ground: &Ground) -> CallFailed {
    let events = ground.book.events.lock().unwrap();
    let failed = events.iter().rev().find_map(|event| match event {
        Event::CallFailed(call) => Some((**call).clone()),
        _ => None,
    });
    failed.expect("a try failed")
}

/// S4-35: a fallback whose price exceeds the session's remaining budget is skipped; the next one is used.
#[tokio::test]
async fn fallback_over_session_budget_is_skipped() {
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
    assert!(
        passed.why.contains("left in the session budget"),
        "{passed}"
    );
}

/// S4-35: the same applies to the budget of a day; without another fallback the client gets the upstream's own error.
#[tokio::test]
async fn fallback_over_day_budget_is_skipped() {
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
    assert!(
        passed[0].why.contains("left in today's budget"),
        "{passed:?}"
    );
    // Without a budget, the same fallback answers.
    let ground = Ground::with(Anthropic, &[DOWN, GOOD], dear).await;
    assert_eq!(asked(&ground).await.status.as_u16(), 200);
    assert_eq!(ground.asked(), [3, 1]);
}

/// S4-13: a fallback with a more expensive model needs the same approval as a switch to a larger model.
#[tokio::test]
async fn more_expensive_fallback_needs_approval() {
    let careful = |settings: &mut GatewaySettings| {
        dear(settings);
        settings.policy.confirm_above = Some(0.0);
    };
    let ground = Ground::with(Anthropic, &[DOWN, GOOD], careful).await;
    assert_eq!(asked(&ground).await.status.as_u16(), 503);
    assert_eq!(ground.asked(), [3, 0]);
    let passed = failed(&ground).skipped_upstreams;
    assert!(passed[0].why.contains("exceeds confirmAbove"), "{passed:?}");
}

/// The pause of an upstream is reported together with the skipped fallbacks.
#[tokio::test]
async fn pause_is_reported_with_skipped_fallbacks() {
    let poor = |settings: &mut GatewaySettings| {
        dear(settings);
        settings.budgets.session = Some(BETWEEN);
    };
    let limited = "[[step]]\nrate_limit = { retry_after = 900 }\ntimes = \"always\"\n";
    let ground = Ground::with(Anthropic, &[limited, GOOD], poor).await;
    assert_eq!(asked(&ground).await.status.as_u16(), 429);
    let held = asked(&ground).await;
    assert_eq!(ground.asked(), [1, 0]);
    for part in ["u0 is unavailable for", "u1 (claude-opus-5-5) was skipped"] {
        assert!(held.body.contains(part), "{part} in {}", held.body);
    }
}

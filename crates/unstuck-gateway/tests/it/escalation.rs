//! Sessions that switch to a larger model of the ladder.

use unstuck_core::Event;
use unstuck_core::decision::ModelSwitchReason;
use unstuck_gateway::GatewaySettings;
use unstuck_gateway::protocol::Protocol::Anthropic;

use crate::Ground;

/// A script where only the larger model answers.
const LARGER: &str = "[[step]]\nwhen = { model = \"haiku\" }\noverloaded = {}\ntimes = \"always\"\n\n[[step]]\nanswer = {}\ntimes = \"always\"\n";

fn climbs(settings: &mut GatewaySettings) {
    settings.policy.auto_switch_model = true;
    settings.policy.switch_model_after_retries = 1;
}

fn body(model: &str) -> String {
    format!(r#"{{"model":"{model}","max_tokens":9,"messages":[{{"role":"user","content":"x"}}]}}"#)
}

async fn asked(ground: &Ground, model: &str) -> crate::Reply {
    ground
        .post("/s/climber/anthropic/v1/messages", &body(model))
        .await
}

fn moves(ground: &Ground) -> Vec<(String, String, ModelSwitchReason)> {
    let events = ground.book.events.lock().unwrap();
    let moves = events.iter().filter_map(|event| match event {
        Event::ModelSwitched(moved) => {
            let change = &moved.switch;
            Some((
                change.from_model.clone(),
                change.to_model.clone(),
                change.reason,
            ))
        }
        _ => None,
    });
    moves.collect()
}

/// S4-11, S4-14, S4-21: after several failures the next model of the ladder is used, and the session keeps it.
#[tokio::test]
async fn next_model_is_used_and_kept_after_failures() {
    let ground = Ground::with(Anthropic, &[LARGER], climbs).await;
    let reply = asked(&ground, "claude-haiku-5-5").await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
    assert_eq!(reply.header("x-unstuck-model"), "claude-sonnet-5-5");
    assert_eq!(
        moves(&ground),
        [(
            "claude-haiku-5-5".into(),
            "claude-sonnet-5-5".into(),
            ModelSwitchReason::AutoAfterRetries
        )]
    );
    let before = ground.asked()[0];
    let reply = asked(&ground, "claude-haiku-5-5").await;
    assert_eq!(reply.header("x-unstuck-attempts"), "1");
    assert_eq!(ground.asked()[0], before + 1);
}

/// A prompt that is too long for a model goes to one with a larger context, if the policy switches models
/// automatically.
#[tokio::test]
async fn too_long_prompt_goes_to_a_model_with_larger_context() {
    let script = "[[step]]\nwhen = { model = \"haiku-4-5\" }\ncontext_limit = {}\ntimes = \"always\"\n\n[[step]]\nanswer = {}\ntimes = \"always\"\n";
    let ground = Ground::with(Anthropic, &[script], climbs).await;
    let reply = asked(&ground, "claude-haiku-4-5").await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
    let moved = moves(&ground);
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_eq!(moved[0].2, ModelSwitchReason::ContextLimit);
    // Without permission to switch models, the client gets the error.
    let ground = Ground::new(Anthropic, &[script]).await;
    assert_eq!(
        asked(&ground, "claude-haiku-4-5").await.status.as_u16(),
        400
    );
}

/// S4-13, S4-35: a model whose extra cost needs approval is not used automatically.
#[tokio::test]
async fn more_expensive_model_without_approval_is_not_used() {
    let careful = |settings: &mut GatewaySettings| {
        climbs(settings);
        settings.policy.confirm_above = Some(0.0);
    };
    let ground = Ground::with(Anthropic, &[LARGER], careful).await;
    let reply = asked(&ground, "claude-haiku-5-5").await;
    assert_eq!(reply.status.as_u16(), 529, "{reply:?}");
    assert_eq!(moves(&ground), []);
    let models = ground.upstreams[0].requests();
    assert!(models.iter().all(|one| one.model == "claude-haiku-5-5"));
}

/// S4-13, S4-35: a model that exceeds the session's remaining budget is not used automatically either.
#[tokio::test]
async fn model_over_budget_is_not_used() {
    let poor = |settings: &mut GatewaySettings| {
        climbs(settings);
        settings.budgets.session = Some(0.000_01);
    };
    let ground = Ground::with(Anthropic, &[LARGER], poor).await;
    let reply = asked(&ground, "claude-haiku-5-5").await;
    assert_eq!(reply.status.as_u16(), 529, "{reply:?}");
    assert_eq!(moves(&ground), []);
    let events = ground.book.events.lock().unwrap();
    let told = events.iter().rev().find_map(|event| match event {
        Event::CallFailed(call) => call.skipped_upstreams.first().map(ToString::to_string),
        _ => None,
    });
    let told = told.expect("it is written down");
    assert!(
        told.starts_with("u0 (claude-sonnet-5-5) was skipped: would cost"),
        "{told}"
    );
}

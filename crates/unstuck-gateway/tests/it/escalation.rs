//! Sessions that move up the ladder of models.

use unstuck_core::Event;
use unstuck_core::decision::ModelSwitchReason;
use unstuck_gateway::GatewaySettings;
use unstuck_gateway::protocol::Protocol::Anthropic;

use crate::Ground;

/// Only the larger model answers.
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

/// S4-11, S4-14, S4-21: after so many failures the next model of the ladder is asked, and the session keeps it.
#[tokio::test]
async fn after_failures_the_next_model_is_asked_and_kept() {
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

/// A prompt that is too long for a model goes to one with more room, where the policy changes models by itself.
#[tokio::test]
async fn a_prompt_that_is_too_long_goes_to_a_model_with_more_room() {
    let script = "[[step]]\nwhen = { model = \"haiku-4-5\" }\ncontext_limit = {}\ntimes = \"always\"\n\n[[step]]\nanswer = {}\ntimes = \"always\"\n";
    let ground = Ground::with(Anthropic, &[script], climbs).await;
    let reply = asked(&ground, "claude-haiku-4-5").await;
    assert_eq!(reply.status.as_u16(), 200, "{reply:?}");
    let moved = moves(&ground);
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_eq!(moved[0].2, ModelSwitchReason::ContextLimit);
    // Without leave to change models, the client is told.
    let ground = Ground::new(Anthropic, &[script]).await;
    assert_eq!(
        asked(&ground, "claude-haiku-4-5").await.status.as_u16(),
        400
    );
}

/// S4-13, S4-35: a model that may cost more than a person wants to be asked about is not taken by itself.
#[tokio::test]
async fn a_dearer_model_that_needs_a_yes_is_not_taken() {
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

/// S4-13, S4-35: a model that costs more than the session has left is not taken by itself either.
#[tokio::test]
async fn a_dearer_model_that_the_budget_does_not_pay_is_not_taken() {
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
        told.starts_with("u0 (claude-sonnet-5-5) is not asked instead: it would cost"),
        "{told}"
    );
}

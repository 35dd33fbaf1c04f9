//! Model switches, and those that need approval.

use super::*;

fn critical(kind: FailureKind) -> World {
    let mut world = World::new(kind, FailureLayer::Api);
    world.policy = exact("critical");
    world
}

/// S4-14: after the policy's number of retries the model is switched before anything else.
#[test]
fn after_enough_retries_the_next_model_comes_first() {
    let mut world = critical(FailureKind::ServerError);
    let decisions = world.run();
    assert_eq!(
        story(&decisions)[..4],
        ["same", "same", "alternative next_model", "same"]
    );
    let escalation = decisions[2].model_switch().unwrap();
    assert_eq!(escalation.from_model, "claude-sonnet-5-5");
    assert_eq!(escalation.to_model, "claude-opus-5-5");
    let usd = escalation.cost_estimate.unwrap();
    assert!((usd - 0.3).abs() < 1e-9, "{usd}");
}

/// A kind with few strategies reaches a model switch too if the policy switches automatically.
#[test]
fn the_last_strategy_is_reserved_for_the_model() {
    let mut world = World::new(FailureKind::EmptyOutput, FailureLayer::Agent);
    world.policy = exact("critical");
    let decisions = world.with_retries(2, 1.0).run();
    let story = story(&decisions);
    assert_eq!(story[1], "alternative next_model", "{story:?}");
    assert_eq!(story.len(), 3, "{story:?}");
}

#[test]
fn without_the_policys_permission_the_model_stays() {
    let mut world = critical(FailureKind::ServerError);
    world.policy.auto_switch_model = false;
    let decisions = world.run();
    assert!(decisions.iter().all(|one| one.model_switch().is_none()));
    let last = decisions.last().unwrap();
    let model = |one: &&SkippedStrategy| one.strategy == "next_model";
    let why = &last.skipped.iter().find(model).unwrap().why;
    assert_eq!(why, "the policy does not switch models automatically");
}

/// S4-13, S4-35: a more expensive model above the limit escalates with its cost.
#[test]
fn a_more_expensive_model_above_the_limit_escalates() {
    let mut world = critical(FailureKind::ContextLimit);
    world.policy.switch_model_after_retries = 0;
    world.expected.input = 10_000_000;
    let decision = world.decide();
    let RecoveryAction::Escalate {
        trigger, proposed, ..
    } = &decision.action
    else {
        panic!("{decision:?}");
    };
    assert_eq!(*trigger, EscalationTrigger::CostConfirmation);
    assert_eq!(proposed.as_ref().unwrap().strategy, "next_model");
    let usd = decision.cost.as_ref().unwrap().usd().unwrap();
    assert!((usd - 20.1).abs() < 1e-9, "{usd}");
    assert!(
        decision.reason.contains("about $20.10 more"),
        "{}",
        decision.reason
    );
}

#[test]
fn a_model_with_an_unknown_price_escalates() {
    let mut world = critical(FailureKind::ContextLimit);
    world.policy.switch_model_after_retries = 0;
    world.catalog.ladders[0].models = vec!["claude-sonnet-5-5".into(), "local".into()];
    let decision = world.decide();
    assert!(
        decision.reason.contains("the price of local is unknown"),
        "{}",
        decision.reason
    );
    world.policy.confirm_above = None;
    assert!(world.decide().model_switch().is_some());
}

/// S4-15: on top of the ladder the strategy is skipped with the reason.
#[test]
fn on_top_of_the_ladder_the_chain_continues() {
    let mut world = critical(FailureKind::ContextLimit);
    world.policy.switch_model_after_retries = 0;
    world.model = Some("claude-opus-5-5");
    let decision = world.decide();
    assert_eq!(decision.strategy.as_deref(), Some("simplify"));
    assert_eq!(
        decision.skipped[0].why,
        "already at the most capable model of the ladder"
    );
}

/// S4-21: a switch because of the context says so.
#[test]
fn a_switch_because_of_the_context_is_recorded_as_such() {
    let mut world = critical(FailureKind::ContextLimit).with_chain(&[(
        "larger",
        0.9,
        Some(AttemptChange::Model(ReplacementModelChoice::LargerContext)),
    )]);
    world.model = Some("claude-sonnet-4-5-20250929");
    let escalation = world.decide().model_switch().unwrap();
    assert_eq!(escalation.to_model, "claude-sonnet-5-5");
    let reason = serde_json::to_value(escalation.reason).unwrap();
    assert_eq!(reason, "context_limit");
}

#[test]
fn extra_costs_add_up_over_the_session() {
    let mut world = critical(FailureKind::ContextLimit);
    world.policy.switch_model_after_retries = 0;
    world.policy.confirm_above = Some(0.5);
    let first = world.decide();
    assert!(first.model_switch().is_some());
    world.fails_again_after(&first);
    world.diagnosis.kind = FailureKind::CliCrash;
    let decision = world.decide();
    assert!(matches!(
        decision.action,
        RecoveryAction::Escalate {
            why: EscalationReason::CostlierModel,
            ..
        }
    ));
}

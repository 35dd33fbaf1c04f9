//! Precedence of limits.

use super::*;
use crate::decision::RetryPolicyOverride;

fn agent(kind: FailureKind, level: RecoveryLevel) -> World {
    let mut world = World::new(kind, FailureLayer::Agent).with_chain(&[
        ("a", 0.9, Some(AttemptChange::Prompt("a".into()))),
        ("b", 0.8, Some(AttemptChange::Prompt("b".into()))),
        ("c", 0.7, Some(AttemptChange::Prompt("c".into()))),
        ("d", 0.6, Some(AttemptChange::Prompt("d".into()))),
    ]);
    world.diagnosis.level = Some(level);
    world.policy = exact("pipeline");
    world
}

fn retries(retries: u32) -> RetryPolicyOverride {
    RetryPolicyOverride {
        max_retries: Some(retries),
        ..RetryPolicyOverride::default()
    }
}

/// S1-12, S1-11, S1-27: a timed-out agent process gets 2 changed retries with delays of 1.5 × n seconds, and a longer
/// timeout.
#[test]
fn a_timed_out_agent_gets_two_changed_retries() {
    let mut world = agent(FailureKind::Timeout, RecoveryLevel::Alternative).with_retries(2, 1.5);
    world.strategies.get_mut("a").unwrap().changes = vec![
        AttemptChange::Prompt("simplify".into()),
        AttemptChange::Timeout(1.5),
        AttemptChange::Conversation(ConversationMode::Resume),
    ];
    let situation = DecisionInput {
        timeout: Some(Duration::from_secs(1200)),
        ..world.situation()
    };
    let first = decide(&situation, world.draw);
    let RecoveryAction::Change { changes, .. } = &first.action else {
        panic!("{first:?}");
    };
    let longer = ConcreteAttemptChange::Timeout {
        from_seconds: Some(1200),
        to_seconds: 1800,
    };
    assert!(changes.contains(&longer));
    let decisions = world.run();
    assert_eq!(
        story(&decisions),
        ["alternative a", "alternative b", "escalate"]
    );
    assert_eq!(delays(&decisions), [1.5, 3.0]);
}

#[test]
fn without_a_timeout_the_increased_one_is_half_an_hour() {
    let world = agent(FailureKind::Timeout, RecoveryLevel::Alternative).with_chain(&[(
        "longer",
        0.9,
        Some(AttemptChange::Timeout(1.5)),
    )]);
    let RecoveryAction::Change { changes, .. } = world.decide().action else {
        panic!();
    };
    let longer = ConcreteAttemptChange::Timeout {
        from_seconds: None,
        to_seconds: 1800,
    };
    assert_eq!(changes, [longer]);
}

/// S1-13: missing sections get 3 retries, with one second more delay each.
#[test]
fn missing_sections_get_three_retries() {
    let decisions = agent(FailureKind::MissingSections, RecoveryLevel::Alternative)
        .with_retries(3, 1.0)
        .run();
    assert_eq!(delays(&decisions), [1.0, 2.0, 3.0]);
}

/// S1-14: an empty output gets 2 retries with delays of 1.2 × n seconds.
#[test]
fn an_empty_output_gets_two_retries() {
    let decisions = agent(FailureKind::EmptyOutput, RecoveryLevel::Alternative)
        .with_retries(2, 1.2)
        .run();
    assert_eq!(delays(&decisions), [1.2, 2.4]);
}

/// S1-16: a kind without its own limits has those of the policy, so every kind has some.
#[test]
fn a_kind_without_limits_has_those_of_the_policy() {
    let decisions = agent(FailureKind::DiffParseError, RecoveryLevel::Alternative).run();
    assert_eq!(delays(&decisions), [1.0, 2.0, 3.0]);
}

#[test]
fn the_smaller_limit_of_policy_and_kind_applies() {
    let mut world =
        agent(FailureKind::MissingSections, RecoveryLevel::Alternative).with_retries(3, 1.0);
    world.policy.max_retries = 1;
    assert_eq!(delays(&world.run()).len(), 1);
}

#[test]
fn an_explicit_limit_for_the_kind_applies() {
    let mut world =
        agent(FailureKind::MissingSections, RecoveryLevel::Alternative).with_retries(1, 1.0);
    world
        .policy
        .kinds
        .insert(FailureKind::MissingSections, retries(2));
    assert_eq!(delays(&world.run()).len(), 2);
}

/// S2-20: the chain starts again only if the limit of the kind was set higher than its length.
#[test]
fn the_chain_starts_again_only_if_more_retries_were_granted_to_this_kind() {
    let mut world = agent(FailureKind::MissingSections, RecoveryLevel::Alternative);
    world
        .policy
        .kinds
        .insert(FailureKind::MissingSections, retries(6));
    let decisions = world.run();
    let used: Vec<_> = decisions
        .iter()
        .filter_map(|one| one.strategy.as_deref())
        .collect();
    assert_eq!(used, ["a", "b", "c", "d", "a", "b"]);
}

/// S4-39: each tool can have its own limit.
#[test]
fn a_tools_limit_precedes_the_policys_and_is_bounded_by_the_kinds() {
    let mut world = agent(FailureKind::NetworkError, RecoveryLevel::Same);
    world.policy.tools.insert("deploy".into(), retries(0));
    world.policy.tools.insert("fetch".into(), retries(9));
    let limit = |tool, kind| {
        let file = &world.knowledge;
        world
            .policy
            .limits(kind, FailureLayer::Agent, file, Some(tool))
            .retries
    };
    assert_eq!(limit("deploy", FailureKind::NetworkError), 0);
    assert_eq!(limit("fetch", FailureKind::NetworkError), 9);
    assert_eq!(limit("other", FailureKind::NetworkError), 3);
    assert_eq!(limit("fetch", FailureKind::Unknown), 1);
    assert_eq!(limit("fetch", FailureKind::AuthExpired), 0);
}

#[test]
fn a_kind_not_listed_by_the_policy_is_not_retried_unchanged() {
    let mut world = agent(FailureKind::NetworkError, RecoveryLevel::Same);
    world.policy.retryable_errors = vec![FailureKind::RateLimit];
    let decision = world.decide();
    assert_eq!(decision.level, Some(RecoveryLevel::Alternative));
    assert_eq!(decision.skipped[0].strategy, "same");
}

#[test]
fn the_curve_can_be_set_per_kind() {
    let mut world = agent(FailureKind::NetworkError, RecoveryLevel::Same);
    let one = RetryPolicyOverride {
        curve: Some(BackoffCurve::Fixed),
        backoff_base: Some(7.0),
        ..RetryPolicyOverride::default()
    };
    world.policy.kinds.insert(FailureKind::NetworkError, one);
    assert_eq!(delays(&world.run())[..3], [7.0, 7.0, 7.0]);
}

/// S4-35: the limits on attempts, time and cost end in an escalation with the reason.
#[test]
fn every_limit_ends_in_an_escalation_that_names_it() {
    let ask = |world: &World, caps: SessionLimits| {
        let situation = DecisionInput {
            session_limits: caps,
            ..world.situation()
        };
        match decide(&situation, world.draw).action {
            RecoveryAction::Escalate { why, .. } => Some(why),
            _ => None,
        }
    };
    let mut world = World::new(FailureKind::ServerError, FailureLayer::Api);
    assert_eq!(ask(&world, SessionLimits::default()), None);
    let caps = SessionLimits {
        attempts: 1,
        ..SessionLimits::default()
    };
    assert_eq!(ask(&world, caps), Some(EscalationReason::MaxAttempts));
    let caps = SessionLimits {
        elapsed: Some(Duration::from_millis(999)),
        ..SessionLimits::default()
    };
    assert_eq!(ask(&world, caps), Some(EscalationReason::MaxElapsed));
    world.history.spent_before = 2.0;
    world.policy.max_cost = Some(2.0);
    assert_eq!(
        ask(&world, SessionLimits::default()),
        Some(EscalationReason::MaxCost)
    );
}

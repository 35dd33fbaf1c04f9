//! The order of the levels.

use super::*;
use crate::knowledge::DiagnosisKnowledge;

/// S0-28, S4-03, S0-12, S0-08: three retries (four executions) with growing delays, then the chain, then an escalation.
#[test]
fn a_transient_failure_is_retried_three_times_then_the_chain_is_tried_then_it_escalates() {
    let mut world = World::new(FailureKind::ServerError, FailureLayer::Api);
    let decisions = world.run();
    let wanted = [
        "same",
        "same",
        "same",
        "alternative simplify",
        "alternative fresh",
        "escalate ask_user",
    ];
    assert_eq!(story(&decisions), wanted);
    assert_eq!(delays(&decisions)[..3], [1.0, 2.0, 4.0]);
    assert_eq!((decisions[2].attempt, decisions[2].max_attempts), (3, 3));
}

/// Retries that a gateway has used up are not repeated: only a strategy with changes is tried.
#[test]
fn retries_made_elsewhere_are_not_repeated() {
    let mut world = World::new(FailureKind::ServerError, FailureLayer::Agent).with_chain(&[
        ("retry_later", 0.9, None),
        (
            "simplify",
            0.8,
            Some(AttemptChange::Prompt("simplify".into())),
        ),
        ("ask_user", 0.9, None),
    ]);
    world.diagnosis.level = Some(RecoveryLevel::Alternative);
    let decisions = world.run();
    assert_eq!(
        story(&decisions),
        ["alternative simplify", "escalate ask_user"]
    );
}

/// S0-08, S0-29, S0-09: a systematic failure goes to level 2 at once and falls through to level 4, with a reason for
/// each step.
#[test]
fn a_systematic_failure_without_strategies_escalates_with_reasons() {
    let mut world = World::new(FailureKind::CliCrash, FailureLayer::Agent);
    world.policy.max_retries = 5;
    world.knowledge.chain.pop();
    let decisions = world.run();
    let wanted = ["alternative simplify", "alternative fresh", "escalate"];
    assert_eq!(story(&decisions), wanted);
    let eligible = |decision: &Decision| -> Vec<_> {
        let actions = decision.selection.eligible.iter();
        actions.map(|one| one.action.to_string()).collect()
    };
    assert_eq!(eligible(&decisions[0]), ["simplify", "fresh", "escalate"]);
    assert_eq!(eligible(&decisions[1]), ["fresh", "escalate"]);
    assert_eq!(eligible(&decisions[2]), ["escalate"]);
    let fell: Vec<_> = decisions[2]
        .skipped
        .iter()
        .map(|one| (&*one.strategy, &*one.why))
        .collect();
    assert_eq!(
        fell,
        [
            ("simplify", "already tried"),
            ("fresh", "already tried"),
            (
                "next_model",
                "the policy does not switch models automatically"
            ),
        ]
    );
}

/// S0-13, S0-11: a fatal failure escalates at once, without a retry.
#[test]
fn a_fatal_failure_escalates_at_once() {
    for kind in [
        FailureKind::AuthExpired,
        FailureKind::QuotaExhausted,
        FailureKind::CliNotFound,
    ] {
        let decisions = World::new(kind, FailureLayer::Agent).run();
        assert_eq!(story(&decisions), ["escalate"]);
        assert!(matches!(
            decisions[0].action,
            RecoveryAction::Escalate {
                trigger: EscalationTrigger::Hiccup,
                why: EscalationReason::Fatal,
                ..
            }
        ));
    }
}

#[test]
fn code_and_none_have_no_level() {
    for (kind, why) in [
        (FailureKind::TestFailure, NoRecoveryReason::Code),
        (FailureKind::CompileError, NoRecoveryReason::Code),
        (FailureKind::None, NoRecoveryReason::NotAFailure),
    ] {
        let decision = World::new(kind, FailureLayer::Infra).decide();
        assert_eq!(decision.level, None);
        assert_eq!(decision.action, RecoveryAction::Stop { why });
    }
}

/// S1-15, S1-21: an unknown failure gets one plain retry, then an escalation.
#[test]
fn an_unknown_failure_is_retried_once() {
    let mut world = World::new(FailureKind::Unknown, FailureLayer::Agent);
    assert_eq!(story(&world.run()), ["same", "escalate"]);
}

/// An API call is cheap to repeat, a process is not.
#[test]
fn an_unknown_failure_of_an_api_call_is_retried_three_times() {
    for policy in ["standard", "resilient"] {
        for (layer, retries) in [
            (FailureLayer::Api, 3),
            (FailureLayer::Tool, 1),
            (FailureLayer::Agent, 1),
            (FailureLayer::Infra, 1),
        ] {
            let mut world = World::new(FailureKind::Unknown, layer);
            world.policy = exact(policy);
            world.knowledge = DiagnosisKnowledge::built_in()
                .kind(FailureKind::Unknown)
                .clone();
            let told = story(&world.run());
            let same = told.iter().filter(|level| *level == "same");
            assert_eq!(same.count(), retries, "{policy} {layer:?}: {told:?}");
        }
    }
}

#[test]
fn an_operation_with_possible_effects_is_not_simply_retried() {
    let world = World::new(FailureKind::Unknown, FailureLayer::Tool);
    let situation = DecisionInput {
        repeatable: OperationRepeatability::Unsafe,
        ..world.situation()
    };
    let decision = decide(&situation, world.draw);
    assert!(matches!(
        decision.action,
        RecoveryAction::Escalate {
            why: EscalationReason::NotRepeatable,
            ..
        }
    ));
}

/// S4-05: with retries switched off, every failure is returned unchanged.
#[test]
fn the_policy_off_returns_every_failure() {
    let mut world = World::new(FailureKind::RateLimit, FailureLayer::Api);
    world.policy = exact("off");
    let decision = world.decide();
    let why = NoRecoveryReason::PolicyOff;
    assert_eq!(decision.action, RecoveryAction::Stop { why });
    assert_eq!(decision.level, None);
}

#[test]
fn strategies_without_the_needed_capability_are_skipped() {
    let world = World::new(FailureKind::StaleBuild, FailureLayer::Infra).with_chain(&[
        ("rebuild", 0.9, Some(AttemptChange::Repair)),
        ("steps", 0.8, None),
        ("ask_user", 0.5, None),
    ]);
    let situation = DecisionInput {
        capabilities: RetryCapabilities::NONE.with(RetryChangeCapability::Prompt),
        ..world.situation()
    };
    let decision = decide(&situation, world.draw);
    let why: Vec<_> = decision.skipped.iter().map(|one| &*one.why).collect();
    assert_eq!(
        why,
        [
            "no applicable repair can run here",
            "tool call steps cannot be executed here"
        ]
    );
    assert_eq!(decision.strategy.as_deref(), Some("ask_user"));
    assert_eq!(decision.level, Some(RecoveryLevel::Escalate));
}

#[test]
fn each_reason_is_one_plain_sentence() {
    let mut world = World::new(FailureKind::RateLimit, FailureLayer::Api);
    world.knowledge.title = "Rate limited".into();
    world.diagnosis.retry_after = Some(Duration::from_secs(12));
    let first = world.decide();
    assert_eq!(
        first.reason,
        "Rate limited: retrying in 12 s, as the server asked (retry 1 of 3)."
    );
    for decision in world.run() {
        let reason = &decision.reason;
        assert!(reason.ends_with('.') && !reason.contains('\n'), "{reason}");
    }
}

/// S4-25: every retry can be reported as it happens.
#[test]
fn each_decision_can_be_reported_as_a_retry_attempt() {
    let world = World::new(FailureKind::RateLimit, FailureLayer::Api);
    let told = world.decide().to_retry_attempt(1, "Too many requests");
    assert_eq!((told.attempt_number, told.delay_ms), (1, 1000));
    assert_eq!(told.error, FailureKind::RateLimit);
    assert!(!told.succeeded);
}

#[test]
fn a_decision_round_trips_through_json() {
    for kind in [
        FailureKind::RateLimit,
        FailureKind::CliCrash,
        FailureKind::AuthExpired,
    ] {
        let decision = World::new(kind, FailureLayer::Agent).decide();
        let json = serde_json::to_string(&decision).unwrap();
        assert_eq!(serde_json::from_str::<Decision>(&json).unwrap(), decision);
    }
}

#[test]
fn a_chain_entry_without_changes_is_not_used_after_unchanged_retries() {
    let again = |kind| {
        let mut world = World::new(kind, FailureLayer::Api).with_chain(&[
            ("wait_and_retry", 0.9, None),
            ("simplify", 0.5, Some(AttemptChange::Prompt("p".into()))),
        ]);
        story(&world.run())
    };
    let transient = ["same", "same", "same", "alternative simplify", "escalate"];
    assert_eq!(again(FailureKind::RateLimit), transient);
    let systematic = [
        "alternative wait_and_retry",
        "alternative simplify",
        "escalate",
    ];
    assert_eq!(again(FailureKind::CliCrash), systematic);
}

#[test]
fn a_strategy_against_a_safety_refusal_needs_approval() {
    let mut world = World::new(FailureKind::ContentFilter, FailureLayer::Api).with_chain(&[
        (
            "leave_out",
            0.9,
            Some(AttemptChange::Prompt("leave_out".into())),
        ),
        ("ask_user", 0.5, None),
    ]);
    let leave_out = world.strategies.get_mut("leave_out").unwrap();
    leave_out.risks = vec!["safety".into()];
    let decision = world.decide();
    assert_eq!(decision.strategy.as_deref(), Some("ask_user"));
    assert_eq!(
        decision.skipped[0].why,
        "working around a safety refusal needs your approval"
    );
}

#[test]
fn an_exhausted_chain_uses_its_own_escalation() {
    let mut world = World::new(FailureKind::CliCrash, FailureLayer::Agent);
    world.policy.max_retries = 1;
    let decisions = world.run();
    assert_eq!(
        story(&decisions),
        ["alternative simplify", "escalate ask_user"]
    );
    assert_eq!(decisions[1].skipped[0].why, "1 of 1 strategies used");
}

/// A lock whose holder is gone is released at once; a held one is waited for. An outage is waited for in any case.
#[test]
fn a_repair_comes_before_the_first_wait_if_the_kind_says_so() {
    let offer = AvailableRepair {
        id: "r1",
        command: "rm -f .git/index.lock",
        permission: RepairPermission::Granted {
            after: Duration::ZERO,
        },
        number: 1,
        max_auto: 3,
    };
    let mut world = World::new(FailureKind::LockHeld, FailureLayer::Tool);
    let first = |world: &World, repair| {
        let situation = DecisionInput {
            repair,
            ..world.situation()
        };
        story(&[decide(&situation, world.draw)]).remove(0)
    };
    assert_eq!(first(&world, Some(offer)), "same");
    world.knowledge.repair_first = true;
    assert_eq!(first(&world, Some(offer)), "alternative repair");
    assert_eq!(first(&world, None), "same");
}

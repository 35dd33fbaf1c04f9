//! Laws that hold for every failure, every policy and every random draw.

use proptest::prelude::*;
use proptest::strategy::Strategy as Strategy_;

use super::*;
use crate::decision::{RetryPolicyOverride, SeededRng, templates};

fn any_world() -> impl Strategy_<Value = World> {
    let kinds = proptest::sample::select(FailureKind::ALL.to_vec());
    let layers = proptest::sample::select(vec![
        FailureLayer::Api,
        FailureLayer::Tool,
        FailureLayer::Agent,
        FailureLayer::Infra,
    ]);
    let policies = proptest::sample::select(templates().to_vec());
    let stated = proptest::option::of(0_u64..100_000);
    let granted = proptest::option::of(0_u32..12);
    (kinds, layers, policies, stated, granted, any::<u64>()).prop_map(
        |(kind, layer, policy, stated, granted, draw)| {
            let mut world = World::new(kind, layer);
            world.policy = policy;
            world.diagnosis.retry_after = stated.map(Duration::from_secs);
            world.draw = RandomDraw(draw);
            if let Some(retries) = granted {
                let one = RetryPolicyOverride {
                    max_retries: Some(retries),
                    ..RetryPolicyOverride::default()
                };
                world.policy.kinds.insert(kind, one);
            }
            world
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn equal_arguments_give_equal_decisions(world in any_world()) {
        prop_assert_eq!(world.decide(), world.decide());
    }

    /// The chosen action is among the eligible ones, and no automatic one is left when recovery gives up.
    #[test]
    fn selection_contains_the_chosen_action(mut world in any_world()) {
        for decision in world.run() {
            let RecoveryActionSelection { eligible, chosen, probability } = &decision.selection;
            prop_assert_eq!(eligible.iter().filter(|one| one.action == *chosen).count(), 1);
            prop_assert_eq!(*probability, 1.0);
            if let RecoveryAction::Escalate { why: EscalationReason::Exhausted, .. } = decision.action {
                prop_assert_eq!(eligible.len(), 1, "{:?}", eligible);
            }
        }
    }

    /// S4-03: attempts never exceed the limits, and every sequence of failures ends with an escalation or a stop.
    #[test]
    fn every_sequence_of_one_failure_ends_within_its_limits(mut world in any_world()) {
        let decisions = world.run();
        let last = decisions.last().unwrap();
        let over = matches!(last.action, RecoveryAction::Escalate { .. } | RecoveryAction::Stop { .. });
        prop_assert!(over);
        prop_assert!(world.history.counted_execution_count() <= SessionLimits::default().attempts);
        let kind = world.diagnosis.kind;
        let file = &world.knowledge;
        let limits = world.policy.limits(kind, world.diagnosis.layer, file, None);
        prop_assert!(world.history.retry_count_at(kind, RecoveryLevel::Alternative) <= limits.retries);
        match limits.give_up_after {
            None => prop_assert!(world.history.retry_count_at(kind, RecoveryLevel::Same) <= limits.retries),
            Some(limit) => {
                // Each retry begins its wait before the time is over.
                let newest = world.history.attempts.iter().rev().find(|one| one.level == RecoveryLevel::Same);
                let mut before = world.history.clone();
                before.attempts.retain(|one| newest.is_some_and(|newest| one.at < newest.at));
                prop_assert!(newest.is_none_or(|one| before.time_without_progress(one.at) < limit));
            }
        }
    }

    /// S2-20: no strategy twice, unless the kind was granted more retries.
    #[test]
    fn no_strategy_is_used_twice(mut world in any_world()) {
        world.policy.kinds.clear();
        world.run();
        for id in world.strategies.keys() {
            prop_assert!(world.history.strategy_use_count(world.diagnosis.kind, id) <= 1);
        }
    }

    #[test]
    fn no_stated_delay_is_undercut_and_no_other_delay_exceeds_the_cap(mut world in any_world()) {
        for decision in world.run() {
            let Some(delay) = decision.delay() else { continue };
            match world.diagnosis.retry_after {
                Some(stated) => prop_assert!(delay >= stated),
                None => prop_assert!(delay.as_secs_f64() <= world.policy.max_backoff),
            }
        }
    }

    #[test]
    fn failures_of_changing_kinds_end_too(mut world in any_world(), seed in any::<u64>()) {
        let mut dice = SeededRng::seeded(seed);
        for _ in 0..300 {
            let pick = usize::try_from(dice.next_draw().0 % FailureKind::ALL.len() as u64).unwrap();
            world.diagnosis.kind = FailureKind::ALL[pick];
            world.draw = dice.next_draw();
            let decision = world.decide();
            if !world.fails_again_after(&decision) {
                return Ok(());
            }
        }
        prop_assert!(false, "still going after the cap");
    }

    #[test]
    fn a_decision_round_trips(world in any_world()) {
        let decision = world.decide();
        let json = serde_json::to_string(&decision).unwrap();
        let read: Decision = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(read.level, decision.level);
        prop_assert_eq!(read.draw, decision.draw);
        prop_assert_eq!(read.reason, decision.reason);
    }
}

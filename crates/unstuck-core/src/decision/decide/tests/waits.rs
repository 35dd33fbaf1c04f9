//! Delays, and the settings that change them.

use super::*;

fn limited(stated: u64) -> World {
    let mut world = World::new(FailureKind::RateLimitTimed, FailureLayer::Api);
    world.diagnosis.retry_after = Some(Duration::from_secs(stated));
    world
}

/// S4-24: a stated wait precedes the curve, even beyond its cap.
#[test]
fn a_stated_wait_precedes_the_curve_and_its_cap() {
    let mut world = World::new(FailureKind::RateLimit, FailureLayer::Api);
    world.diagnosis.retry_after = Some(Duration::from_secs(95));
    assert_eq!(delays(&[world.decide()]), [95.0]);
}

#[test]
fn a_stated_reset_is_waited_for_up_to_the_policys_maximum() {
    let five_hours = 5 * 3600;
    let mut world = limited(five_hours);
    world.policy.max_elapsed = Some(Duration::from_secs(60));
    let decision = world.decide();
    let delay = decision.delay().unwrap().as_secs();
    assert!((five_hours + 2..=five_hours + 30).contains(&delay));
    assert!(decision.is_stated_reset);
    assert!(decision.reason.contains("when the limit resets"));

    let decision = limited(3 * 86_400).decide();
    assert!(matches!(
        decision.action,
        RecoveryAction::Escalate {
            why: EscalationReason::WaitTooLong,
            ..
        }
    ));
    assert_eq!(
        decision.reason,
        "It failed: the stated wait of 3 d exceeds the limit of 6 h (maxWait)."
    );
}

#[test]
fn a_wait_that_would_end_too_late_is_not_started() {
    let mut world = World::new(FailureKind::RateLimit, FailureLayer::Api);
    world.policy.max_elapsed = Some(Duration::from_secs(100));
    world.diagnosis.retry_after = Some(Duration::from_secs(101));
    assert!(matches!(
        world.decide().action,
        RecoveryAction::Escalate {
            why: EscalationReason::MaxElapsed,
            ..
        }
    ));
}

/// The template `patient` waits 5, 10 and 20 s.
#[test]
fn the_patient_template_waits_longer() {
    let mut world = World::new(FailureKind::ServerError, FailureLayer::Api);
    world.policy = exact("patient");
    assert_eq!(delays(&world.run())[..3], [5.0, 10.0, 20.0]);
}

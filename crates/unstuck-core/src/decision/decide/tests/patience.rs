//! Retries bounded by time.

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn resilient(kind: FailureKind, layer: FailureLayer) -> World {
    let mut world = World::new(kind, layer);
    world.policy = exact("resilient");
    world
}

impl World {
    fn decide_as(&self, change: impl FnOnce(&mut DecisionInput<'_>)) -> Decision {
        let mut situation = self.situation();
        change(&mut situation);
        decide(&situation, self.draw)
    }
}

/// Delays grow from half a second to a minute for half an hour; then come the chain and an escalation.
#[test]
fn a_transient_failure_is_retried_for_half_an_hour_without_progress() {
    let mut world = resilient(FailureKind::ServerOverloaded, FailureLayer::Api);
    let began = world.now;
    let decisions = world.run();
    let mut same = decisions
        .iter()
        .filter(|one| one.level == Some(RecoveryLevel::Same));
    assert_eq!(same.clone().count(), 36);
    assert_eq!(
        delays(&decisions)[..9],
        [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    );
    let last = same.next_back().unwrap();
    assert!(last.decided_at.since(began) < 30 * MINUTE);
    assert_eq!(last.max_attempts, 0);
    assert_eq!(last.give_up_at, Some(began.after(30 * MINUTE)));
    assert_eq!(
        decisions[9].reason,
        "It failed: retrying in 1 min (3 min 4 s of 30 min)."
    );
    let after: Vec<_> = story(&decisions).into_iter().skip(36).collect();
    assert_eq!(
        after,
        [
            "alternative simplify",
            "alternative fresh",
            "escalate ask_user"
        ]
    );
    let fell = &decisions[36].skipped[0];
    assert_eq!(
        (&*fell.strategy, &*fell.why),
        ("same", "no progress for 30 min 4 s (limit 30 min)")
    );
}

/// Progress restarts the time and the delays.
#[test]
fn progress_restarts_the_time() {
    let mut world = resilient(FailureKind::ServerError, FailureLayer::Agent);
    for _ in 0..20 {
        let decision = world.decide();
        assert!(world.fails_again_after(&decision));
    }
    world.history.record_progress(world.now);
    world.now = world.now.after(MINUTE);
    let decision = world.decide();
    assert_eq!(decision.delay(), Some(Duration::from_millis(500)));
    assert_eq!(decision.attempt, 1);
    assert!(
        decision.reason.ends_with("(1 min of 30 min)."),
        "{}",
        decision.reason
    );
}

/// The limit of executions applies to counted retries; it must not end time-bounded ones.
#[test]
fn the_execution_limit_does_not_undercut_the_time() {
    let mut world = resilient(FailureKind::NetworkError, FailureLayer::Tool);
    for _ in 0..25 {
        let decision = world.decide();
        assert_eq!(decision.level, Some(RecoveryLevel::Same));
        assert!(world.fails_again_after(&decision));
    }
}

/// S1-12 and others: a kind with its own limit keeps it, and its delays.
#[test]
fn a_kind_with_its_own_limit_keeps_it() {
    let mut world = resilient(FailureKind::Timeout, FailureLayer::Agent).with_retries(2, 1.5);
    world.diagnosis.level = Some(RecoveryLevel::Alternative);
    assert_eq!(delays(&world.run()), [1.5, 3.0]);
    let mut unknown = resilient(FailureKind::Unknown, FailureLayer::Tool);
    assert_eq!(story(&unknown.run()), ["same", "escalate"]);
    let mut told = resilient(FailureKind::ServerError, FailureLayer::Api);
    told.policy = told
        .policy
        .with_json(&serde_json::json!({"kinds": {"server_error": {"maxRetries": 1}}}))
        .unwrap();
    assert_eq!(story(&told.run())[..2], ["same", "alternative simplify"]);
}

/// A stated reset is waited for however long it takes, and is not time without progress.
#[test]
fn a_stated_reset_does_not_use_up_the_time() {
    let mut world = resilient(FailureKind::RateLimitTimed, FailureLayer::Agent);
    let week = Duration::from_secs(7 * 86_400);
    world.diagnosis.retry_after = Some(week);
    let decision = world.decide();
    assert!(decision.delay().unwrap() >= week);
    assert!(world.fails_again_after(&decision));
    world.diagnosis.kind = FailureKind::ServerError;
    world.diagnosis.retry_after = None;
    assert_eq!(world.decide().level, Some(RecoveryLevel::Same));
}

/// A wait that a server requests is honored even if it leads beyond the time.
#[test]
fn a_stated_wait_is_honored_beyond_the_time() {
    let mut world = resilient(FailureKind::RateLimit, FailureLayer::Api);
    world.diagnosis.retry_after = Some(45 * MINUTE);
    assert_eq!(world.decide().delay(), Some(45 * MINUTE));
}

/// A failure that a gateway gave up on is retried while there is time, and not after that.
#[test]
fn retries_made_elsewhere_are_repeated_while_there_is_time() {
    let mut world = resilient(FailureKind::ServerError, FailureLayer::Agent);
    world.diagnosis.level = Some(RecoveryLevel::Alternative);
    assert_eq!(world.decide().level, Some(RecoveryLevel::Same));
    world.now = world.now.after(31 * MINUTE);
    assert_eq!(world.decide().level, Some(RecoveryLevel::Alternative));
}

/// After the time an agent is parked and probed until the total time is over; then it escalates.
#[test]
fn an_agent_is_parked_and_probed_until_the_total_time_is_over() {
    let mut world = resilient(FailureKind::ServerOverloaded, FailureLayer::Agent);
    let began = world.now;
    let mut decisions = Vec::new();
    loop {
        let decision = world.decide_as(|s| s.can_park = true);
        let goes_on = world.fails_again_after(&decision);
        decisions.push(decision);
        if !goes_on {
            break;
        }
    }
    let parked: Vec<_> = decisions
        .iter()
        .filter(|one| one.wait_purpose == WaitPurpose::Probe)
        .collect();
    let spread = 5 * MINUTE..=5 * MINUTE + MINUTE / 2;
    assert!(
        parked
            .iter()
            .all(|one| spread.contains(&one.delay().unwrap()))
    );
    assert!((125..=137).contains(&parked.len()), "{}", parked.len());
    let until = began.after(12 * 60 * MINUTE);
    assert!(parked.iter().all(|one| one.give_up_at == Some(until)));
    assert!(
        parked[0].reason.contains("parked, probing again in 5 min"),
        "{}",
        parked[0].reason
    );
    // The permitted strategies came first.
    let first = decisions
        .iter()
        .position(|one| one.wait_purpose == WaitPurpose::Probe);
    let before = story(&decisions[..first.unwrap()]);
    assert_eq!(
        before[before.len() - 2..],
        ["alternative simplify", "alternative fresh"]
    );
    let last = decisions.last().unwrap();
    assert!(
        matches!(last.action, RecoveryAction::Escalate { .. }),
        "{last:?}"
    );
    assert!(last.decided_at < until);
}

/// A failure that must not be retried, or that the policy does not retry, is not probed either.
#[test]
fn failures_that_are_not_retried_are_not_probed() {
    let mut world = resilient(FailureKind::ServerError, FailureLayer::Agent).with_chain(&[]);
    world.now = world.now.after(31 * MINUTE);
    let asks = |world: &World, repeat| {
        let decision = world.decide_as(|s| {
            s.can_park = true;
            s.repeatable = repeat;
        });
        matches!(decision.action, RecoveryAction::Escalate { .. })
    };
    assert!(!asks(&world, OperationRepeatability::Safe));
    assert!(asks(&world, OperationRepeatability::Unsafe));
    world.policy.retryable_errors = vec![FailureKind::RateLimit];
    assert!(asks(&world, OperationRepeatability::Safe));
    let mut counted = World::new(FailureKind::ServerError, FailureLayer::Agent).with_chain(&[]);
    counted.policy.max_retries = 0;
    assert!(asks(&counted, OperationRepeatability::Safe));
}

/// An unavailable network is waited for, without using up any limit.
#[test]
fn without_a_network_it_waits_until_it_is_back() {
    let mut world = resilient(FailureKind::NetworkError, FailureLayer::Agent);
    let offline = |s: &mut DecisionInput<'_>| {
        s.network = NetworkStatus::Down;
        s.can_park = true;
    };
    let decision = world.decide_as(offline);
    assert_eq!(decision.wait_purpose, WaitPurpose::Network);
    assert_eq!(decision.delay(), Some(12 * 60 * MINUTE));
    world.history.record(decision.to_retry_record(0.0).unwrap());
    // It is back after three hours.
    world.now = world.now.after(180 * MINUTE);
    world.history.record_actual_start(world.now);
    let again = world.decide();
    assert_eq!((again.level, again.attempt), (Some(RecoveryLevel::Same), 1));
    assert_eq!(again.delay(), Some(Duration::from_millis(500)));
    // The remaining time for the network.
    assert_eq!(world.decide_as(offline).delay(), Some(9 * 60 * MINUTE));
    // Any other command waits no longer than it retries.
    let plain = world.decide_as(|s| s.network = NetworkStatus::Down);
    assert_eq!(plain.wait_purpose, WaitPurpose::Retry);
    let fresh = resilient(FailureKind::NetworkError, FailureLayer::Tool);
    let plain = fresh.decide_as(|s| s.network = NetworkStatus::Down);
    assert_eq!(plain.delay(), Some(30 * MINUTE));
    // If a server answered, the network is available.
    let limit = resilient(FailureKind::RateLimit, FailureLayer::Api).decide_as(offline);
    assert_eq!(limit.wait_purpose, WaitPurpose::Retry);
}

/// A host name that cannot be resolved is most likely wrong.
#[test]
fn an_unresolvable_host_is_retried_for_a_short_time() {
    let mut world = resilient(FailureKind::NetworkError, FailureLayer::Tool).with_chain(&[]);
    let began = world.now;
    loop {
        let decision = world.decide_as(|s| s.network = NetworkStatus::UnknownHost);
        if !world.fails_again_after(&decision) {
            break;
        }
    }
    let took = world.now.since(began);
    assert!(
        took >= Duration::from_secs(30) && took < 2 * MINUTE,
        "{took:?}"
    );
}

/// The templates of the founding documents limit the number of retries, whatever the network does.
#[test]
fn a_policy_with_a_retry_count_does_not_wait_for_the_network() {
    let world = World::new(FailureKind::NetworkError, FailureLayer::Tool);
    let decision = world.decide_as(|s| s.network = NetworkStatus::Down);
    assert_eq!(
        (decision.wait_purpose, decision.max_attempts),
        (WaitPurpose::Retry, 3)
    );
    assert_eq!(decision.give_up_at, None);
}

/// A local service that is starting is waited for briefly; then the usual decision follows.
#[test]
fn a_kind_may_have_its_own_time_limit() {
    let mut world = resilient(FailureKind::ServiceDown, FailureLayer::Tool);
    world.diagnosis.level = Some(RecoveryLevel::Same);
    world.knowledge.tool.give_up_after_seconds = Some(30);
    let first = world.decide();
    assert!(
        matches!(first.action, RecoveryAction::Retry { .. }),
        "{first:?}"
    );
    assert_eq!(
        first.give_up_at,
        Some(world.now.after(Duration::from_secs(30)))
    );
    world.now = world.now.after(Duration::from_secs(29));
    assert!(matches!(
        world.decide().action,
        RecoveryAction::Retry { .. }
    ));
    world.now = world.now.after(Duration::from_secs(1));
    let last = world.decide();
    assert!(
        !matches!(last.action, RecoveryAction::Retry { .. }),
        "{last:?}"
    );
    // An explicitly set number of retries stays one.
    world.now = world.now.before(Duration::from_secs(30));
    world.policy = exact("standard");
    assert_eq!(world.decide().max_attempts, 3);
}

//! Behavior of one admission controller, call by call.

use std::time::Duration;

use crate::admission::{
    AdmissionDecision, ApiAdmissionController, ApiAdmissionRequest, ApiAdmissionSettings,
    ApiAttemptKind, HoldReason, ResponseRateLimits,
};
use crate::failure::FailureKind;
use crate::time::Timestamp;

const FIRST: ApiAdmissionRequest = ApiAdmissionRequest {
    attempt: ApiAttemptKind::First,
    tokens: 0,
};

/// Returns an unused controller and the current time.
fn fresh() -> (ApiAdmissionController, Timestamp) {
    let now = Timestamp::from_seconds(0);
    (
        ApiAdmissionController::new(ApiAdmissionSettings::default(), now),
        now,
    )
}

/// Admits this many calls, each of which succeeds at once.
fn goes_well(lane: &mut ApiAdmissionController, calls: u32, now: Timestamp) {
    for _ in 0..calls {
        assert_eq!(lane.admit(FIRST, now), AdmissionDecision::Admit);
        lane.on_success(&ResponseRateLimits::default(), 1, Duration::ZERO, now);
    }
}

/// Admits a call that fails; the stated wait is in seconds.
fn fails(
    lane: &mut ApiAdmissionController,
    kind: FailureKind,
    stated: Option<u64>,
    now: Timestamp,
) {
    assert_eq!(lane.admit(FIRST, now), AdmissionDecision::Admit);
    let stated = stated.map(Duration::from_secs);
    lane.on_failure(kind, stated, &ResponseRateLimits::default(), now);
}

#[test]
fn state_is_serialized_for_a_dashboard() {
    let (mut lane, now) = fresh();
    assert_eq!(lane.admit(FIRST, now), AdmissionDecision::Admit);
    fails(&mut lane, FailureKind::RateLimit, Some(7), now);
    let json = serde_json::to_value(lane.state(now)).unwrap();
    assert_eq!(json["inFlight"], 1);
    assert_eq!(json["coolDownUntil"], "1970-01-01T00:00:07Z");
    assert_eq!(json["counts"]["rateLimited"], 1);
    assert_eq!(json["breaker"]["name"], "closed");
    assert_eq!(json["retryBudget"], 20.0);
}

/// A retry requested by the server does not contribute to a storm: it consumes no retry budget.
#[test]
fn retry_requested_by_the_server_costs_no_budget() {
    let (mut lane, now) = fresh();
    let ask = |attempt| ApiAdmissionRequest { attempt, tokens: 0 };
    for _ in 0..20 {
        assert_eq!(
            lane.admit(ask(ApiAttemptKind::Retry), now),
            AdmissionDecision::Admit
        );
    }
    let held = lane.admit(ask(ApiAttemptKind::Retry), now);
    assert!(
        matches!(
            held,
            AdmissionDecision::Wait {
                why: HoldReason::RetryBudget,
                ..
            }
        ),
        "{held:?}"
    );
    assert_eq!(
        lane.admit(ask(ApiAttemptKind::AsInstructed), now),
        AdmissionDecision::Admit
    );
    assert_eq!(
        lane.admit(ask(ApiAttemptKind::First), now),
        AdmissionDecision::Admit
    );
}

/// After a stated wait all calls may go again, but not in the same instant.
#[test]
fn stated_wait_holds_all_calls_and_spreads_their_wake_up() {
    let (mut lane, now) = fresh();
    fails(&mut lane, FailureKind::RateLimit, Some(12), now);
    let until = now.after(Duration::from_secs(12));
    let why = HoldReason::CoolDown;
    assert_eq!(
        lane.admit(FIRST, now),
        AdmissionDecision::Wait { until, why }
    );
    let woken = (0..100).filter(|_| lane.admit(FIRST, until) == AdmissionDecision::Admit);
    assert_eq!(woken.count(), 1);
    let second = until.after(Duration::from_secs(1));
    assert_eq!(lane.admit(FIRST, second), AdmissionDecision::Admit);
}

/// One of many calls is rate-limited for a second: the others are not affected until more calls are.
#[test]
fn brief_limit_holds_all_calls_only_if_limits_are_not_rare() {
    let (mut lane, now) = fresh();
    goes_well(&mut lane, 20, now);
    let mut limited = |seconds| {
        fails(&mut lane, FailureKind::RateLimit, Some(seconds), now);
        lane.clone().admit(FIRST, now)
    };
    assert_eq!(limited(1), AdmissionDecision::Admit);
    assert_eq!(limited(1), AdmissionDecision::Admit);
    let until = now.after(Duration::from_secs(1));
    let why = HoldReason::CoolDown;
    assert_eq!(limited(1), AdmissionDecision::Wait { until, why });
}

/// A long wait affects all calls, regardless of earlier successes.
#[test]
fn long_stated_wait_holds_all_calls_at_once() {
    let (mut lane, now) = fresh();
    goes_well(&mut lane, 20, now);
    fails(&mut lane, FailureKind::RateLimit, Some(30), now);
    let until = now.after(Duration::from_secs(30));
    let why = HoldReason::CoolDown;
    assert_eq!(
        lane.admit(FIRST, now),
        AdmissionDecision::Wait { until, why }
    );
}

/// One call probes at a time; others are refused meanwhile, and a lost probe allows another one.
#[test]
fn down_upstream_is_probed_by_one_call_at_a_time() {
    let (mut lane, now) = fresh();
    for _ in 0..8 {
        fails(&mut lane, FailureKind::NetworkError, None, now);
    }
    let until = now.after(Duration::from_secs(1));
    let why = HoldReason::Breaker;
    assert_eq!(
        lane.admit(FIRST, now),
        AdmissionDecision::Refuse { until, why }
    );
    assert_eq!(lane.admit(FIRST, until), AdmissionDecision::Admit);
    assert!(matches!(
        lane.admit(FIRST, until),
        AdmissionDecision::Refuse { .. }
    ));
    lane.on_abandoned(until);
    assert_eq!(lane.admit(FIRST, until), AdmissionDecision::Admit);
    lane.on_success(&ResponseRateLimits::default(), 1, Duration::ZERO, until);
    let later = until.after(Duration::from_secs(1));
    assert_eq!(lane.admit(FIRST, later), AdmissionDecision::Admit);
}

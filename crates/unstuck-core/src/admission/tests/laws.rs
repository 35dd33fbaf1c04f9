//! Invariants of an admission controller.

use std::time::Duration;

use proptest::prelude::*;

use crate::admission::{
    AdmissionDecision, ApiAdmissionController, ApiAdmissionRequest, ApiAdmissionSettings,
    ApiAttemptKind, HoldReason, RemainingQuota, ResponseRateLimits,
};
use crate::failure::FailureKind;
use crate::time::Timestamp;

#[derive(Debug, Clone)]
enum Step {
    Ask(ApiAttemptKind, u64),
    Answered(Option<RemainingQuota>),
    Failed(FailureKind, Option<u64>),
    Abandoned,
    Pass(u64),
}

fn window() -> impl Strategy<Value = RemainingQuota> {
    let limit = proptest::option::of(0_u64..200);
    (limit, 0_u64..200, 0_i64..200_000, any::<bool>()).prop_map(
        |(limit, remaining, reset, refills)| RemainingQuota {
            limit,
            remaining,
            reset: Timestamp::from_millis(reset),
            refills,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let attempt = prop_oneof![
        Just(ApiAttemptKind::First),
        Just(ApiAttemptKind::Retry),
        Just(ApiAttemptKind::AsInstructed)
    ];
    let kind = proptest::sample::select(FailureKind::ALL);
    let step = prop_oneof![
        6 => (attempt, 0_u64..300).prop_map(|(attempt, tokens)| Step::Ask(attempt, tokens)),
        2 => proptest::option::of(window()).prop_map(Step::Answered),
        2 => (kind, proptest::option::of(0_u64..60_000)).prop_map(|(kind, stated)| Step::Failed(kind, stated)),
        1 => (0_u64..60_000).prop_map(|stated| Step::Failed(FailureKind::RateLimit, Some(stated))),
        3 => Just(Step::Failed(FailureKind::ServerOverloaded, None)),
        1 => Just(Step::Abandoned),
        4 => (0_u64..3000).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..100)
}

fn limits(window: Option<RemainingQuota>, now: Timestamp) -> ResponseRateLimits {
    ResponseRateLimits {
        read_at: Some(now),
        requests: window,
        tokens: window,
        ..ResponseRateLimits::default()
    }
}

/// Returns the controller after the steps, the number of calls in flight, and the current time.
fn after(
    steps: Vec<Step>,
    settings: ApiAdmissionSettings,
) -> (ApiAdmissionController, u32, Timestamp) {
    let mut now = Timestamp::from_seconds(0);
    let mut lane = ApiAdmissionController::new(settings, now);
    let mut on_the_way = 0_u32;
    for step in steps {
        match step {
            Step::Pass(millis) => now = now.after(Duration::from_millis(millis)),
            Step::Ask(attempt, tokens) => {
                on_the_way += u32::from(
                    lane.admit(ApiAdmissionRequest { attempt, tokens }, now)
                        == AdmissionDecision::Admit,
                );
            }
            _ if on_the_way == 0 => {}
            Step::Answered(window) => {
                on_the_way -= 1;
                lane.on_success(&limits(window, now), 10, Duration::from_secs(1), now);
            }
            Step::Failed(kind, stated) => {
                on_the_way -= 1;
                let stated = stated.map(Duration::from_millis);
                lane.on_failure(kind, stated, &limits(None, now), now);
            }
            Step::Abandoned => {
                on_the_way -= 1;
                lane.on_abandoned(now);
            }
        }
        assert_eq!(lane.state(now).in_flight, on_the_way);
    }
    (lane, on_the_way, now)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn announced_time_is_always_sufficient(steps in steps(), tokens in 0_u64..300, again in any::<bool>()) {
        let (mut lane, _, now) = after(steps, ApiAdmissionSettings::default());
        let attempt = if again { ApiAttemptKind::Retry } else { ApiAttemptKind::First };
        let ask = ApiAdmissionRequest { attempt, tokens };
        if let AdmissionDecision::Wait { until, why } | AdmissionDecision::Refuse { until, why } = lane.admit(ask, now) {
            prop_assert!(until > now);
            // The end of another call cannot be predicted.
            let then = lane.admit(ask, until);
            let full = matches!(then, AdmissionDecision::Wait { why: HoldReason::Concurrency, .. });
            prop_assert!(then == AdmissionDecision::Admit || full, "held by {why:?}, then {then:?}");
        }
    }

    #[test]
    fn controller_never_locks_up(steps in steps(), most in 1_u32..5) {
        let settings = ApiAdmissionSettings { max_in_flight: Some(most), ..ApiAdmissionSettings::default() };
        let (mut lane, on_the_way, mut now) = after(steps, settings);
        for _ in 0..on_the_way {
            lane.on_abandoned(now);
        }
        let ask = ApiAdmissionRequest { attempt: ApiAttemptKind::First, tokens: 5 };
        for _ in 0..10 {
            match lane.admit(ask, now) {
                AdmissionDecision::Admit => return Ok(()),
                AdmissionDecision::Wait { until, why } | AdmissionDecision::Refuse { until, why } => {
                    prop_assert!(why != HoldReason::Concurrency);
                    now = until;
                }
            }
        }
        prop_assert!(false, "nobody was let through");
    }

    /// Whatever succeeds meanwhile, no more calls go before the reset than the quota allows.
    #[test]
    fn known_limit_is_never_exceeded(
        remaining in 0_u64..60, limit in 60_u64..100, tokens in 1_u64..4,
        asks in proptest::collection::vec((0_u64..400, any::<bool>()), 0..200),
    ) {
        let mut now = Timestamp::from_seconds(0);
        let reset = Timestamp::from_seconds(30);
        let mut lane = ApiAdmissionController::new(ApiAdmissionSettings::default(), now);
        let said = |remaining| Some(RemainingQuota { limit: Some(limit), remaining, reset, refills: false });
        let ask = ApiAdmissionRequest { attempt: ApiAttemptKind::First, tokens };
        prop_assert_eq!(lane.admit(ask, now), AdmissionDecision::Admit);
        lane.on_success(&limits(said(remaining), now), tokens, Duration::ZERO, now);
        // The responses of the calls in flight: as old as those calls.
        let (mut left, mut saying) = (remaining, std::collections::VecDeque::new());
        for (pass, answers) in asks {
            now = now.after(Duration::from_millis(pass));
            if now >= reset {
                break;
            }
            if lane.admit(ask, now) == AdmissionDecision::Admit {
                prop_assert!(left >= tokens, "{} left", left);
                left -= tokens;
                saying.push_back(left);
            }
            if answers && let Some(remaining) = saying.pop_front() {
                lane.on_success(&limits(said(remaining), now), tokens, Duration::ZERO, now);
            }
        }
    }
}

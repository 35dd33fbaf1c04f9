//! What holds for a lane whatever happens to it.

use std::time::Duration;

use proptest::prelude::*;

use crate::failure::Kind;
use crate::moment::Timestamp;
use crate::traffic::{Admission, Ask, Held, Lane, LaneSettings, Limits, Try, Window};

#[derive(Debug, Clone)]
enum Step {
    Ask(Try, u64),
    Answered(Option<Window>),
    Failed(Kind, Option<u64>),
    Abandoned,
    Pass(u64),
}

fn window() -> impl Strategy<Value = Window> {
    let limit = proptest::option::of(0_u64..200);
    (limit, 0_u64..200, 0_i64..200_000, any::<bool>()).prop_map(
        |(limit, remaining, reset, refills)| Window {
            limit,
            remaining,
            reset: Timestamp::from_millis(reset),
            refills,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let attempt = prop_oneof![Just(Try::First), Just(Try::Again), Just(Try::AsTold)];
    let kind = proptest::sample::select(Kind::ALL);
    let step = prop_oneof![
        6 => (attempt, 0_u64..300).prop_map(|(attempt, tokens)| Step::Ask(attempt, tokens)),
        2 => proptest::option::of(window()).prop_map(Step::Answered),
        2 => (kind, proptest::option::of(0_u64..60_000)).prop_map(|(kind, stated)| Step::Failed(kind, stated)),
        1 => (0_u64..60_000).prop_map(|stated| Step::Failed(Kind::RateLimit, Some(stated))),
        3 => Just(Step::Failed(Kind::ServerOverloaded, None)),
        1 => Just(Step::Abandoned),
        4 => (0_u64..3000).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..100)
}

fn limits(window: Option<Window>, now: Timestamp) -> Limits {
    Limits {
        at: Some(now),
        requests: window,
        tokens: window,
        ..Limits::default()
    }
}

/// The lane after the steps, how many calls are on their way, and the moment.
fn after(steps: Vec<Step>, settings: LaneSettings) -> (Lane, u32, Timestamp) {
    let mut now = Timestamp::from_seconds(0);
    let mut lane = Lane::new(settings, now);
    let mut on_the_way = 0_u32;
    for step in steps {
        match step {
            Step::Pass(millis) => now = now.after(Duration::from_millis(millis)),
            Step::Ask(attempt, tokens) => {
                on_the_way += u32::from(lane.admit(Ask { attempt, tokens }, now) == Admission::Go);
            }
            _ if on_the_way == 0 => {}
            Step::Answered(window) => {
                on_the_way -= 1;
                lane.answered(&limits(window, now), 10, Duration::from_secs(1), now);
            }
            Step::Failed(kind, stated) => {
                on_the_way -= 1;
                let stated = stated.map(Duration::from_millis);
                lane.failed(kind, stated, &limits(None, now), now);
            }
            Step::Abandoned => {
                on_the_way -= 1;
                lane.abandoned(now);
            }
        }
        assert_eq!(lane.state(now).in_flight, on_the_way);
    }
    (lane, on_the_way, now)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_announced_moment_is_always_enough(steps in steps(), tokens in 0_u64..300, again in any::<bool>()) {
        let (mut lane, _, now) = after(steps, LaneSettings::default());
        let attempt = if again { Try::Again } else { Try::First };
        let ask = Ask { attempt, tokens };
        if let Admission::Wait { until, why } | Admission::Refuse { until, why } = lane.admit(ask, now) {
            prop_assert!(until > now);
            // Nobody can announce when another call will end.
            let then = lane.admit(ask, until);
            let full = matches!(then, Admission::Wait { why: Held::Concurrency, .. });
            prop_assert!(then == Admission::Go || full, "held by {why:?}, then {then:?}");
        }
    }

    #[test]
    fn it_never_locks_up(steps in steps(), most in 1_u32..5) {
        let settings = LaneSettings { max_in_flight: Some(most), ..LaneSettings::default() };
        let (mut lane, on_the_way, mut now) = after(steps, settings);
        for _ in 0..on_the_way {
            lane.abandoned(now);
        }
        let ask = Ask { attempt: Try::First, tokens: 5 };
        for _ in 0..10 {
            match lane.admit(ask, now) {
                Admission::Go => return Ok(()),
                Admission::Wait { until, why } | Admission::Refuse { until, why } => {
                    prop_assert!(why != Held::Concurrency);
                    now = until;
                }
            }
        }
        prop_assert!(false, "nobody was let through");
    }

    /// Whatever is answered in between, no more go before the reset than were left.
    #[test]
    fn a_known_limit_is_never_exceeded(
        remaining in 0_u64..60, limit in 60_u64..100, tokens in 1_u64..4,
        asks in proptest::collection::vec((0_u64..400, any::<bool>()), 0..200),
    ) {
        let mut now = Timestamp::from_seconds(0);
        let reset = Timestamp::from_seconds(30);
        let mut lane = Lane::new(LaneSettings::default(), now);
        let said = |remaining| Some(Window { limit: Some(limit), remaining, reset, refills: false });
        let ask = Ask { attempt: Try::First, tokens };
        prop_assert_eq!(lane.admit(ask, now), Admission::Go);
        lane.answered(&limits(said(remaining), now), tokens, Duration::ZERO, now);
        // What the server will say of the calls on their way: its answers are as old as they are.
        let (mut left, mut saying) = (remaining, std::collections::VecDeque::new());
        for (pass, answers) in asks {
            now = now.after(Duration::from_millis(pass));
            if now >= reset {
                break;
            }
            if lane.admit(ask, now) == Admission::Go {
                prop_assert!(left >= tokens, "{} left", left);
                left -= tokens;
                saying.push_back(left);
            }
            if answers && let Some(remaining) = saying.pop_front() {
                lane.answered(&limits(said(remaining), now), tokens, Duration::ZERO, now);
            }
        }
    }
}

#[test]
fn the_state_is_written_for_a_dashboard() {
    let now = Timestamp::from_seconds(0);
    let mut lane = Lane::new(LaneSettings::default(), now);
    let ask = Ask {
        attempt: Try::First,
        tokens: 10,
    };
    assert_eq!(lane.admit(ask, now), Admission::Go);
    assert_eq!(lane.admit(ask, now), Admission::Go);
    lane.failed(
        Kind::RateLimit,
        Some(Duration::from_secs(7)),
        &Limits::default(),
        now,
    );
    let json = serde_json::to_value(lane.state(now)).unwrap();
    assert_eq!(json["inFlight"], 1);
    assert_eq!(json["coolDownUntil"], "1970-01-01T00:00:07Z");
    assert_eq!(json["counts"]["rateLimited"], 1);
    assert_eq!(json["breaker"]["name"], "closed");
    assert_eq!(json["retryBudget"], 20.0);
}

/// What the server asked for is no storm: it does not draw on the retry budget.
#[test]
fn a_retry_that_the_server_asked_for_costs_no_budget() {
    let now = Timestamp::from_seconds(0);
    let mut lane = Lane::new(LaneSettings::default(), now);
    let ask = |attempt| Ask { attempt, tokens: 0 };
    for _ in 0..20 {
        assert_eq!(lane.admit(ask(Try::Again), now), Admission::Go);
    }
    let held = lane.admit(ask(Try::Again), now);
    assert!(
        matches!(
            held,
            Admission::Wait {
                why: Held::RetryBudget,
                ..
            }
        ),
        "{held:?}"
    );
    assert_eq!(lane.admit(ask(Try::AsTold), now), Admission::Go);
    assert_eq!(lane.admit(ask(Try::First), now), Admission::Go);
}

/// After a stated wait everybody may go again, but not all in the same instant.
#[test]
fn a_stated_wait_holds_everybody_and_they_do_not_all_wake_at_once() {
    let now = Timestamp::from_seconds(100);
    let mut lane = Lane::new(LaneSettings::default(), now);
    let ask = Ask {
        attempt: Try::First,
        tokens: 0,
    };
    assert_eq!(lane.admit(ask, now), Admission::Go);
    let wait = Some(Duration::from_secs(12));
    lane.failed(Kind::RateLimit, wait, &Limits::default(), now);
    let until = now.after(Duration::from_secs(12));
    let why = Held::CoolDown;
    assert_eq!(lane.admit(ask, now), Admission::Wait { until, why });
    let woken = (0..100).filter(|_| lane.admit(ask, until) == Admission::Go);
    assert_eq!(woken.count(), 1);
    let second = until.after(Duration::from_secs(1));
    assert_eq!(lane.admit(ask, second), Admission::Go);
}

/// One of many calls is told to come again in a second: the others have nothing to do with it, until it happens to more.
#[test]
fn a_brief_limit_holds_everybody_only_when_it_is_no_exception() {
    let now = Timestamp::from_seconds(0);
    let mut lane = Lane::new(LaneSettings::default(), now);
    let ask = Ask {
        attempt: Try::First,
        tokens: 0,
    };
    for _ in 0..20 {
        assert_eq!(lane.admit(ask, now), Admission::Go);
        lane.answered(&Limits::default(), 1, Duration::ZERO, now);
    }
    let mut limited = |seconds| {
        assert_eq!(lane.admit(ask, now), Admission::Go);
        let wait = Some(Duration::from_secs(seconds));
        lane.failed(Kind::RateLimit, wait, &Limits::default(), now);
        lane.clone().admit(ask, now)
    };
    assert_eq!(limited(1), Admission::Go);
    assert_eq!(limited(1), Admission::Go);
    let until = now.after(Duration::from_secs(1));
    let why = Held::CoolDown;
    assert_eq!(limited(1), Admission::Wait { until, why });
}

/// A wait that is not brief concerns everybody, however good all went before.
#[test]
fn a_long_stated_wait_holds_everybody_at_once() {
    let now = Timestamp::from_seconds(0);
    let mut lane = Lane::new(LaneSettings::default(), now);
    let ask = Ask {
        attempt: Try::First,
        tokens: 0,
    };
    for _ in 0..20 {
        assert_eq!(lane.admit(ask, now), Admission::Go);
        lane.answered(&Limits::default(), 1, Duration::ZERO, now);
    }
    assert_eq!(lane.admit(ask, now), Admission::Go);
    let wait = Duration::from_secs(30);
    lane.failed(Kind::RateLimit, Some(wait), &Limits::default(), now);
    let (until, why) = (now.after(wait), Held::CoolDown);
    assert_eq!(lane.admit(ask, now), Admission::Wait { until, why });
}

/// A person who bought more does not wait for the reset.
#[test]
fn what_a_person_knows_better_is_forgotten() {
    let now = Timestamp::from_seconds(0);
    let mut lane = Lane::new(LaneSettings::default(), now);
    let ask = Ask {
        attempt: Try::First,
        tokens: 0,
    };
    assert_eq!(lane.admit(ask, now), Admission::Go);
    let day = Some(Duration::from_secs(86_400));
    lane.failed(Kind::RateLimitTimed, day, &Limits::default(), now);
    let later = now.after(Duration::from_secs(60));
    assert_ne!(lane.admit(ask, later), Admission::Go);
    lane.forget_limits(later);
    assert_eq!(lane.admit(ask, later), Admission::Go);
}

/// One probe finds out; whoever comes meanwhile is refused, and a probe that is lost makes room for another.
#[test]
fn a_dead_upstream_is_probed_by_one_call_at_a_time() {
    let now = Timestamp::from_seconds(0);
    let mut lane = Lane::new(LaneSettings::default(), now);
    let ask = Ask {
        attempt: Try::First,
        tokens: 0,
    };
    for _ in 0..8 {
        assert_eq!(lane.admit(ask, now), Admission::Go);
        lane.failed(Kind::NetworkError, None, &Limits::default(), now);
    }
    let until = now.after(Duration::from_secs(1));
    let why = Held::Breaker;
    assert_eq!(lane.admit(ask, now), Admission::Refuse { until, why });
    assert_eq!(lane.admit(ask, until), Admission::Go);
    assert!(matches!(lane.admit(ask, until), Admission::Refuse { .. }));
    lane.abandoned(until);
    assert_eq!(lane.admit(ask, until), Admission::Go);
    lane.answered(&Limits::default(), 1, Duration::ZERO, until);
    let later = until.after(Duration::from_secs(1));
    assert_eq!(lane.admit(ask, later), Admission::Go);
}

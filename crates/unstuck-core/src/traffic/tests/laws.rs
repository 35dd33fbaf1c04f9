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

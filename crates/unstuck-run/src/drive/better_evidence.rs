//! What an agent says of a failure, and what was seen of it on the wire: the better of the two counts.

use unstuck_core::{Diagnosis, Kind};

/// Limits: what stands later says more, and an agent may know more than its API tells.
const LIMITS: [Kind; 3] = [Kind::RateLimit, Kind::RateLimitTimed, Kind::QuotaExhausted];
/// Outages, which agents often confuse.
const OUTAGES: [Kind; 3] = [
    Kind::NetworkError,
    Kind::ServerError,
    Kind::ServerOverloaded,
];

/// What counts: what was seen on the wire, where the agent's own words say nothing, the same, or less.
pub(super) fn better(own: Diagnosis, seen: Option<&Diagnosis>) -> Diagnosis {
    match seen {
        Some(seen) if says_more(seen.kind, own.kind) => Diagnosis {
            layer: own.layer,
            ..seen.clone()
        },
        _ => own,
    }
}

fn says_more(seen: Kind, own: Kind) -> bool {
    let says_nothing = matches!(
        own,
        Kind::Unknown | Kind::None | Kind::EmptyOutput | Kind::CliCrash
    );
    let place = |kind| LIMITS.iter().position(|one| *one == kind);
    let is_later = match (place(own), place(seen)) {
        (Some(own), Some(seen)) => seen > own,
        _ => false,
    };
    let is_outage = OUTAGES.contains(&own) && OUTAGES.contains(&seen);
    seen == own || says_nothing || is_later || is_outage
}

#[cfg(test)]
mod tests {
    use unstuck_core::{Failure, Now, Timestamp, classify};

    use super::*;

    fn of(text: &str) -> Diagnosis {
        let now = Now::utc(Timestamp::from_seconds(0));
        classify(&Failure::agent("claude").with_stderr(text), &now)
    }

    #[test]
    fn the_wire_says_more_than_an_agent_that_says_nothing_or_less() {
        for (seen, own) in [
            (Kind::ServerOverloaded, Kind::Unknown),
            (Kind::RateLimitTimed, Kind::RateLimit),
            (Kind::QuotaExhausted, Kind::RateLimit),
            (Kind::ServerOverloaded, Kind::ServerError),
            (Kind::ServerError, Kind::ServerOverloaded),
            (Kind::AuthExpired, Kind::EmptyOutput),
            (Kind::RateLimit, Kind::RateLimit),
        ] {
            assert!(says_more(seen, own), "{seen} {own}");
        }
        for (seen, own) in [
            (Kind::RateLimit, Kind::RateLimitTimed),
            (Kind::ServerError, Kind::TestFailure),
            (Kind::RateLimit, Kind::ServerError),
        ] {
            assert!(!says_more(seen, own), "{seen} {own}");
        }
    }

    #[test]
    fn what_was_seen_keeps_its_wait() {
        let own = of("something strange happened");
        let mut seen = of("429 Too Many Requests");
        seen.retry_after = Some(std::time::Duration::from_secs(90));
        let chosen = better(own.clone(), Some(&seen));
        assert_eq!(chosen.retry_after, seen.retry_after);
        assert_eq!((chosen.kind, chosen.layer), (seen.kind, own.layer));
        assert_eq!(better(own.clone(), None), own);
    }
}

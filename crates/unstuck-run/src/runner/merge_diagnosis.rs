//! Merges the diagnosis of the agent's output with that of the gateway: the better one is used.

use unstuck_core::{Diagnosis, FailureKind};

/// Limits: a later kind is more specific, and an agent may know more than its API response says.
const LIMIT_KINDS: [FailureKind; 3] = [
    FailureKind::RateLimit,
    FailureKind::RateLimitTimed,
    FailureKind::QuotaExhausted,
];
/// Kinds of failures of API calls.
const API_KINDS: [FailureKind; 12] = [
    FailureKind::RateLimit,
    FailureKind::RateLimitTimed,
    FailureKind::ServerOverloaded,
    FailureKind::ServerError,
    FailureKind::Timeout,
    FailureKind::NetworkError,
    FailureKind::ContextLimit,
    FailureKind::InvalidRequest,
    FailureKind::ModelNotFound,
    FailureKind::AuthRequired,
    FailureKind::AuthExpired,
    FailureKind::QuotaExhausted,
];
/// Outages, which agents often confuse.
const OUTAGE_KINDS: [FailureKind; 3] = [
    FailureKind::NetworkError,
    FailureKind::ServerError,
    FailureKind::ServerOverloaded,
];

/// Returns true if the failure is one of an API call.
pub(super) fn is_api_failure(kind: FailureKind) -> bool {
    API_KINDS.contains(&kind)
}

/// Returns the diagnosis to use: that of the gateway. If the call is not known to have ended the agent, the gateway's
/// diagnosis is used only if the agent reports no cause, the same one, or a less specific one.
pub(super) fn merge_diagnoses(
    own: Diagnosis,
    seen: Option<&Diagnosis>,
    is_cause: bool,
) -> Diagnosis {
    let counts = |seen: &&Diagnosis| {
        if is_cause {
            !is_vague(seen.kind) && !has_own_reset_time(&own, seen)
        } else {
            is_more_specific(seen.kind, own.kind)
        }
    };
    match seen.filter(counts) {
        // An agent that timed out had too much to do; one whose API was silent had not, and its conversation continues.
        Some(seen) if seen.kind == FailureKind::Timeout => seen.clone(),
        Some(seen) => Diagnosis {
            layer: own.layer,
            ..seen.clone()
        },
        None => own,
    }
}

/// Returns true if only the agent knows when a limit resets.
fn has_own_reset_time(own: &Diagnosis, seen: &Diagnosis) -> bool {
    own.kind == FailureKind::RateLimitTimed
        && seen.kind == FailureKind::RateLimit
        && seen.retry_after.is_none()
}

fn is_vague(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Unknown | FailureKind::None)
}

fn is_more_specific(seen: FailureKind, own: FailureKind) -> bool {
    let says_nothing = matches!(
        own,
        FailureKind::Unknown | FailureKind::None | FailureKind::EmptyOutput | FailureKind::CliCrash
    );
    let place = |kind| LIMIT_KINDS.iter().position(|one| *one == kind);
    let is_later = match (place(own), place(seen)) {
        (Some(own), Some(seen)) => seen > own,
        _ => false,
    };
    // Of a silent API, an agent sees only the error that ended its call: a 504, or a closed connection. The reverse
    // does not hold: an agent's own timeout may be that of its task.
    let is_outage = OUTAGE_KINDS.contains(&own)
        && (OUTAGE_KINDS.contains(&seen) || seen == FailureKind::Timeout);
    seen == own || says_nothing || is_later || is_outage
}

#[cfg(test)]
mod tests {
    use unstuck_core::{ClockReading, Failure, FailureLayer, RecoveryLevel, Timestamp, classify};

    use super::*;

    fn of(text: &str) -> Diagnosis {
        let now = ClockReading::utc(Timestamp::from_seconds(0));
        classify(&Failure::agent("claude").with_stderr(text), &now)
    }

    #[test]
    fn gateway_diagnosis_wins_over_an_unknown_or_less_specific_one() {
        for (seen, own) in [
            (FailureKind::ServerOverloaded, FailureKind::Unknown),
            (FailureKind::RateLimitTimed, FailureKind::RateLimit),
            (FailureKind::QuotaExhausted, FailureKind::RateLimit),
            (FailureKind::ServerOverloaded, FailureKind::ServerError),
            (FailureKind::ServerError, FailureKind::ServerOverloaded),
            (FailureKind::AuthExpired, FailureKind::EmptyOutput),
            (FailureKind::RateLimit, FailureKind::RateLimit),
            (FailureKind::Timeout, FailureKind::ServerError),
            (FailureKind::Timeout, FailureKind::NetworkError),
        ] {
            assert!(is_more_specific(seen, own), "{seen} {own}");
        }
        for (seen, own) in [
            (FailureKind::RateLimit, FailureKind::RateLimitTimed),
            (FailureKind::ServerError, FailureKind::TestFailure),
            (FailureKind::RateLimit, FailureKind::ServerError),
            (FailureKind::ServerError, FailureKind::Timeout),
        ] {
            assert!(!is_more_specific(seen, own), "{seen} {own}");
        }
    }

    #[test]
    fn gateway_diagnosis_keeps_its_wait() {
        let own = of("something strange happened");
        let mut seen = of("429 Too Many Requests");
        seen.retry_after = Some(std::time::Duration::from_secs(90));
        let chosen = merge_diagnoses(own.clone(), Some(&seen), false);
        assert_eq!(chosen.retry_after, seen.retry_after);
        assert_eq!((chosen.kind, chosen.layer), (seen.kind, own.layer));
        assert_eq!(merge_diagnoses(own.clone(), None, true), own);
    }

    /// The remedies for a timeout of the agent do not help if its API was silent.
    #[test]
    fn silent_api_is_an_api_failure() {
        let own = of("Request timed out");
        let now = ClockReading::utc(Timestamp::from_seconds(0));
        let silent = Failure::api("openai").with_stderr("Request timed out: no answer within 8s");
        let seen = classify(&silent, &now);
        assert_eq!(
            (own.kind, seen.kind),
            (FailureKind::Timeout, FailureKind::Timeout)
        );
        let chosen = merge_diagnoses(own, Some(&seen), true);
        assert_eq!(
            (chosen.layer, chosen.level),
            (FailureLayer::Api, Some(RecoveryLevel::Same))
        );
    }

    /// Agents report a silent API as the error of their client, even if the call is not known to have ended them.
    #[test]
    fn silent_api_is_not_a_server_error() {
        let now = ClockReading::utc(Timestamp::from_seconds(0));
        let silent = Failure::api("openai").with_stderr("Request timed out: no answer within 8s");
        let seen = classify(&silent, &now);
        for screen in [
            "ERROR: unexpected status 502 Bad Gateway",
            "ERROR: stream disconnected before completion: stream closed before response.completed",
        ] {
            let own = of(screen);
            assert!(OUTAGE_KINDS.contains(&own.kind), "{screen}: {}", own.kind);
            for is_cause in [true, false] {
                let chosen = merge_diagnoses(own.clone(), Some(&seen), is_cause);
                assert_eq!(
                    (chosen.kind, chosen.layer),
                    (FailureKind::Timeout, FailureLayer::Api),
                    "{screen}"
                );
            }
        }
    }

    /// A start-up warning, a missing model that reads like a missing program, a limit that reads like used-up credit.
    #[test]
    fn call_that_ended_the_agent_wins_over_its_output() {
        for (screen, wire) in [
            (
                "ripgrep not available: spawn rg EACCES permission denied",
                "500 Internal Server Error",
            ),
            ("gemini: command not found", "model not found: gemini-9"),
            ("Your credit balance is too low", "429 Too Many Requests"),
        ] {
            let (own, seen) = (of(screen), of(wire));
            assert_ne!(own.kind, seen.kind);
            assert_eq!(
                merge_diagnoses(own, Some(&seen), true).kind,
                seen.kind,
                "{screen}"
            );
        }
        let (mut own, seen) = (of("429 Too Many Requests"), of("429 Too Many Requests"));
        own.kind = FailureKind::RateLimitTimed;
        own.retry_after = Some(std::time::Duration::from_secs(5400));
        assert_eq!(
            merge_diagnoses(own.clone(), Some(&seen), true),
            own,
            "it knows the reset"
        );
    }
}

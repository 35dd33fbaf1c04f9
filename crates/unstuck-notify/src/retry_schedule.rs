//! The retry schedule for failed deliveries.

use std::time::Duration;

use sha2::{Digest, Sha256};
use unstuck_core::Timestamp;
use unstuck_store::OutboxMessage;

/// The time after which delivery of a message is given up.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(3 * 24 * 3600);

const FIRST_WAIT: Duration = Duration::from_secs(5);
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// Returns the time of the next attempt; `None` if delivery is given up.
///
/// Delays double from 5 seconds to an hour, with jitter derived from the message id so that retries are spread out. A
/// longer delay requested by the receiver is honored, up to a day.
pub fn next_attempt(
    letter: &OutboxMessage,
    stated: Option<Duration>,
    now: Timestamp,
) -> Option<Timestamp> {
    let doubled = FIRST_WAIT.saturating_mul(1 << letter.attempts.min(16));
    let wait = doubled.min(MAX_WAIT).mul_f64(0.8 + 0.4 * jitter(letter));
    let stated = stated.map(|stated| stated.min(24 * MAX_WAIT));
    let next = now.after(wait.max(stated.unwrap_or_default()));
    (next <= letter.created.after(GIVE_UP_AFTER)).then_some(next)
}

/// Returns a number from 0 to 1 that differs between messages and attempts.
fn jitter(letter: &OutboxMessage) -> f64 {
    let hash = Sha256::digest(format!("{} {}", letter.id, letter.attempts));
    f64::from(hash[0]) / 255.0
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use unstuck_core::RunId;
    use unstuck_store::DeliveryState;

    use super::*;

    fn letter(attempts: u32) -> OutboxMessage {
        OutboxMessage {
            id: "k3v9.4.1".into(),
            run: RunId::new("k3v9"),
            event_name: "escalation".into(),
            target: Value::Null,
            body: Value::Null,
            group: String::new(),
            created: Timestamp::from_seconds(0),
            due: Timestamp::from_seconds(0),
            attempts,
            last_error: None,
            state: DeliveryState::Waiting,
        }
    }

    #[test]
    fn delays_double_up_to_an_hour() {
        let now = Timestamp::from_seconds(1000);
        let wait = |attempts| {
            next_attempt(&letter(attempts), None, now)
                .unwrap()
                .since(now)
        };
        for (attempts, seconds) in [(0, 5), (1, 10), (4, 80), (10, 3600), (40, 3600)] {
            let expected = Duration::from_secs(seconds);
            let range = expected.mul_f64(0.8)..=expected.mul_f64(1.2);
            assert!(range.contains(&wait(attempts)), "{:?}", wait(attempts));
        }
    }

    #[test]
    fn requested_delay_is_honored_and_delivery_ends_after_three_days() {
        let now = Timestamp::from_seconds(1000);
        let stated = Some(Duration::from_secs(500));
        assert_eq!(
            next_attempt(&letter(0), stated, now),
            Some(Timestamp::from_seconds(1500))
        );
        let late = Timestamp::from_seconds(3 * 24 * 3600 - 10);
        assert!(next_attempt(&letter(0), None, late).is_some());
        assert_eq!(next_attempt(&letter(20), None, late), None);
    }
}

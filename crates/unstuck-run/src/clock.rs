//! Wall-clock time and waits that end at a wall-clock time, even if the machine slept meanwhile.

use std::time::Duration;

use tokio::time::Instant;
use unstuck_core::{ClockReading, Timestamp};

pub use crate::local_zone::local_reading;

/// Longest sleep before the clock is read again; timers stand still while a machine sleeps.
const MAX_SLEEP: Duration = Duration::from_secs(20);

/// A source of the current time.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The system clock.
    System,
    /// A clock that starts at a timestamp and runs with the timers of the runtime, which tests can pause.
    Virtual {
        /// The timestamp at which the clock starts.
        start: Timestamp,
        /// The instant at which the clock was started.
        since: Instant,
    },
}

impl Clock {
    /// Returns a clock that starts at a timestamp and runs with the timers of the runtime.
    pub fn starting_at(start: Timestamp) -> Self {
        Self::Virtual {
            start,
            since: Instant::now(),
        }
    }

    /// Returns the current timestamp.
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Self::System => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the only module that reads the clock"
                )]
                let now = std::time::SystemTime::now();
                let since = now.duration_since(std::time::UNIX_EPOCH);
                Timestamp::from_seconds(0).after(since.unwrap_or_default())
            }
            Self::Virtual { start, since } => start.after(since.elapsed()),
        }
    }

    /// Returns the current time in the local time zone, in which agents state their reset times.
    pub fn reading(&self) -> ClockReading {
        let at = self.timestamp();
        match self {
            Self::System => local_reading(at),
            Self::Virtual { .. } => ClockReading::utc(at),
        }
    }

    /// Waits until a timestamp is reached.
    pub async fn wait_until(&self, until: Timestamp) {
        loop {
            let left = until.since(self.timestamp());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(MAX_SLEEP)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn long_wait_ends_at_its_timestamp() {
        let clock = Clock::starting_at(Timestamp::from_seconds(1_794_777_000));
        let until = clock.timestamp().after(Duration::from_secs(5 * 3600));
        clock.wait_until(until).await;
        assert!(clock.timestamp() >= until);
        assert!(clock.timestamp().since(until) < Duration::from_secs(1));
        clock.wait_until(until).await;
    }
}

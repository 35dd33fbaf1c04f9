//! Wall time and waiting by it: a wait is over when the clock on the wall says so, also if the machine slept.

use std::time::Duration;

use tokio::time::Instant;
use unstuck_core::{ClockReading, Timestamp};

pub use crate::local_zone::local_reading;

/// How long is slept at most before the clock is looked at again; timers stand still while a machine sleeps.
const MAX_SLEEP: Duration = Duration::from_secs(20);

/// Where the present moment comes from.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The clock of the machine.
    System,
    /// One that starts at a moment and runs with the timers of the runtime, which tests can hold still.
    Virtual {
        /// The moment at which it starts.
        start: Timestamp,
        /// When it was started.
        since: Instant,
    },
}

impl Clock {
    /// A clock that starts at a moment and runs with the timers of the runtime.
    pub fn starting_at(start: Timestamp) -> Self {
        Self::Virtual {
            start,
            since: Instant::now(),
        }
    }

    /// The present moment.
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Self::System => {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "this is the place that reads the clock"
                )]
                let now = std::time::SystemTime::now();
                let since = now.duration_since(std::time::UNIX_EPOCH);
                Timestamp::from_seconds(0).after(since.unwrap_or_default())
            }
            Self::Virtual { start, since } => start.after(since.elapsed()),
        }
    }

    /// The present moment in the zone of the machine, in which agents state their resets.
    pub fn reading(&self) -> ClockReading {
        let at = self.timestamp();
        match self {
            Self::System => local_reading(at),
            Self::Virtual { .. } => ClockReading::utc(at),
        }
    }

    /// Waits until a moment has come.
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
    async fn a_wait_of_hours_ends_at_its_moment() {
        let clock = Clock::starting_at(Timestamp::from_seconds(1_794_777_000));
        let until = clock.timestamp().after(Duration::from_secs(5 * 3600));
        clock.wait_until(until).await;
        assert!(clock.timestamp() >= until);
        assert!(clock.timestamp().since(until) < Duration::from_secs(1));
        clock.wait_until(until).await;
    }
}

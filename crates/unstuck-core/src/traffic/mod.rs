//! How all sessions share one upstream: before a limit instead of after it, and without making an outage worse.
//!
//! A [`Lane`] is one upstream, key and model. Every call asks it first, and tells it how it ended. It knows what is left of
//! the provider's limits, waits that the server stated, whether the upstream is overloaded or down, and how many retries
//! there have been; so all sessions slow down together. A [`Line`] holds those who must wait and says who goes
//! next, fairly between sessions. Both are pure: whoever calls them says what time it is.
//!
//! ```
//! use std::time::Duration;
//! use unstuck_core::traffic::{Ask, Lane, LaneSettings, Limits, Line, Next, Try};
//! use unstuck_core::{Kind, Timestamp};
//!
//! let now = Timestamp::from_seconds(1_763_000_000);
//! let mut lane = Lane::new(LaneSettings::default(), now);
//! let mut line = Line::default();
//! let first = Ask { attempt: Try::First, tokens: 1200 };
//! line.push("session a", 1, first, "a's call");
//! line.push("session b", 1, first, "b's call");
//! assert_eq!(line.next(&mut lane, now), Next::Go("a's call"));
//!
//! // The server answers it with 429 and `retry-after: 7`: now everybody waits for just that long.
//! lane.failed(Kind::RateLimit, Some(Duration::from_secs(7)), &Limits::default(), now);
//! let Next::Wait { until, .. } = line.next(&mut lane, now) else {
//!     panic!("b's call went into the limit");
//! };
//! assert_eq!(until, now.after(Duration::from_secs(7)));
//! assert_eq!(line.next(&mut lane, until), Next::Go("b's call"));
//! lane.answered(&Limits::default(), 1300, Duration::from_secs(2), until);
//! ```

mod allowance;
mod fair_queue;
mod lane;
mod limits;
mod limits_file;
mod line;
mod pace;
mod pacer;
mod recent;
pub mod simulation;
mod state;
mod window;

pub use fair_queue::{FairQueue, Ticket};
pub use lane::{Admission, Ask, Held, Lane, LaneSettings, Try};
pub use limits::{Limits, Plan, Window};
pub use line::{Line, Next, Place};
pub use state::{Counts, LaneState};

#[cfg(test)]
mod tests;

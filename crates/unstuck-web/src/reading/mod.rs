//! From the store to what is told: the same readings for the API and for the pages.

mod counts;
mod escalations;
mod events;
mod failures;
mod learned;
mod policies;
mod problems;
mod projects;
mod runs;
mod sessions;
mod spending;
mod told_session;

pub use counts::{Counts, counts};
pub use escalations::{escalation, escalations};
pub use events::{events, newest_event};
pub use failures::{failure_analytics, failures, recovery_analytics};
pub use learned::learned;
pub use policies::{policy_key, policy_set, set_policy};
pub use projects::{project, project_root, projects};
pub use runs::{attempt, attempts, run, runs};
pub use sessions::{active_sessions, session, session_attempts, story_of};
pub use spending::{spending, spent_today};

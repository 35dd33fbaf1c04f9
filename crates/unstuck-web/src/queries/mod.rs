//! Queries on the store, shared by the API and the pages.

mod error_mapping;
mod escalations;
mod events;
mod failures;
mod projects;
mod retry_policies;
mod run_counts;
mod runs;
mod session_from_timeline;
mod sessions;
mod spending;
mod success_rates;

pub use escalations::{escalation, escalations};
pub use events::{events, newest_event};
pub use failures::{failure_analytics, failures, recovery_analytics};
pub use projects::{project, project_root, projects};
pub use retry_policies::{policy_key, set_policy, stored_policy};
pub use run_counts::{ActiveRunCounts, run_status_counts};
pub use runs::{attempt, attempts, run, runs};
pub use sessions::{active_sessions, session, session_attempts, timeline_of_session};
pub use spending::{cost_today, spending};
pub use success_rates::success_rates;

//! Runs one command until it succeeds, needs human input, or is stopped.
//!
//! The state is a fold over events ([`SessionState`](unstuck_core::SessionState)). The runner asks it for the next
//! step, executes it, and records the result. Decisions are on disk before they are executed.

mod abort;
mod agent_answer_file;
mod attempt;
mod attempt_command;
mod attempt_snapshots;
mod budget_tracker;
mod check_outcome;
mod child_supervisor_pool;
mod conversation_claim;
mod error;
mod escalate;
mod escalation_answer;
mod escalation_draft;
mod evaluate_attempt;
mod excerpt;
mod gateway_hook;
mod interruption;
mod knowledge;
mod merge_diagnosis;
mod notify_hook;
mod os_text_escape;
mod output_tee;
mod output_timestamps;
mod pinned_program;
pub mod pipeline;
mod repair;
mod reporter;
mod resume;
mod retry_prompt_preview;
mod role_command;
mod role_execution_settings;
mod run_event_log;
mod run_lease;
mod run_request;
mod run_result;
mod session_event_log;
mod session_repair;
mod session_runner;
mod steps_for_agent;
mod stored_stdin;
mod wait;

pub use abort::{RunAborter, why_not_resumable};
pub use agent_answer_file::{resolve_target, write_atomically};
pub use child_supervisor_pool::ChildSupervisorPool;
pub use error::RunError;
pub use escalation_answer::{
    HumanAnswer, SessionRetryRequest, expire_escalations, record_answer,
    record_answer_with_changes, request_retry,
};
pub use gateway_hook::{GatewayAttachment, GoBetween, UpcomingAttemptInfo};
pub use interruption::{clear_stop_request, request_stop};
pub use knowledge::{RunKnowledgeBase, RunKnowledgeProvider};
pub use notify_hook::{NotificationBuilder, NotifyingEventWriter};
pub use os_text_escape::{escape, unescape};
pub use repair::{
    RepairCatalogProvider, RepairCoordinator, RepairMode, RepairSettings, SharedRepairContext,
    before_repair_label,
};
pub use reporter::{OutputChannel, PipelineReporter, SessionReporter, SessionWait};
pub use resume::ResumedSettings;
pub use retry_prompt_preview::{RetryPreviewInput, RetryPromptPreview};
pub use role_execution_settings::{RoleAgentCommand, RoleContext};
pub use run_lease::{current_owner, is_alive, is_held_here};
pub use run_request::{RequestedRepairMode, RunAttemptOptions, RunRequest};
pub use run_result::{AttemptProcessExit, RunResult};
pub use session_runner::SessionRunner;

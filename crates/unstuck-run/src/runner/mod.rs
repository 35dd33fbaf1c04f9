//! Runs one command until it succeeds, needs human input, or is stopped.
//!
//! The state is a fold over events ([`SessionState`](unstuck_core::SessionState)). The runner asks it for the next
//! step, executes it, and records the result. Decisions are on disk before they are executed.

mod abort;
mod answer;
mod answer_file;
mod attempt;
mod attempt_command;
mod attempt_snapshots;
mod budget_tracker;
mod check_outcome;
mod conversation_claim;
mod error;
mod escalate;
mod escalation_draft;
mod evaluate;
mod excerpt;
mod gateway_hook;
mod interruption;
mod knowledge;
mod merge_diagnosis;
mod notify_hook;
mod os_text_escape;
mod output_tee;
mod output_timestamps;
pub mod pipeline;
mod repair;
mod reporter;
mod resume;
mod retry_preview;
mod role_command;
mod role_context;
mod run_lease;
mod run_log;
mod run_request;
mod run_result;
mod session_log;
mod session_repair;
mod session_runner;
mod stored_stdin;
mod supervisor_pool;
mod tool_steps;
mod wait;

pub use abort::{AbortContext, why_not_resumable};
pub use answer::{
    HumanAnswer, RetryRequest, expire_escalations, record_answer, record_answer_with_changes,
    request_retry,
};
pub use answer_file::{resolve_target, write_atomically};
pub use error::RunError;
pub use gateway_hook::{AttemptInfo, GatewayAttachment, GoBetween};
pub use interruption::{clear_stop_request, request_stop};
pub use knowledge::{RunKnowledge, RunKnowledgeSource};
pub use notify_hook::{EventWriter, Notifier};
pub use os_text_escape::{escape, unescape};
pub use repair::{
    RepairCatalogSource, RepairContext, RepairCoordinator, RepairMode, RepairSettings,
    before_repair_label,
};
pub use reporter::{OutputChannel, RunReporter, SessionReporter};
pub use retry_preview::{PromptPreview, RetryPreview};
pub use role_context::{RoleContext, RoleInvocation};
pub use run_lease::{current_owner, is_alive, is_held_here};
pub use run_request::{AttemptOptions, RequestedRepairMode, RunRequest};
pub use run_result::{ChildExit, RunResult};
pub use session_runner::SessionRunner;
pub use supervisor_pool::SupervisorPool;

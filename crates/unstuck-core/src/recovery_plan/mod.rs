//! Stage 4: recovery plans as values: concrete steps, changed settings and changed prompts.
//!
//! This module executes nothing; the runner executes plans.

mod alternative_urls;
mod attempt_settings;
mod failed_tool_call;
mod failed_tool_call_vars;
mod failure_message_values;
mod plan_request;
mod prompt_note;
mod prompt_note_template;
mod prompt_note_vars;
mod prompt_patch;
mod shell_lexer;
mod shell_rewrite;
mod strategy_planner;
mod text_truncation;
mod tool_argument_fixes;
mod tool_call_builder;

#[cfg(test)]
mod tests;

pub use attempt_settings::{AttemptSettings, DEFAULT_TIMEOUT_SECONDS};
pub(crate) use failed_tool_call::is_assignment;
pub use failed_tool_call::{FailedToolCall, SimpleCommand};
pub use plan_request::{
    DEFAULT_SCRATCH_DIR, MAX_STRATEGIES, PlannedStrategy, PlannedToolCall, RecoveryPlanRequest,
    TaskType,
};
pub use prompt_note::without_note;
pub use prompt_note_template::{PromptNoteError, PromptNotePlacement, PromptNoteTemplate};
pub use prompt_note_vars::PromptNoteVars;
pub use prompt_patch::{PromptNoteLimits, PromptNoteTemplates};
pub use shell_lexer::{ShellToken, ShellTokenKind, UnclosedQuote, shell_quote, shell_tokens};
pub use strategy_planner::{failure_directory, plan};
pub use text_truncation::{cut_middle, estimate_tokens};

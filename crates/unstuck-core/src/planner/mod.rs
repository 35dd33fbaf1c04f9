//! Stage 4: recovery plans as values: concrete steps, changed settings and changed prompts.
//!
//! Nothing is executed here; the driver of the recovery does that.

mod argument_fixes;
mod attempt_settings;
mod excerpt;
mod failed_call;
mod message_values;
mod plan;
mod plan_request;
mod prompt_context;
mod prompt_note;
mod prompt_patch;
mod prompt_template;
mod remote_url;
mod shell;
mod shell_rewrite;
mod step_builder;
mod template_vars;

#[cfg(test)]
mod tests;

pub use attempt_settings::{AttemptSettings, DEFAULT_TIMEOUT_SECONDS};
pub use excerpt::{cut_middle, estimate_tokens};
pub(crate) use failed_call::is_assignment;
pub use failed_call::{FailedCall, SimpleCommand};
pub use plan::{failure_directory, plan};
pub use plan_request::{
    DEFAULT_SCRATCH_DIR, MAX_STRATEGIES, PlanRequest, PlanStep, PlannedStrategy, TaskType,
};
pub use prompt_context::PromptContext;
pub use prompt_note::without_note;
pub use prompt_patch::{PromptLimits, PromptTemplates};
pub use prompt_template::{NotePosition, PromptError, PromptTemplate};
pub use shell::{ShellToken, ShellTokenKind, UnclosedQuote, shell_quote, shell_tokens};

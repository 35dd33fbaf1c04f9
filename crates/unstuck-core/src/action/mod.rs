//! Stage 4: what to do, as a value. Plans of concrete steps, changed settings, changed prompts.
//!
//! Nothing here runs anything; whoever drives the recovery performs what it says.

mod arguments;
mod call;
mod change;
mod excerpt;
mod facts;
mod link;
mod mentions;
mod note;
mod plan;
mod prompt;
mod prompt_context;
mod prompt_template;
mod request;
mod rewrite;
mod shell;
mod steps;

#[cfg(test)]
mod tests;

pub(crate) use call::is_assignment;
pub use call::{Call, SimpleCommand};
pub use change::{DEFAULT_TIMEOUT, Settings};
pub use excerpt::{cut_middle, tokens};
pub use note::without_note;
pub use plan::{directory, plan};
pub use prompt::{PromptLimits, Prompts};
pub use prompt_context::PromptContext;
pub use prompt_template::{Place, PromptError, PromptTemplate};
pub use request::{DEFAULT_SANDBOX, MOST_STRATEGIES, PlanRequest, PlannedStrategy, Step, TaskType};
pub use shell::{Token, TokenKind, Unclosed, shell_quote, shell_words};

//! Stuck: the same thing again and again, or nothing at all. What shows it, and when it is too much (`data/stuck.toml`).
//!
//! A [`LoopDetector`] is fed what an agent writes while it works, and gives a [`LoopSignal`], which says in a sentence what was
//! repeated and how often, and is a diagnosis like any other. Iterations that change nothing are seen by the
//! [pipeline](crate::Pipeline).
//! Work that only looks repetitive goes on: the limits are generous, and what is known of it is data with samples.

mod detector;
mod input_prompts;
mod kind;
mod limits;
mod line_signature;
mod line_splitter;
mod loop_patterns;
mod repeated_blocks;
mod repeated_calls;
mod signal;
mod text_weight;
mod tool_results;

pub use detector::LoopDetector;
pub use input_prompts::detect_question_answer;
pub use kind::LoopKind;
pub use limits::LoopLimits;
pub use line_signature::result_signature;
pub use signal::LoopSignal;
pub use tool_results::ToolResultCounter;

//! Loop detection in an agent's output: repetition, or waiting without end (`data/loop_detection.toml`).
//!
//! A [`LoopDetector`] reads what an agent writes while it works and returns a [`LoopSignal`], which states in one
//! sentence what was repeated and how often, and can be turned into a diagnosis. Iterations without changes are
//! detected by the [pipeline](crate::PipelineState). Work that merely looks repetitive is not interrupted: the limits are
//! generous, and the patterns are data with samples.

mod completed_tool_results;
mod detector;
mod input_prompts;
mod kind;
mod limits;
mod line_signature;
mod line_splitter;
mod loop_patterns;
mod prose_weight;
mod repeated_blocks;
mod repeated_tool_calls;
mod signal;

pub use completed_tool_results::ToolResultCounter;
pub use detector::LoopDetector;
pub use input_prompts::detect_question_answer;
pub use kind::LoopKind;
pub use limits::AgentLoopLimits;
pub use line_signature::result_signature;
pub use signal::LoopSignal;

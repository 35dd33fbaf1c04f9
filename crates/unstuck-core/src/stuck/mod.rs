//! Stuck: the same thing again and again, or nothing at all. What shows it, and when it is too much (`data/stuck.toml`).
//!
//! A [`Watcher`] is fed what an agent writes while it works, and gives a [`StuckSign`], which says in a sentence what was
//! repeated and how often, and is a diagnosis like any other. Iterations that change nothing are seen by the
//! [pipeline](crate::Pipeline).
//! Work that only looks repetitive goes on: the limits are generous, and what is known of it is data with samples.

mod actions;
mod data;
mod limits;
mod lines;
mod questions;
mod repeats;
mod results;
mod sign;
mod signature;
mod substance;
mod watcher;
mod what;

pub use limits::StuckLimits;
pub use questions::asks_back;
pub use results::ToolResults;
pub use sign::StuckSign;
pub use signature::result_signature;
pub use watcher::Watcher;
pub use what::StuckWhat;

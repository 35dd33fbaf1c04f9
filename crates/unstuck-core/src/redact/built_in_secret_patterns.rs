//! The format of `data/secrets.toml`: patterns and word lists, and the names and ranks of the patterns.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

/// The line that separates the patterns from their samples, which only tests read.
const SAMPLES: &str = "\n# --- samples ---\n";
const FILE: &str = include_str!("../../data/secrets.toml");

/// The data file of secret patterns and word lists, without its samples.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretPatternFile {
    parts: BTreeMap<String, String>,
    pub(super) names: SecretNameLists,
    pub(super) harmless: HarmlessValues,
    pub(super) pattern: Vec<SecretPatternSpec>,
}

/// One pattern as written in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretPatternSpec {
    pub(super) id: String,
    pub(super) literals: Vec<String>,
    pub(super) regex: Vec<String>,
    #[serde(default)]
    pub(super) value: RequiredSecretForm,
    /// If set, only the text before a value identifies it as a secret.
    #[serde(default)]
    pub(super) needs_context: bool,
}

impl SecretPatternSpec {
    /// Returns true if it also finds secrets whose case differs from its literals.
    pub(super) fn ignores_case(&self) -> bool {
        self.regex.iter().any(|regex| regex.contains("(?i"))
    }

    /// Returns the literals, one for each character of their classes.
    pub(super) fn each_literal(&self) -> impl Iterator<Item = String> {
        self.literals
            .iter()
            .flat_map(|literal| expand_classes(literal))
    }
}

/// Expands a literal with classes such as `[a-f0-9]`.
fn expand_classes(literal: &str) -> Vec<String> {
    let Some((before, rest)) = literal.split_once('[') else {
        return vec![literal.to_owned()];
    };
    let (class, after) = rest.split_once(']').unwrap_or((rest, ""));
    let mut letters = Vec::new();
    let mut chars = class.chars().peekable();
    while let Some(first) = chars.next() {
        let last = chars.next_if_eq(&'-').and_then(|_| chars.next());
        letters.extend(first..=last.unwrap_or(first));
    }
    let ends = expand_classes(after);
    let each = letters.iter();
    each.flat_map(|letter| ends.iter().map(move |end| format!("{before}{letter}{end}")))
        .collect()
}

/// The required form of a secret, in addition to its pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequiredSecretForm {
    #[default]
    Any,
    Random,
    Mixed,
    Word,
    Password,
    Login,
    Pair,
}

/// Names whose value is secret, and exceptions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretNameLists {
    pub(super) suffixes: Vec<String>,
    pub(super) exact: HashSet<String>,
    pub(super) passwords: Vec<String>,
    pub(super) harmless: HashSet<String>,
}

/// Values that are not secret.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HarmlessValues {
    pub(super) words: HashSet<String>,
    pub(super) prefixes: Vec<String>,
}

impl SecretPatternFile {
    pub(super) fn built_in() -> &'static Self {
        static FILE_READ: LazyLock<SecretPatternFile> = LazyLock::new(|| {
            let patterns = FILE
                .split_once(SAMPLES)
                .map_or(FILE, |(patterns, _)| patterns);
            match toml::from_str(patterns) {
                Ok(file) => file,
                // The embedded file is tested; only a build that skipped its tests can get here.
                Err(error) => unreachable!("secrets.toml: {error}"),
            }
        });
        &FILE_READ
    }

    /// Expands the named parts in a regular expression.
    pub(super) fn expand_parts(&self, regex: &str) -> String {
        self.parts
            .iter()
            .fold(regex.to_owned(), |regex, (name, part)| {
                regex.replace(&format!("{{{name}}}"), part)
            })
    }

    /// Returns the id of a pattern by its index.
    pub(super) fn id(&self, pattern: usize) -> &str {
        self.pattern
            .get(pattern)
            .map_or("secret", |pattern| pattern.id.as_str())
    }

    pub(super) fn has_pattern(&self, id: &[u8]) -> bool {
        self.pattern
            .iter()
            .any(|pattern| pattern.id.as_bytes() == id)
    }

    /// Returns the rank of a pattern by its id.
    pub(super) fn rank(&self, id: &str) -> usize {
        let at = self.pattern.iter().position(|pattern| pattern.id == id);
        at.unwrap_or(self.pattern.len()) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_in_a_literal_expands_to_each_of_its_characters() {
        assert_eq!(expand_classes("plain-"), ["plain-"]);
        assert_eq!(
            expand_classes("a[xy0-2]b"),
            ["axb", "ayb", "a0b", "a1b", "a2b"]
        );
        assert_eq!(expand_classes("[ab][cd]"), ["ac", "ad", "bc", "bd"]);
    }
}

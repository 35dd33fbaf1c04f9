//! The file `data/secrets.toml` as it is read: patterns and lists of words, and the names and ranks of the patterns.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

/// The line that parts the patterns from their samples, which only tests read.
const SAMPLES: &str = "\n# --- samples ---\n";
const FILE: &str = include_str!("../../data/secrets.toml");

/// The data file, the samples aside.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretsFile {
    parts: BTreeMap<String, String>,
    pub(super) names: SecretNameLists,
    #[serde(rename = "innocent")]
    pub(super) harmless: HarmlessValues,
    pub(super) pattern: Vec<SecretPatternSpec>,
}

/// One pattern as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretPatternSpec {
    pub(super) id: String,
    pub(super) literals: Vec<String>,
    pub(super) regex: Vec<String>,
    #[serde(default)]
    pub(super) value: SecretClass,
    /// Whether only what stands before a secret tells that it is one.
    #[serde(default)]
    #[serde(rename = "named")]
    pub(super) needs_context: bool,
}

impl SecretPatternSpec {
    /// True if it finds secrets also where their letters have another case than its literals.
    pub(super) fn ignores_case(&self) -> bool {
        self.regex.iter().any(|regex| regex.contains("(?i"))
    }

    /// The literals, one for each character that a class in them stands for.
    pub(super) fn each_literal(&self) -> impl Iterator<Item = String> {
        self.literals
            .iter()
            .flat_map(|literal| expand_classes(literal))
    }
}

/// The literals that one with classes such as `[a-f0-9]` stands for.
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

/// What a secret must look like besides what its pattern says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SecretClass {
    #[default]
    Any,
    Random,
    Mixed,
    Word,
    Password,
    Login,
    Pair,
}

/// Names that say that their value is secret, and those that do not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretNameLists {
    #[serde(rename = "ends")]
    pub(super) suffixes: Vec<String>,
    #[serde(rename = "whole")]
    pub(super) exact: HashSet<String>,
    pub(super) passwords: Vec<String>,
    #[serde(rename = "innocent")]
    pub(super) harmless: HashSet<String>,
}

/// Values that are no secrets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HarmlessValues {
    pub(super) words: HashSet<String>,
    #[serde(rename = "begins")]
    pub(super) prefixes: Vec<String>,
}

impl SecretsFile {
    pub(super) fn built_in() -> &'static Self {
        static FILE_READ: LazyLock<SecretsFile> = LazyLock::new(|| {
            let patterns = FILE
                .split_once(SAMPLES)
                .map_or(FILE, |(patterns, _)| patterns);
            match toml::from_str(patterns) {
                Ok(file) => file,
                // The embedded file is tested; this can only be reached by a build that skipped its tests.
                Err(error) => unreachable!("secrets.toml: {error}"),
            }
        });
        &FILE_READ
    }

    /// The regular expression with the named parts in it.
    pub(super) fn expand_parts(&self, regex: &str) -> String {
        self.parts
            .iter()
            .fold(regex.to_owned(), |regex, (name, part)| {
                regex.replace(&format!("{{{name}}}"), part)
            })
    }

    /// The id of a pattern, by its place.
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

    /// The rank of a pattern, by its id.
    pub(super) fn rank(&self, id: &str) -> usize {
        let at = self.pattern.iter().position(|pattern| pattern.id == id);
        at.unwrap_or(self.pattern.len()) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_in_a_literal_stands_for_each_of_its_characters() {
        assert_eq!(expand_classes("plain-"), ["plain-"]);
        assert_eq!(
            expand_classes("a[xy0-2]b"),
            ["axb", "ayb", "a0b", "a1b", "a2b"]
        );
        assert_eq!(expand_classes("[ab][cd]"), ["ac", "ad", "bc", "bd"]);
    }
}

//! Warnings about risky entries of `auto_approve`.

use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;
use unstuck_core::command_policy::lint_entry;

const LINT_RULES: &str = include_str!("../../data/lint.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LintFile {
    lint: Vec<LintRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "only the test reads the samples")
)]
struct LintRule {
    id: String,
    #[serde(rename = "match")]
    pattern: String,
    #[serde(rename = "say")]
    message: String,
    #[serde(rename = "yes")]
    matching: Vec<String>,
    #[serde(rename = "no")]
    not_matching: Vec<String>,
}

/// Returns the warnings about an approved command.
///
/// ```
/// assert!(unstuck_config::lint_approval("npm install").is_empty());
/// assert!(unstuck_config::lint_approval("rm -rf /tmp/cache")[0].contains("deletes outside the project"));
/// ```
pub fn lint_approval(entry: &str) -> Vec<&'static str> {
    let rules = rules().iter();
    let fits = rules.filter(|(pattern, _)| pattern.is_match(entry));
    let known = fits.map(|(_, rule)| rule.message.as_str());
    known.chain(lint_entry(entry)).collect()
}

fn rules() -> &'static [(Regex, LintRule)] {
    static RULES: OnceLock<Vec<(Regex, LintRule)>> = OnceLock::new();
    RULES.get_or_init(|| {
        // A test checks that the file and every expression are valid.
        let file = toml::from_str(LINT_RULES).unwrap_or(LintFile { lint: Vec::new() });
        let compiled = |rule: LintRule| Some((Regex::new(&rule.pattern).ok()?, rule));
        file.lint.into_iter().filter_map(compiled).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_matches_its_samples_and_no_others() {
        let file: LintFile = toml::from_str(LINT_RULES).unwrap();
        assert_eq!(rules().len(), file.lint.len(), "an expression is broken");
        for (pattern, rule) in rules() {
            assert!(
                !rule.matching.is_empty() && !rule.not_matching.is_empty(),
                "{}",
                rule.id
            );
            for entry in &rule.matching {
                assert!(pattern.is_match(entry), "{}: {entry}", rule.id);
            }
            for entry in &rule.not_matching {
                assert!(!pattern.is_match(entry), "{}: {entry}", rule.id);
            }
        }
    }

    #[test]
    fn usual_entries_have_no_warnings() {
        for entry in [
            "npm install",
            "npm ci",
            "bun install",
            "rm -rf node_modules && bun install",
            "rm -rf .next && bun run build",
            "cargo clean",
            "npm run generate",
            "mkdir -p out/reports",
            "cp .env.example .env",
            "rm -rf .venv && python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt",
        ] {
            assert_eq!(lint_approval(entry), [""; 0], "{entry}");
        }
    }
}

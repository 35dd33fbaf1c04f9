//! What an entry of `auto_approve` should make its owner think twice about.

use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;
use unstuck_core::guard::doubt;

const KNOWN: &str = include_str!("../../data/lint.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    lint: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "only the test reads the samples")
)]
struct Rule {
    id: String,
    #[serde(rename = "match")]
    pattern: String,
    #[serde(rename = "say")]
    say: String,
    #[serde(rename = "yes")]
    yes: Vec<String>,
    #[serde(rename = "no")]
    no: Vec<String>,
}

/// What is to be said about an approved command; empty if nothing is.
///
/// ```
/// assert!(unstuck_config::lint("npm install").is_empty());
/// assert!(unstuck_config::lint("rm -rf /tmp/cache")[0].contains("deletes outside the project"));
/// ```
pub fn lint(entry: &str) -> Vec<&'static str> {
    let rules = rules().iter();
    let fits = rules.filter(|(pattern, _)| pattern.is_match(entry));
    let known = fits.map(|(_, rule)| rule.say.as_str());
    known.chain(doubt(entry)).collect()
}

fn rules() -> &'static [(Regex, Rule)] {
    static RULES: OnceLock<Vec<(Regex, Rule)>> = OnceLock::new();
    RULES.get_or_init(|| {
        // A test makes sure that the file and every expression can be read.
        let file = toml::from_str(KNOWN).unwrap_or(File { lint: Vec::new() });
        let compiled = |rule: Rule| Some((Regex::new(&rule.pattern).ok()?, rule));
        file.lint.into_iter().filter_map(compiled).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_matches_its_samples_and_no_others() {
        let file: File = toml::from_str(KNOWN).unwrap();
        assert_eq!(rules().len(), file.lint.len(), "an expression is broken");
        for (pattern, rule) in rules() {
            assert!(!rule.yes.is_empty() && !rule.no.is_empty(), "{}", rule.id);
            for entry in &rule.yes {
                assert!(pattern.is_match(entry), "{}: {entry}", rule.id);
            }
            for entry in &rule.no {
                assert!(!pattern.is_match(entry), "{}: {entry}", rule.id);
            }
        }
    }

    #[test]
    fn usual_entries_need_no_word() {
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
            assert_eq!(lint(entry), [""; 0], "{entry}");
        }
    }
}

//! Guarantees of the command policy, each test with its rule or requirement.

mod documents;
mod laws;
mod limits;
mod lists;
mod patterns;
mod scripts;
mod texts;

use serde_json::{Value, json};
use unstuck_core::command_policy::{
    CommandEvaluation, CommandVerdictRestrictions, OnUnlistedCommand, Proposal, RepairPolicy,
    WorkingDirProtection, evaluate,
};

/// Returns a well-formed proposal of a command.
fn document(command: &str) -> Value {
    json!({
        "version": 1,
        "timestamp": "2026-01-23T05:36:33Z",
        "category": "dependency",
        "severity": "blocking",
        "diagnosis": {
            "error_pattern": "Cannot find module",
            "root_cause": "dependencies are missing",
            "evidence": ["test-output.txt:3: Cannot find module 'x'"],
        },
        "recovery": {
            "command": command,
            "working_dir": ".",
            "timeout_seconds": 300,
            "expected_outcome": "tests can start",
            "confidence": "high",
        },
    })
}

fn parse(document: &Value) -> Result<Proposal, String> {
    Proposal::parse(document.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Returns rules with these lists and default settings otherwise.
fn rules(
    auto_approve: &[&str],
    require_human: &[&str],
    on_unknown: OnUnlistedCommand,
) -> RepairPolicy {
    RepairPolicy {
        auto_approve: texts(auto_approve),
        require_human: texts(require_human),
        on_unknown,
        ..RepairPolicy::default()
    }
}

fn judged(rules: &RepairPolicy, command: &str) -> CommandEvaluation {
    evaluate(
        rules,
        command,
        &WorkingDirProtection::Ordinary,
        &CommandVerdictRestrictions::default(),
    )
}

fn verdict(rules: &RepairPolicy, command: &str) -> &'static str {
    judged(rules, command).verdict.name()
}

//! Hostile proposals stored outside the repository; without them the `corpus` tests are not run.

#![expect(
    clippy::disallowed_methods,
    reason = "the cases come from a tool beside them"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::Value;
use unstuck_core::command_policy::{CommandVerdictRestrictions, RepairPolicy, sanitize};
use unstuck_repair::evaluate_proposal;
use unstuck_repair::project_dir::ProjectRoot;

/// The expected result of a case.
#[derive(Deserialize)]
struct Labelled {
    id: String,
    must: String,
    fallback_must: Option<String>,
    text_payload: Option<String>,
}

/// A case with the bytes of its document.
#[derive(Deserialize)]
struct Case {
    id: String,
    document_base64: String,
    config: Value,
    #[serde(default)]
    state: HashMap<String, u32>,
}

/// Returns the directory of cases beside the repository.
fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus")
}

fn tool(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("python3")
        .arg(folder.join("commands.py"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn lines<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// S3-02, S3-47, S3-48: every verdict is right, so none of the attacks runs.
#[test]
fn every_hostile_proposal_gets_the_expected_verdict() {
    let folder = corpus();
    let place = tempfile::tempdir().unwrap();
    let fixture = place.path().join("fixture").display().to_string();
    let file = folder.join("commands.dev.jsonl").display().to_string();
    tool(&folder, &["fixture", &fixture]);
    let cases = tool(&folder, &["cases", &file, "--root", &fixture]);
    let root = ProjectRoot::open(&Path::new(&fixture).join("repo")).unwrap();
    let labels: Vec<Labelled> = lines(&std::fs::read_to_string(&file).unwrap());
    let mut labels: HashMap<_, _> = labels
        .into_iter()
        .map(|one| (one.id.clone(), one))
        .collect();
    let mut wrong = Vec::new();
    for case in lines::<Case>(&cases) {
        let label = labels.remove(&case.id).unwrap();
        let rules = RepairPolicy::from_json(&case.config).unwrap_or_default();
        let standing = CommandVerdictRestrictions {
            auto_repairs_this_run: case
                .state
                .get("auto_recoveries_this_run")
                .copied()
                .unwrap_or(0),
            ..CommandVerdictRestrictions::default()
        };
        let bytes = BASE64.decode(case.document_base64.as_bytes()).unwrap();
        let weighed = evaluate_proposal(&bytes, &root, &rules, &standing);
        let got = weighed.command_evaluation();
        let fallback = weighed
            .fallback_evaluation()
            .map(|judgement| judgement.verdict.name().to_owned());
        if got.verdict.name() != label.must
            || (label.fallback_must.is_some() && fallback != label.fallback_must)
        {
            wrong.push(format!(
                "{}: {}, got {} ({})",
                label.id,
                label.must,
                got.verdict.name(),
                got.reason
            ));
        }
        if let Some(payload) = &label.text_payload {
            let shown = sanitize(payload);
            assert!(
                !shown.chars().any(|c| c.is_control() || c == '\u{202e}'),
                "{}",
                label.id
            );
            assert!(!shown.contains("sk-ant-api03"), "{}", label.id);
        }
    }
    assert!(labels.is_empty() && wrong.is_empty(), "{wrong:#?}");
}

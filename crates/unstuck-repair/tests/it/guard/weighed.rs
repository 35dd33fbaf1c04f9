//! The whole evaluation: bytes in, verdict out.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;
use unstuck_core::command_policy::{
    CommandVerdict, CommandVerdictRestrictions, OnUnlistedCommand, RepairPolicy,
};
use unstuck_repair::project_dir::FileIdentity;
use unstuck_repair::{ProposalEvaluation, evaluate_proposal};

use super::{Place, document, identity};

fn rules(on_unknown: OnUnlistedCommand) -> RepairPolicy {
    RepairPolicy {
        auto_approve: vec!["npm ci".to_owned(), "npm install".to_owned()],
        require_human: vec!["git push".to_owned()],
        on_unknown,
        ..RepairPolicy::default()
    }
}

/// S3-01, S3-11, S3-12: a proposal is evaluated, and an allowed command comes with the directory to run it in.
#[test]
fn a_proposal_is_evaluated_with_its_directory() {
    let place = Place::new();
    let root = place.root();
    let bytes = document("npm ci\n", Some("packages/web")).to_string();
    let weighed = evaluate_proposal(
        bytes.as_bytes(),
        &root,
        &rules(OnUnlistedCommand::Escalate),
        &CommandVerdictRestrictions::default(),
    );
    let ProposalEvaluation::Evaluated(judged) = weighed else {
        panic!("{weighed:?}");
    };
    assert!(
        matches!(&judged.command_evaluation.verdict, CommandVerdict::Run(approved) if approved.command_text() == "npm ci")
    );
    assert_eq!(
        judged.folder.relative(),
        std::path::Path::new("packages/web")
    );
    assert_eq!(judged.fallback_evaluation, None);
    assert_eq!(judged.proposal.recovery.timeout_seconds, 120);
}

/// S3-15: the fallback is evaluated separately, by the same rules and in the same directory.
#[test]
fn a_fallback_is_evaluated_separately() {
    let place = Place::new();
    let root = place.root();
    let verdicts = |command: &str, fallback: &str, folder: &str| {
        let mut document = document(command, Some(folder));
        document["fallback"] = json!({ "command": fallback, "confidence": "low" });
        let weighed = evaluate_proposal(
            document.to_string().as_bytes(),
            &root,
            &rules(OnUnlistedCommand::Deny),
            &CommandVerdictRestrictions::default(),
        );
        let fallback = weighed
            .fallback_evaluation()
            .map(|judgement| judgement.verdict.name());
        (weighed.command_evaluation().verdict.name(), fallback)
    };
    assert_eq!(verdicts("npm ci", "npm install", "."), ("run", Some("run")));
    assert_eq!(verdicts("npm ci", "npm ci; id", "."), ("run", Some("deny")));
    assert_eq!(verdicts("id", "npm ci", "."), ("deny", Some("run")));
    assert_eq!(verdicts("npm ci", "git push -f", "."), ("run", Some("ask")));
    assert_eq!(
        verdicts("npm ci", "npm install", ".git"),
        ("ask", Some("ask"))
    );
    assert_eq!(
        verdicts("npm ci", "npm\u{202e}ci", "."),
        ("reject_proposal", None)
    );
    assert_eq!(
        verdicts("npm ci", "npm install", "out"),
        ("reject_proposal", None)
    );
}

/// S3-48: an unusable directory rejects the proposal, whatever the command and the rules.
#[test]
fn an_unusable_directory_rejects_the_proposal() {
    let place = Place::new();
    let root = place.root();
    for on_unknown in [
        OnUnlistedCommand::Escalate,
        OnUnlistedCommand::Deny,
        OnUnlistedCommand::Allow,
    ] {
        for command in ["npm ci", "npm test", "git push", "id; id"] {
            for folder in ["..", "out", "nowhere", "README.md", "", "/", "loop"] {
                let bytes = document(command, Some(folder)).to_string();
                let weighed = evaluate_proposal(
                    bytes.as_bytes(),
                    &root,
                    &rules(on_unknown),
                    &CommandVerdictRestrictions::default(),
                );
                assert!(
                    matches!(weighed, ProposalEvaluation::Rejected(_)),
                    "{command} in {folder}"
                );
                assert_eq!(weighed.command_evaluation().steps[0].rule, "R6");
            }
        }
    }
}

/// Path components of working directories.
const PARTS: &[&str] = &[
    "..", ".", "", "packages", "web", "up", "out", "beside", "inside", "here", "git", "chain",
    "proc", "absolute", "etc", "outside", "deep", "é", "\0",
];

/// S3-48: no text names a directory outside the project.
#[test]
fn no_working_dir_names_a_directory_outside() {
    let place = Place::new();
    let root = place.root();
    let project = place.project().canonicalize().unwrap();
    let config = ProptestConfig {
        cases: 5000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let texts = prop::collection::vec(prop::sample::select(PARTS), 1..7);
    let law = |parts: Vec<&str>| {
        if let Ok(folder) = root.open_working_dir(Some(&parts.join("/"))) {
            let found = project.join(folder.relative());
            let FileIdentity { dev, ino } = folder.identity();
            prop_assert_eq!(identity(&found), (dev, ino));
            prop_assert!(found.canonicalize().unwrap().starts_with(&project));
        }
        Ok(())
    };
    TestRunner::new(config).run(&texts, law).unwrap();
}

//! The whole way: bytes in, verdict out.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;
use unstuck_core::guard::{OnUnknown, Rules, Standing, Verdict};
use unstuck_repair::place::Identity;
use unstuck_repair::{Weighed, weigh};

use super::{Place, document, identity};

fn rules(on_unknown: OnUnknown) -> Rules {
    Rules {
        auto_approve: vec!["npm ci".to_owned(), "npm install".to_owned()],
        require_human: vec!["git push".to_owned()],
        on_unknown,
        ..Rules::default()
    }
}

/// S3-01, S3-11, S3-12: a proposal is judged, and what may run comes with the folder to run it in.
#[test]
fn a_proposal_is_judged_with_its_folder() {
    let place = Place::new();
    let root = place.root();
    let bytes = document("npm ci\n", Some("packages/web")).to_string();
    let weighed = weigh(
        bytes.as_bytes(),
        &root,
        &rules(OnUnknown::Escalate),
        &Standing::default(),
    );
    let Weighed::Judged(judged) = weighed else {
        panic!("{weighed:?}");
    };
    assert!(
        matches!(&judged.judgement.verdict, Verdict::Run(approved) if approved.text() == "npm ci")
    );
    assert_eq!(
        judged.folder.relative(),
        std::path::Path::new("packages/web")
    );
    assert_eq!(judged.fallback, None);
    assert_eq!(judged.proposal.recovery.timeout_seconds, 120);
}

/// S3-15: the fallback is judged alone, by the same rules and in the same folder.
#[test]
fn a_fallback_is_judged_alone() {
    let place = Place::new();
    let root = place.root();
    let verdicts = |command: &str, fallback: &str, folder: &str| {
        let mut document = document(command, Some(folder));
        document["fallback"] = json!({ "command": fallback, "confidence": "low" });
        let weighed = weigh(
            document.to_string().as_bytes(),
            &root,
            &rules(OnUnknown::Deny),
            &Standing::default(),
        );
        let fallback = weighed.fallback().map(|judgement| judgement.verdict.name());
        (weighed.judgement().verdict.name(), fallback)
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

/// S3-48: a folder that cannot be used refuses the proposal, whatever the command and the rules.
#[test]
fn a_wrong_folder_refuses_the_proposal_whatever_the_rules() {
    let place = Place::new();
    let root = place.root();
    for on_unknown in [OnUnknown::Escalate, OnUnknown::Deny, OnUnknown::Allow] {
        for command in ["npm ci", "npm test", "git push", "id; id"] {
            for folder in ["..", "out", "nowhere", "README.md", "", "/", "loop"] {
                let bytes = document(command, Some(folder)).to_string();
                let weighed = weigh(
                    bytes.as_bytes(),
                    &root,
                    &rules(on_unknown),
                    &Standing::default(),
                );
                assert!(
                    matches!(weighed, Weighed::Rejected(_)),
                    "{command} in {folder}"
                );
                assert_eq!(weighed.judgement().steps[0].rule, "R6");
            }
        }
    }
}

/// Names that may stand on the way to a folder.
const PARTS: &[&str] = &[
    "..", ".", "", "packages", "web", "up", "out", "beside", "inside", "here", "git", "chain",
    "proc", "absolute", "etc", "outside", "deep", "é", "\0",
];

/// S3-48: no text names a folder outside the project.
#[test]
fn no_text_names_a_folder_outside() {
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
        if let Ok(folder) = root.folder(Some(&parts.join("/"))) {
            let found = project.join(folder.relative());
            let Identity { dev, ino } = folder.identity();
            prop_assert_eq!(identity(&found), (dev, ino));
            prop_assert!(found.canonicalize().unwrap().starts_with(&project));
        }
        Ok(())
    };
    TestRunner::new(config).run(&texts, law).unwrap();
}

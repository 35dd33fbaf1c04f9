//! What makes a verdict stricter: folders, the switch, limits, the cooldown, files that have changed.

use std::time::Duration;

use unstuck_core::command_policy::{
    ApprovalReason, DirectoryKind, Evaluation, OnUnknown, PolicyContext, RepairPolicy, Verdict,
    evaluate,
};

use super::{judged, rules, texts};

fn with(standing: &PolicyContext) -> Evaluation {
    let rules = rules(&["npm ci"], &[], OnUnknown::Escalate);
    evaluate(&rules, "npm ci", &DirectoryKind::Ordinary, standing)
}

/// S3-16: switched off is switched off, and nobody is asked.
#[test]
fn switched_off_nothing_runs() {
    for on_unknown in [OnUnknown::Escalate, OnUnknown::Deny, OnUnknown::Allow] {
        let rules = RepairPolicy {
            enabled: false,
            ..rules(&["npm ci"], &["git push"], on_unknown)
        };
        for command in ["npm ci", "npm test", "git push"] {
            assert_eq!(judged(&rules, command).verdict, Verdict::Deny, "{command}");
        }
        assert_eq!(
            judged(&rules, "npm\u{202e}ci").verdict,
            Verdict::RejectProposal
        );
    }
}

/// S3-19, S3-41: the limit of a run, also where unknown commands are allowed.
#[test]
fn the_limit_of_a_run_makes_it_ask() {
    let after = |ran, most| {
        let rules = RepairPolicy {
            max_auto_recoveries_per_run: most,
            ..rules(&["npm ci"], &[], OnUnknown::Allow)
        };
        let standing = PolicyContext {
            auto_repairs_this_run: ran,
            ..PolicyContext::default()
        };
        ["npm ci", "npm cache verify"].map(|command| {
            evaluate(&rules, command, &DirectoryKind::Ordinary, &standing)
                .verdict
                .name()
        })
    };
    assert_eq!(after(0, 3), ["run", "run"]);
    assert_eq!(after(2, 3), ["run", "run"]);
    assert_eq!(after(3, 3), ["ask", "ask"]);
    assert_eq!(after(u32::MAX, 3), ["ask", "ask"]);
    assert_eq!(after(0, 0), ["ask", "ask"]);
}

/// S3-20: within the cooldown it asks, and says how long it is.
#[test]
fn within_the_cooldown_it_asks() {
    let left = Duration::from_secs(42);
    let judgement = with(&PolicyContext {
        cooldown_left: Some(left),
        ..PolicyContext::default()
    });
    assert_eq!(
        judgement.verdict,
        Verdict::RequireApproval(vec![ApprovalReason::Cooldown(left)])
    );
    assert_eq!(
        judgement.reason,
        "the next repair may run by itself in 42 s"
    );
    let over = PolicyContext {
        cooldown_left: Some(Duration::ZERO),
        ..PolicyContext::default()
    };
    assert_eq!(with(&over).verdict.name(), "run");
}

#[test]
fn files_that_decide_what_it_does_make_it_ask_when_they_changed() {
    let judgement = with(&PolicyContext {
        changed_watched_files: texts(&["package.json", "a\u{1b}b"]),
        ..PolicyContext::default()
    });
    assert!(matches!(&judgement.verdict, Verdict::RequireApproval(whys) if whys.len() == 1));
    assert_eq!(
        judgement.reason,
        r"package.json, a\u{1b}b decides what it does, and has changed"
    );
}

/// S3-48: inside `.git`, `node_modules` or our own state an approval does not apply.
#[test]
fn no_approval_counts_in_a_protected_folder() {
    let place = DirectoryKind::Protected(".git".to_owned());
    for (on_unknown, unknown) in [
        (OnUnknown::Escalate, "ask"),
        (OnUnknown::Deny, "deny"),
        (OnUnknown::Allow, "ask"),
    ] {
        let rules = rules(&["npm ci"], &[], on_unknown);
        let judged = |command| evaluate(&rules, command, &place, &PolicyContext::default()).verdict;
        assert_eq!(judged("npm ci").name(), "ask");
        assert_eq!(judged("npm test").name(), unknown);
    }
}

/// Configuration that nobody trusted is not among the rules; here it is only told.
#[test]
fn untrusted_configuration_is_told() {
    let judgement = with(&PolicyContext {
        untrusted_config: Some("unstuck.toml".to_owned()),
        ..PolicyContext::default()
    });
    assert_eq!(judgement.verdict.name(), "run", "by rules that are trusted");
    let told = judgement.steps.iter().find(|step| step.subject == "config");
    assert!(told.unwrap().finding.contains("unstuck.toml"));
    let standing = PolicyContext {
        untrusted_config: Some("unstuck.toml".to_owned()),
        ..PolicyContext::default()
    };
    let judgement = evaluate(
        &RepairPolicy::default(),
        "npm ci",
        &DirectoryKind::Ordinary,
        &standing,
    );
    assert_eq!(
        judgement.reason,
        "`*` of require_human covers it; approvals in unstuck.toml are ignored: not trusted yet (run `unstuck trust`)"
    );
}

/// Every reason is told, not only the first.
#[test]
fn all_reasons_to_ask_are_told_together() {
    let standing = PolicyContext {
        auto_repairs_this_run: 9,
        cooldown_left: Some(Duration::from_secs(1)),
        untrusted_config: None,
        changed_watched_files: texts(&["Makefile"]),
        incomplete_sandbox: Some("this kernel has no Landlock".to_owned()),
    };
    let rules = rules(&[], &["npm *"], OnUnknown::Allow);
    let place = DirectoryKind::Protected("node_modules".to_owned());
    let judgement = evaluate(&rules, "npm ci", &place, &standing);
    assert_eq!(
        judgement.verdict,
        Verdict::RequireApproval(vec![
            ApprovalReason::ProtectedDirectory("node_modules".to_owned()),
            ApprovalReason::RequireHuman("npm *".to_owned()),
            ApprovalReason::LimitReached,
            ApprovalReason::Cooldown(Duration::from_secs(1)),
            ApprovalReason::WatchedFiles(texts(&["Makefile"])),
            ApprovalReason::Sandbox("this kernel has no Landlock".to_owned()),
        ])
    );
    let about: Vec<_> = judgement.steps.iter().map(|step| step.subject).collect();
    assert_eq!(
        about,
        [
            "text", "folder", "switch", "lists", "limit", "cooldown", "files", "sandbox"
        ]
    );
}

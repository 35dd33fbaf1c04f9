//! Conditions that make a verdict stricter: directories, the switch, limits, the cooldown, changed files.

use std::time::Duration;

use unstuck_core::command_policy::{
    ApprovalReason, CommandEvaluation, CommandVerdict, CommandVerdictRestrictions,
    OnUnlistedCommand, RepairPolicy, WorkingDirProtection, evaluate,
};

use super::{judged, rules, texts};

fn with(standing: &CommandVerdictRestrictions) -> CommandEvaluation {
    let rules = rules(&["npm ci"], &[], OnUnlistedCommand::Escalate);
    evaluate(&rules, "npm ci", &WorkingDirProtection::Ordinary, standing)
}

/// S3-16: when repairs are disabled, nothing runs and no approval is requested.
#[test]
fn nothing_runs_when_disabled() {
    for on_unknown in [
        OnUnlistedCommand::Escalate,
        OnUnlistedCommand::Deny,
        OnUnlistedCommand::Allow,
    ] {
        let rules = RepairPolicy {
            enabled: false,
            ..rules(&["npm ci"], &["git push"], on_unknown)
        };
        for command in ["npm ci", "npm test", "git push"] {
            assert_eq!(
                judged(&rules, command).verdict,
                CommandVerdict::Deny,
                "{command}"
            );
        }
        assert_eq!(
            judged(&rules, "npm\u{202e}ci").verdict,
            CommandVerdict::RejectProposal
        );
    }
}

/// S3-19, S3-41: the limit of a run, even if unknown commands are allowed.
#[test]
fn run_limit_requires_approval() {
    let after = |ran, most| {
        let rules = RepairPolicy {
            max_auto_recoveries_per_run: most,
            ..rules(&["npm ci"], &[], OnUnlistedCommand::Allow)
        };
        let standing = CommandVerdictRestrictions {
            auto_repairs_this_run: ran,
            ..CommandVerdictRestrictions::default()
        };
        ["npm ci", "npm cache verify"].map(|command| {
            evaluate(&rules, command, &WorkingDirProtection::Ordinary, &standing)
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

/// S3-20: within the cooldown approval is required, and the reason states the remaining time.
#[test]
fn cooldown_requires_approval() {
    let left = Duration::from_secs(42);
    let judgement = with(&CommandVerdictRestrictions {
        cooldown_left: Some(left),
        ..CommandVerdictRestrictions::default()
    });
    assert_eq!(
        judgement.verdict,
        CommandVerdict::RequireApproval(vec![ApprovalReason::Cooldown(left)])
    );
    assert_eq!(
        judgement.reason,
        "repair cooldown has not elapsed (42 s left)"
    );
    let over = CommandVerdictRestrictions {
        cooldown_left: Some(Duration::ZERO),
        ..CommandVerdictRestrictions::default()
    };
    assert_eq!(with(&over).verdict.name(), "run");
}

#[test]
fn changed_watched_files_require_approval() {
    let judgement = with(&CommandVerdictRestrictions {
        changed_watched_files: texts(&["package.json", "a\u{1b}b"]),
        ..CommandVerdictRestrictions::default()
    });
    assert!(matches!(&judgement.verdict, CommandVerdict::RequireApproval(whys) if whys.len() == 1));
    assert_eq!(
        judgement.reason,
        r"watched files changed: package.json, a\u{1b}b"
    );
}

/// S3-48: inside `.git`, `node_modules` or unstuck's own state an approval does not apply.
#[test]
fn no_approval_applies_in_a_protected_directory() {
    let place = WorkingDirProtection::Protected(".git".to_owned());
    for (on_unknown, unknown) in [
        (OnUnlistedCommand::Escalate, "ask"),
        (OnUnlistedCommand::Deny, "deny"),
        (OnUnlistedCommand::Allow, "ask"),
    ] {
        let rules = rules(&["npm ci"], &[], on_unknown);
        let judged = |command| {
            evaluate(
                &rules,
                command,
                &place,
                &CommandVerdictRestrictions::default(),
            )
            .verdict
        };
        assert_eq!(judged("npm ci").name(), "ask");
        assert_eq!(judged("npm test").name(), unknown);
    }
}

/// Untrusted configuration is not part of the rules; here it is only reported.
#[test]
fn untrusted_configuration_is_reported() {
    let judgement = with(&CommandVerdictRestrictions {
        untrusted_config: Some("unstuck.toml".to_owned()),
        ..CommandVerdictRestrictions::default()
    });
    assert_eq!(judgement.verdict.name(), "run", "by rules that are trusted");
    let told = judgement.steps.iter().find(|step| step.subject == "config");
    assert!(told.unwrap().finding.contains("unstuck.toml"));
    let standing = CommandVerdictRestrictions {
        untrusted_config: Some("unstuck.toml".to_owned()),
        ..CommandVerdictRestrictions::default()
    };
    let judgement = evaluate(
        &RepairPolicy::default(),
        "npm ci",
        &WorkingDirProtection::Ordinary,
        &standing,
    );
    assert_eq!(
        judgement.reason,
        "matches `*` in require_human; approvals in unstuck.toml are ignored: not trusted yet (run `unstuck trust`)"
    );
}

/// Every reason is reported, not only the first.
#[test]
fn all_approval_reasons_are_reported_together() {
    let standing = CommandVerdictRestrictions {
        auto_repairs_this_run: 9,
        cooldown_left: Some(Duration::from_secs(1)),
        untrusted_config: None,
        changed_watched_files: texts(&["Makefile"]),
        incomplete_sandbox: Some("this kernel has no Landlock".to_owned()),
    };
    let rules = rules(&[], &["npm *"], OnUnlistedCommand::Allow);
    let place = WorkingDirProtection::Protected("node_modules".to_owned());
    let judgement = evaluate(&rules, "npm ci", &place, &standing);
    assert_eq!(
        judgement.verdict,
        CommandVerdict::RequireApproval(vec![
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
            "text",
            "directory",
            "switch",
            "lists",
            "limit",
            "cooldown",
            "files",
            "sandbox"
        ]
    );
}

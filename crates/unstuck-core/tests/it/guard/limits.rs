//! What makes a verdict stricter: folders, the switch, limits, the cooldown, files that have changed.

use std::time::Duration;

use unstuck_core::guard::{AskWhy, Judgement, OnUnknown, Place, Rules, Standing, Verdict, judge};

use super::{judged, rules, texts};

fn with(standing: &Standing) -> Judgement {
    let rules = rules(&["npm ci"], &[], OnUnknown::Escalate);
    judge(&rules, "npm ci", &Place::Ordinary, standing)
}

/// S3-16: switched off is switched off, and nobody is asked.
#[test]
fn switched_off_nothing_runs() {
    for on_unknown in [OnUnknown::Escalate, OnUnknown::Deny, OnUnknown::Allow] {
        let rules = Rules {
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
        let rules = Rules {
            max_auto_recoveries_per_run: most,
            ..rules(&["npm ci"], &[], OnUnknown::Allow)
        };
        let standing = Standing {
            auto_this_run: ran,
            ..Standing::default()
        };
        ["npm ci", "npm cache verify"].map(|command| {
            judge(&rules, command, &Place::Ordinary, &standing)
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
    let judgement = with(&Standing {
        cooling: Some(left),
        ..Standing::default()
    });
    assert_eq!(judgement.verdict, Verdict::Ask(vec![AskWhy::Cooling(left)]));
    assert_eq!(
        judgement.reason,
        "the next repair may run by itself in 42 s"
    );
    let over = Standing {
        cooling: Some(Duration::ZERO),
        ..Standing::default()
    };
    assert_eq!(with(&over).verdict.name(), "run");
}

#[test]
fn files_that_decide_what_it_does_make_it_ask_when_they_changed() {
    let judgement = with(&Standing {
        changed_guard_files: texts(&["package.json", "a\u{1b}b"]),
        ..Standing::default()
    });
    assert!(matches!(&judgement.verdict, Verdict::Ask(whys) if whys.len() == 1));
    assert_eq!(
        judgement.reason,
        r"package.json, a\u{1b}b decides what it does, and has changed"
    );
}

/// S3-48: inside `.git`, `node_modules` or our own state an approval does not apply.
#[test]
fn no_approval_counts_in_a_protected_folder() {
    let place = Place::Protected(".git".to_owned());
    for (on_unknown, unknown) in [
        (OnUnknown::Escalate, "ask"),
        (OnUnknown::Deny, "deny"),
        (OnUnknown::Allow, "ask"),
    ] {
        let rules = rules(&["npm ci"], &[], on_unknown);
        let judged = |command| judge(&rules, command, &place, &Standing::default()).verdict;
        assert_eq!(judged("npm ci").name(), "ask");
        assert_eq!(judged("npm test").name(), unknown);
    }
}

/// Configuration that nobody trusted is not among the rules; here it is only told.
#[test]
fn untrusted_configuration_is_told() {
    let judgement = with(&Standing {
        untrusted: Some("unstuck.toml".to_owned()),
        ..Standing::default()
    });
    assert_eq!(judgement.verdict.name(), "run", "by rules that are trusted");
    let told = judgement.steps.iter().find(|step| step.about == "config");
    assert!(told.unwrap().says.contains("unstuck.toml"));
    let standing = Standing {
        untrusted: Some("unstuck.toml".to_owned()),
        ..Standing::default()
    };
    let judgement = judge(&Rules::default(), "npm ci", &Place::Ordinary, &standing);
    assert_eq!(
        judgement.reason,
        "`*` of require_human covers it; approvals in unstuck.toml are ignored: not trusted yet (run `unstuck trust`)"
    );
}

/// Every reason is told, not only the first.
#[test]
fn all_reasons_to_ask_are_told_together() {
    let standing = Standing {
        auto_this_run: 9,
        cooling: Some(Duration::from_secs(1)),
        untrusted: None,
        changed_guard_files: texts(&["Makefile"]),
        incomplete_sandbox: Some("this kernel has no Landlock".to_owned()),
    };
    let rules = rules(&[], &["npm *"], OnUnknown::Allow);
    let place = Place::Protected("node_modules".to_owned());
    let judgement = judge(&rules, "npm ci", &place, &standing);
    assert_eq!(
        judgement.verdict,
        Verdict::Ask(vec![
            AskWhy::ProtectedFolder("node_modules".to_owned()),
            AskWhy::RequireHuman("npm *".to_owned()),
            AskWhy::LimitReached,
            AskWhy::Cooling(Duration::from_secs(1)),
            AskWhy::GuardFiles(texts(&["Makefile"])),
            AskWhy::Sandbox("this kernel has no Landlock".to_owned()),
        ])
    );
    let about: Vec<_> = judgement.steps.iter().map(|step| step.about).collect();
    assert_eq!(
        about,
        [
            "text", "folder", "switch", "lists", "limit", "cooldown", "files", "sandbox"
        ]
    );
}

//! The owner's lists: an approval applies to the exact text.

use serde_json::{Value, json};
use unstuck_core::command_policy::{
    ApprovalOrigin, ApprovalReason, ApprovedCommand, CommandVerdict, OnUnlistedCommand,
    RepairPolicy, lint_entry,
};

use super::{judged, rules, verdict};

/// Returns the lists named in the first design.
fn usual(on_unknown: OnUnlistedCommand) -> RepairPolicy {
    rules(
        &[
            "bun install",
            "npm install",
            "rm -rf node_modules && bun install",
            "rm -rf dist && bun run build",
        ],
        &[
            "rm -rf *",
            "git reset --hard",
            "git push",
            "curl *",
            "wget *",
        ],
        on_unknown,
    )
}

fn approved(rules: &RepairPolicy, command: &str) -> Option<ApprovedCommand> {
    match judged(rules, command).verdict {
        CommandVerdict::Run(approved) => Some(approved),
        _ => None,
    }
}

/// S3-02, S3-17, S3-47: only a listed command runs, and what runs is the owner's entry.
#[test]
fn approval_matches_the_exact_text_and_runs_the_owners_entry() {
    let mut rules = usual(OnUnlistedCommand::Escalate);
    for entry in rules.auto_approve.clone() {
        let approved = approved(&rules, &format!(" \t\r\n{entry}\n")).unwrap();
        assert_eq!(
            (approved.command_text(), approved.origin()),
            (entry.as_str(), ApprovalOrigin::List)
        );
    }
    rules.auto_approve = vec!["\n npm ci \t".to_owned()];
    assert_eq!(approved(&rules, "npm ci").unwrap().command_text(), "npm ci");
}

/// S3-02, S3-47: no prefix, no glob, no folding, no normalization, no path, no quotes.
#[test]
fn any_difference_makes_another_text() {
    let rules = usual(OnUnlistedCommand::Escalate);
    for other in [
        "npm",
        "npm i",
        "npm instal",
        "npm installl",
        "npm install.",
        "npm install --force",
        "npm install --",
        "NPM install",
        "npm Install",
        "npm  install",
        "npm\tinstall",
        "npm\ninstall",
        "./npm install",
        "/usr/bin/npm install",
        "\"npm\" install",
        "n\\pm install",
        "npm ins''tall",
        "npm install;",
        "npm install; id",
        "npm install && id",
        "id && npm install",
        "npm install|id",
        "npm install & id",
        "npm install\nid",
        "npm install #",
        "npm install $(id)",
        "npm install `id`",
        "npm install ${x}",
        "npm$IFS''install",
        "(npm install)",
        "{ npm install; }",
        "sudo npm install",
        "env npm install",
        "command npm install",
        "FOO=1 npm install",
        "exec npm install",
        "sh -c 'npm install'",
        "n\u{440}m install",
        "\u{ff4e}pm install",
        "npm install\u{ff1b}",
        "npm install\u{301}",
        "npm install\u{2212}",
        "rm -rf node_modules && bun  install",
        "rm -rf node_modules&&bun install",
        "bun install && rm -rf node_modules",
    ] {
        assert_eq!(verdict(&rules, other), "ask", "{other}");
    }
}

/// S3-17: pattern characters have no meaning in `auto_approve`.
#[test]
fn approval_is_not_a_pattern() {
    for (entry, command) in [
        ("npm *", "npm install"),
        ("*", "npm install"),
        ("npm install*", "npm install"),
        ("npm ?", "npm i"),
        ("npm [ai]", "npm i"),
        ("npm (install|ci)", "npm ci"),
        ("/npm .*/", "npm ci"),
        ("Bash(npm install)", "npm install"),
        ("Bash(npm install:*)", "npm install"),
        ("npm install:*", "npm install"),
        ("npm", "npm install"),
        ("npm install # any", "npm install"),
        ("~npm", "npm"),
        ("!npm ci", "npm ci"),
    ] {
        assert_eq!(
            verdict(&rules(&[entry], &[], OnUnlistedCommand::Escalate), command),
            "ask",
            "{entry}"
        );
        assert_eq!(
            verdict(&rules(&[entry], &[], OnUnlistedCommand::Escalate), entry),
            "run",
            "{entry}"
        );
    }
}

/// S3-18: the order of the lists. A string in both requires approval; an exact approval beats a pattern; then patterns,
/// then the rest.
#[test]
fn lists_have_a_fixed_order() {
    let cases: [(&[&str], &[&str], &str, &str); 13] = [
        (&["git push"], &["git push"], "git push", "ask"),
        (&["npm *"], &["npm *"], "npm *", "ask"),
        (&[" npm ci"], &["npm ci\n"], "npm ci", "ask"),
        (&["*"], &["*"], "*", "ask"),
        (&["npm ci"], &["*"], "npm ci", "run"),
        (&["npm ci"], &["npm *"], "npm ci", "run"),
        (&["npm ci"], &["npm"], "npm ci", "run"),
        (&["npm ci"], &["NPM CI"], "npm ci", "run"),
        (&["npm ci"], &["npm  ci"], "npm ci", "run"),
        (&["npm ci"], &["npm *"], "npm test", "ask"),
        (
            &["rm -rf dist && npm ci"],
            &["rm -rf *"],
            "rm -rf dist && npm ci",
            "run",
        ),
        (
            &["rm -rf dist && npm ci"],
            &["rm -rf *"],
            "rm -rf dist",
            "ask",
        ),
        (&["npm ci"], &[], "npm ci", "run"),
    ];
    for (auto, human, command, expected) in cases {
        for on_unknown in [
            OnUnlistedCommand::Escalate,
            OnUnlistedCommand::Deny,
            OnUnlistedCommand::Allow,
        ] {
            let rules = rules(auto, human, on_unknown);
            assert_eq!(
                verdict(&rules, command),
                expected,
                "{auto:?} {human:?} {on_unknown:?}"
            );
        }
    }
}

/// S3-21: a command in no list needs approval, is denied, or runs if it is simple.
#[test]
fn unlisted_command_follows_on_unknown() {
    let judged = |on_unknown, command: &str| verdict(&usual(on_unknown), command);
    assert_eq!(judged(OnUnlistedCommand::Escalate, "npm ci"), "ask");
    assert_eq!(judged(OnUnlistedCommand::Deny, "npm ci"), "deny");
    assert_eq!(judged(OnUnlistedCommand::Deny, "git push --force"), "ask");
    assert_eq!(judged(OnUnlistedCommand::Allow, "npm ci"), "run");
    assert_eq!(judged(OnUnlistedCommand::Allow, "npm ci && id"), "ask");
    assert_eq!(judged(OnUnlistedCommand::Allow, "git push --force"), "ask");
    let allowed = approved(&usual(OnUnlistedCommand::Allow), " npm ci ").unwrap();
    assert_eq!(
        (allowed.command_text(), allowed.origin()),
        ("npm ci", ApprovalOrigin::Allowance)
    );
    assert_eq!(
        RepairPolicy::default().on_unknown,
        OnUnlistedCommand::Escalate
    );
}

/// S3-50: a command with a secret in it is not a simple command.
#[test]
fn command_with_a_secret_needs_approval() {
    let rules = rules(&[], &[], OnUnlistedCommand::Allow);
    let command = "npm ci --token=npm_abcdefghijklmnopqrstuvwxyz0123456789";
    let judgement = judged(&rules, command);
    assert_eq!(judgement.verdict.name(), "ask");
    assert!(judgement.reason.contains("secret"), "{}", judgement.reason);
}

/// S3-16 to S3-21: the defaults.
#[test]
fn defaults_approve_nothing_and_require_approval() {
    let rules = RepairPolicy::from_json(&json!({})).unwrap();
    assert_eq!(rules, RepairPolicy::default());
    assert!(rules.enabled && rules.auto_approve.is_empty());
    assert_eq!(rules.require_human, ["*"]);
    assert_eq!(rules.max_auto_recoveries_per_run, 3);
    assert_eq!(rules.cooldown_seconds, 60);
    assert_eq!(verdict(&rules, "npm ci"), "ask");
}

/// S3-43: one error in the section, and all of it is ignored.
#[test]
fn invalid_section_approves_nothing() {
    let good = json!({
        "enabled": true, "auto_approve": ["npm ci"], "require_human": [], "max_auto_recoveries_per_run": 3, "cooldown_seconds": 0,
        "on_unknown": "allow", "sandbox": "off", "network": false, "allowed_write_paths": ["dist"], "env_keep": ["A"], "guard_files": false, "preview": false,
    });
    assert_eq!(
        verdict(&RepairPolicy::from_json(&good).unwrap(), "npm ci"),
        "run"
    );
    let wrong = [
        ("enabled", json!(["true", 1, null, [true]])),
        (
            "auto_approve",
            json!(["npm ci", { "npm ci": true }, [7], ["npm ci", null], [["npm ci"]], [""], ["npm ci", " \t"], ["\u{a0}"], null]),
        ),
        ("require_human", json!(["*", [1], [" "], null, {}])),
        (
            "max_auto_recoveries_per_run",
            json!([-1, 1.5, 3.0, "3", null, true, 4_294_967_296_u64]),
        ),
        ("cooldown_seconds", json!([-1, 0.5, "60s", null])),
        (
            "on_unknown",
            json!(["yes", "Allow", "", null, true, ["allow"]]),
        ),
        ("sandbox", json!(["on", true, null])),
        ("network", json!(["on", 1])),
        ("env_keep", json!(["A", [1], [""]])),
        ("allow_everything", json!([true])),
        ("Auto_approve", json!([["npm ci"]])),
    ];
    for (key, values) in wrong {
        for value in values.as_array().unwrap() {
            let mut section = good.clone();
            section[key] = value.clone();
            let error = RepairPolicy::from_json(&section).unwrap_err();
            assert_eq!(error.key, key, "{value}");
            let rules = RepairPolicy::from_json(&section).unwrap_or_default();
            assert_eq!(verdict(&rules, "npm ci"), "ask", "{key} = {value}");
        }
    }
    for section in [Value::Null, json!([]), json!("npm ci"), json!(true)] {
        assert!(RepairPolicy::from_json(&section).is_err(), "{section}");
    }
}

#[test]
fn approval_reason_is_a_sentence() {
    let rules = usual(OnUnlistedCommand::Escalate);
    let judgement = judged(&rules, "npm instal");
    assert_eq!(
        judgement.verdict,
        CommandVerdict::RequireApproval(vec![ApprovalReason::Unknown])
    );
    assert_eq!(
        judgement.reason,
        "not listed in auto_approve (closest entry: `npm install`), and on_unknown is escalate"
    );
    let judgement = judged(&rules, "git push --force");
    assert_eq!(
        judgement.verdict,
        CommandVerdict::RequireApproval(vec![ApprovalReason::RequireHuman("git push".to_owned())])
    );
    assert_eq!(judgement.reason, "matches `git push` in require_human");
}

/// S3-50: the owner is warned of a secret in an entry, and of an entry that can never match.
#[test]
fn questionable_entries_are_reported() {
    assert!(lint_entry("x --token=npm_abcdefghijklmnopqrstuvwxyz0123456789").is_some());
    assert!(lint_entry("npm\u{a0}ci").is_some());
    for entry in [
        "npm ci",
        " npm ci\r\n",
        "rm -f x || true",
        "npm run caf\u{e9}",
    ] {
        assert_eq!(lint_entry(entry), None, "{entry}");
    }
}

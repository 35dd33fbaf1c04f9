//! Invariants for any rules, any command, any document.
//!
//! `UNSTUCK_CASES` is the number of cases per invariant; 2000 by default.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use unstuck_core::command_policy::{
    ApprovalOrigin, CommandVerdict, CommandVerdictRestrictions, DirectOrShell, OnUnlistedCommand,
    Proposal, RepairPolicy, WorkingDirProtection, evaluate, sanitize, sanitize_command,
};

use super::{document, judged};
use crate::bytes::laws;

/// Pieces that are relevant to the command policy.
const PIECES: &[&str] = &[
    "npm",
    "install",
    "ci",
    "rm",
    "-rf",
    "node_modules",
    "&&",
    ";",
    "|",
    "\n",
    "\t",
    " ",
    "  ",
    "'",
    "\"",
    "\\",
    "$(",
    ")",
    "`",
    "${IFS}",
    "$'",
    "{",
    "}",
    "*",
    "?",
    "~",
    "#",
    "sudo",
    "env",
    "-u",
    "FOO=1",
    "sh",
    "-c",
    "python3",
    "git",
    "push",
    "curl",
    "./",
    "/usr/bin/",
    "é",
    "\u{440}",
    "\u{a0}",
    "\u{200b}",
    "\u{202e}",
    "\r",
    "\0",
    "\u{1b}",
    "<<<",
    ">",
    "2>&1",
    "if",
    "then",
    "cargo",
    "build",
    "--locked",
    "=",
    "x",
];

fn command() -> impl Strategy<Value = String> {
    let pieces = vec((select(PIECES), any::<bool>()), 0..12).prop_map(|pieces| {
        let words = pieces.into_iter();
        words
            .map(|(piece, blank)| format!("{piece}{}", if blank { " " } else { "" }))
            .collect::<String>()
    });
    prop_oneof![
        4 => pieces,
        2 => select(vec!["npm ci", "npm install", "rm -rf node_modules && npm ci", "cargo build --locked"]).prop_map(str::to_owned),
        1 => "\\PC{0,40}",
        1 => ".{0,40}",
    ]
}

fn on_unknown() -> impl Strategy<Value = OnUnlistedCommand> {
    select(vec![
        OnUnlistedCommand::Escalate,
        OnUnlistedCommand::Deny,
        OnUnlistedCommand::Allow,
    ])
}

fn any_rules() -> impl Strategy<Value = RepairPolicy> {
    let lists = (vec(command(), 0..4), vec(command(), 0..4));
    (lists, on_unknown(), any::<bool>(), 0..5_u32).prop_map(
        |((auto_approve, require_human), on_unknown, enabled, most)| RepairPolicy {
            enabled,
            auto_approve,
            require_human,
            max_auto_recoveries_per_run: most,
            on_unknown,
            ..RepairPolicy::default()
        },
    )
}

/// Generates rules, and a command that is often one of theirs.
fn asked() -> impl Strategy<Value = (RepairPolicy, String)> {
    (any_rules(), command(), any::<Index>(), any::<bool>()).prop_map(
        |(rules, other, at, listed)| {
            let known = rules.auto_approve.len();
            let command = match (listed, known) {
                (true, 1..) => rules.auto_approve[at.index(known)].clone(),
                _ => other,
            };
            (rules, command)
        },
    )
}

fn standing() -> impl Strategy<Value = CommandVerdictRestrictions> {
    let files = vec(
        select(vec!["package.json".to_owned(), ".npmrc".to_owned()]),
        0..2,
    );
    let missing = prop::option::of(Just("this kernel has no Landlock".to_owned()));
    let parts = (0..5_u32, prop::option::of(0..100_u64), files, missing);
    parts.prop_map(
        |(ran, cooling, files, missing)| CommandVerdictRestrictions {
            auto_repairs_this_run: ran,
            cooldown_left: cooling.map(Duration::from_secs),
            untrusted_config: None,
            changed_watched_files: files,
            incomplete_sandbox: missing,
        },
    )
}

fn place() -> impl Strategy<Value = WorkingDirProtection> {
    select(vec![
        WorkingDirProtection::Ordinary,
        WorkingDirProtection::Protected(".git".to_owned()),
    ])
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// Recognizes simple commands: a second implementation that deliberately shares nothing with the policy.
fn looks_plain(command: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c);
    command
        .split(' ')
        .all(|word| !word.is_empty() && word.chars().all(is_plain))
}

/// Returns a higher number for a stricter verdict.
fn strictness(verdict: &CommandVerdict) -> u8 {
    match verdict {
        CommandVerdict::Run(_) => 0,
        CommandVerdict::RequireApproval(_) => 1,
        CommandVerdict::Deny => 2,
        CommandVerdict::RejectProposal => 3,
    }
}

proptest! {
    #![proptest_config(laws())]

    /// S3-02, S3-17, S3-47: a command that runs is, byte for byte, an entry of the owner; or simple where the owner
    /// allows that.
    #[test]
    fn only_commands_written_by_the_owner_run((rules, command) in asked(), place in place(), standing in standing()) {
        let verdict = evaluate(&rules, &command, &place, &standing).verdict;
        if let CommandVerdict::Run(approved) = verdict {
            prop_assert_eq!(approved.command_text(), trimmed(&command));
            match approved.origin() {
                ApprovalOrigin::List => {
                    prop_assert!(rules.auto_approve.iter().any(|entry| trimmed(entry) == approved.command_text()));
                    prop_assert!(!rules.require_human.iter().any(|entry| trimmed(entry) == approved.command_text()));
                }
                ApprovalOrigin::Allowance => {
                    prop_assert_eq!(rules.on_unknown, OnUnlistedCommand::Allow);
                    prop_assert!(looks_plain(approved.command_text()));
                }
                ApprovalOrigin::Person | ApprovalOrigin::Preview => prop_assert!(false, "nobody was asked"),
            }
            prop_assert!(rules.enabled);
            prop_assert_eq!(place, WorkingDirProtection::Ordinary);
            prop_assert!(standing.auto_repairs_this_run < rules.max_auto_recoveries_per_run);
            prop_assert_eq!(standing.incomplete_sandbox, None);
        }
    }

    /// S3-47: one more character at either end makes it another command, except for the four that are trimmed.
    #[test]
    fn one_more_character_is_another_command(entry in command(), more in any::<char>(), in_front: bool, human in vec(command(), 0..3)) {
        let rules = RepairPolicy { auto_approve: vec![entry.clone()], require_human: human, ..RepairPolicy::default() };
        let command = if in_front { format!("{more}{}", trimmed(&entry)) } else { format!("{}{more}", trimmed(&entry)) };
        if matches!(more, ' ' | '\t' | '\n' | '\r') {
            prop_assert_eq!(judged(&rules, &command).verdict, judged(&rules, &entry).verdict);
        } else {
            prop_assert_ne!(judged(&rules, &command).verdict.name(), "run");
        }
    }

    /// S3-43: an invalid section approves nothing, whatever it contains.
    #[test]
    fn invalid_section_never_runs_anything(rules in any_rules(), key in select(vec!["enabled", "auto_approve", "require_human", "on_unknown", "cooldown_seconds", "max_auto_recoveries_per_run", "sandbox", "extra"]), value in wrong_value(), command in command()) {
        let mut section = json!({ "auto_approve": rules.auto_approve, "require_human": rules.require_human, "on_unknown": rules.on_unknown });
        section[key] = value;
        let read = RepairPolicy::from_json(&section);
        if let Err(error) = &read {
            prop_assert!(!error.to_string().is_empty());
            let rules = read.unwrap_or_default();
            for command in rules.auto_approve.iter().chain([&command]) {
                prop_assert_ne!(judged(&rules, command).verdict.name(), "run");
            }
        }
    }

    /// Any additional step can only make the verdict stricter.
    #[test]
    fn every_additional_step_is_stricter((rules, command) in asked(), place in place(), standing in standing()) {
        let least = evaluate(&rules, &command, &WorkingDirProtection::Ordinary, &CommandVerdictRestrictions::default()).verdict;
        let most = evaluate(&rules, &command, &place, &standing).verdict;
        prop_assert!(strictness(&most) >= strictness(&least), "{least:?} became {most:?}");
    }

    /// S3-18: adding an entry to `require_human`, or removing one from `auto_approve`, never lets anything run.
    #[test]
    fn narrower_list_never_lets_more_run((rules, command) in asked(), entry in command(), at in any::<Index>()) {
        let runs = |rules: &RepairPolicy| judged(rules, &command).verdict.name() == "run";
        let mut asking = rules.clone();
        asking.require_human.push(entry);
        prop_assert!(runs(&rules) || !runs(&asking));
        let mut fewer = rules.clone();
        if !fewer.auto_approve.is_empty() {
            fewer.auto_approve.remove(at.index(rules.auto_approve.len()));
        }
        // If unknown commands are allowed, a command removed from the list is an unknown one.
        prop_assert!(runs(&rules) || !runs(&fewer) || rules.on_unknown == OnUnlistedCommand::Allow);
    }

    /// S3-01: the texts of a proposal decide nothing; they only have to be strings.
    #[test]
    fn texts_of_a_proposal_decide_nothing((rules, command) in asked(), texts in vec(any::<String>(), 4..5), confidence in select(vec!["high", "medium", "low"]), category in select(vec!["dependency", "config", "environment", "permissions", "network"])) {
        let plain = Proposal::parse(document(&command).to_string().as_bytes());
        let mut other = document(&command);
        other["category"] = json!(category);
        other["diagnosis"] = json!({ "error_pattern": texts[0], "root_cause": texts[1], "evidence": [texts[2]] });
        other["recovery"]["expected_outcome"] = json!(texts[3]);
        other["recovery"]["confidence"] = json!(confidence);
        other["approved"] = json!(true);
        let other = Proposal::parse(other.to_string().as_bytes());
        prop_assert_eq!(plain.is_ok(), other.is_ok());
        if let (Ok(plain), Ok(other)) = (plain, other) {
            prop_assert_eq!(judged(&rules, &plain.recovery.command), judged(&rules, &other.recovery.command));
        }
    }

    /// A command by itself is never rejected differently from its document.
    #[test]
    fn command_is_evaluated_like_its_document(rules in any_rules(), command in command()) {
        let refused = Proposal::parse(document(&command).to_string().as_bytes()).is_err();
        let verdict = judged(&rules, &command).verdict;
        prop_assert_eq!(refused, verdict == CommandVerdict::RejectProposal);
    }

    /// Any bytes are parsed without a panic, and hardly any are a proposal.
    #[test]
    fn any_bytes_are_rejected_without_a_panic(bytes in vec(any::<u8>(), 0..400)) {
        let told = Proposal::parse(&bytes).unwrap_err().to_string();
        prop_assert!(!told.chars().any(char::is_control));
    }

    /// A damaged document is rejected or still valid; a parsed one is always well-formed.
    #[test]
    fn damaged_document_is_rejected_or_valid(command in command(), at in any::<Index>(), bytes in vec(any::<u8>(), 0..4), length in 0..6_usize) {
        let mut damaged = document(&command).to_string().into_bytes();
        let from = at.index(damaged.len());
        let to = (from + length).min(damaged.len());
        damaged.splice(from..to, bytes);
        if let Ok(proposal) = Proposal::parse(&damaged) {
            prop_assert!((1..=3600).contains(&proposal.recovery.timeout_seconds));
            prop_assert!(!trimmed(&proposal.recovery.command).is_empty());
            prop_assert_ne!(judged(&RepairPolicy::default(), &proposal.recovery.command).verdict.name(), "reject_proposal");
        }
    }

    /// Displayed text contains no control sequences.
    #[test]
    fn displayed_text_is_on_one_line_and_harmless(text in any::<String>()) {
        let is_hidden = |c: char| c.is_control() || "\u{202e}\u{200b}\u{2028}\u{feff}".contains(c);
        for shown in [sanitize(&text), sanitize_command(&text)] {
            prop_assert!(!shown.chars().any(is_hidden));
        }
        prop_assert!(sanitize_command(&text).is_ascii());
    }

    /// A command that runs without a shell has exactly the words a shell would pass.
    #[test]
    fn script_without_a_shell_keeps_every_word(words in vec(vec("[a-z0-9_./:@%+=,-]{1,8}", 1..4), 1..4)) {
        let text = words.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(" && ");
        if let DirectOrShell::Direct(commands) = DirectOrShell::for_text(&text) {
            prop_assert_eq!(commands, words);
        }
    }
}

fn wrong_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        vec(any::<String>(), 0..3).prop_map(Value::from),
        vec(any::<u8>(), 0..3).prop_map(Value::from),
        Just(json!({})),
    ]
}

//! Restrictions inside a supervised agent: it may read, run and propose, but not decide for its owner.

use anyhow::Result;

use crate::Command;
use crate::error_report::forbidden;
use crate::project_trust;

/// Refuses commands that need a human decision if called by a supervised agent.
pub(crate) fn refuse_for_agents(command: &Command) -> Result<()> {
    let Some(what) = command.human_decision() else {
        return Ok(());
    };
    match project_trust::agent_evidence() {
        None => Ok(()),
        Some(why) => Err(human_only_error(what, &why)),
    }
}

/// Returns the error for a refused agent.
pub(crate) fn human_only_error(what: &str, why: &str) -> anyhow::Error {
    forbidden(
        format!("only a human can {what}; this command runs inside a supervised agent ({why})"),
        "run it in your own terminal",
    )
}

impl Command {
    /// Describes the human decision that the command makes, as an infinitive; none if agents may use it.
    fn human_decision(&self) -> Option<&'static str> {
        const ANSWER: Option<&str> = Some("answer");
        match self {
            Self::Demo(_)
            | Self::Exec(_)
            | Self::Status(_)
            | Self::Serve(_)
            // Its answers are refused when they are submitted.
            | Self::Inbox(_)
            | Self::Propose(_)
            | Self::Runs(_)
            | Self::Show(_)
            | Self::Logs(_)
            | Self::Cost(_)
            | Self::Diff(_)
            | Self::Explain(_)
            | Self::Agents(_)
            | Self::Classify(_)
            | Self::Plan(_)
            | Self::Kinds(_)
            | Self::Policy(_)
            | Self::Guard(_)
            | Self::Config(_)
            | Self::Faults(_) => None,
            Self::Run(args) => args.is_resume().then_some("resume a run"),
            Self::Resume(_) => Some("resume a run"),
            Self::Stop(_) => Some("stop a run"),
            Self::Repair(args) => args.is_undo().then_some("undo a repair"),
            Self::Approve(_)
            | Self::Reject(_)
            | Self::Resolve(_)
            | Self::Skip(_)
            | Self::ApproveRecovery(_)
            | Self::RejectRecovery(_)
            | Self::ResolveRecovery(_) => ANSWER,
            Self::Retry(args) => args.changes_run().then_some("request a retry"),
            Self::Escalate(_) => Some("switch the model of a session"),
            Self::Abort(_) => Some("abort a run"),
            Self::Store(args) => args.is_destructive().then_some("delete stored runs"),
            Self::Preview(args) => args.changes_project().then_some("apply or drop a preview"),
            Self::Trust(args) => args.changes_trust().then_some("trust a project"),
            Self::Token(args) => args.changes_tokens().then_some("create or revoke tokens"),
            Self::Webhook(args) => args.sends_messages().then_some("send notifications"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory, Parser};

    use crate::Cli;

    /// A command line of each command and subcommand, and whether an agent may use it.
    const LINES: &[(&str, bool)] = &[
        ("demo", true),
        ("exec -- true", true),
        ("run", true),
        ("run --resume-from-failure", false),
        ("run --resume-from-failure --accept-changes", false),
        ("resume", false),
        ("resume k3v9 --accept-changes", false),
        ("resume --all", false),
        ("stop", false),
        ("status", true),
        ("repair", true),
        ("repair --undo k3v9", false),
        ("serve", true),
        ("inbox", true),
        ("approve", false),
        ("reject", false),
        ("resolve", false),
        ("retry k3v9", false),
        ("retry k3v9 --show", true),
        ("escalate k3v9", false),
        ("skip", false),
        ("abort", false),
        ("approve-recovery", false),
        ("reject-recovery", false),
        ("resolve-recovery", false),
        ("propose -", true),
        ("runs", true),
        ("show", true),
        ("logs", true),
        ("cost", true),
        ("diff", true),
        ("explain", true),
        ("store check", true),
        ("store path", true),
        ("store vacuum", false),
        ("store export", true),
        ("store prune --older-than 1d", false),
        ("agents", true),
        ("classify", true),
        ("plan", true),
        ("kinds", true),
        ("policy list", true),
        ("preview make", true),
        ("preview make --drop", true),
        ("preview --drop 3f9a", false),
        ("preview make --apply", false),
        ("preview --apply 3f9a", false),
        ("guard check make", true),
        ("config show", true),
        ("trust", false),
        ("trust --forget", false),
        ("trust --show", true),
        ("token", true),
        ("token create", false),
        ("token list", true),
        ("token link", false),
        ("token revoke 3f9a", false),
        ("webhook test", false),
        ("webhook list", true),
        ("webhook flush", false),
        ("faults list", true),
    ];

    /// M3: every command declares whether agents may use it, and so does every subcommand of those that decide.
    #[test]
    fn every_command_declares_whether_agents_may_use_it() {
        let mut seen = BTreeSet::new();
        for (line, is_allowed) in LINES {
            let words: Vec<_> = line.split_whitespace().collect();
            seen.insert(words[0].to_owned());
            seen.insert(words[..words.len().min(2)].join(" "));
            let parsed = Cli::try_parse_from([&["unstuck"], words.as_slice()].concat());
            let cli = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            let refused = cli.command.human_decision();
            assert_eq!(refused.is_none(), *is_allowed, "{line}: {refused:?}");
        }
        const DECIDING: [&str; 3] = ["store", "token", "webhook"];
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(seen.contains(name), "{name} has no line here");
            for inner in command
                .get_subcommands()
                .filter(|_| DECIDING.contains(&name))
            {
                let line = format!("{name} {}", inner.get_name());
                assert!(seen.contains(&line), "{line} has no line here");
            }
        }
    }
}

//! Evaluates whether a command may run. After the lists, each step can only make the verdict stricter.

use super::approved_command::ApprovedCommand;
use super::hidden_characters::trim_ascii_whitespace;
use super::proposal_parser::check_command;
use super::repair_policy::{OnUnlistedCommand, RepairPolicy};
use super::require_human::MatchableCommand;
use super::safe_display::{sanitize, sanitize_command};
use super::simple_command_check::simple_command_objection;
use super::verdict::{
    ApprovalReason, CommandEvaluation, CommandVerdict, CommandVerdictRestrictions, EvaluationStep,
    EvaluationStepEffect, WorkingDirProtection,
};
use crate::duration::HumanDuration;
use crate::nearest;

/// Maximum length of texts that are checked for near misses.
const MAX_NEAR_MISS_LEN: usize = 200;

/// Evaluates a command against the owner's rules. Nothing else decides: no confidence, no diagnosis, no other command.
pub fn evaluate(
    rules: &RepairPolicy,
    command: &str,
    place: &WorkingDirProtection,
    standing: &CommandVerdictRestrictions,
) -> CommandEvaluation {
    if let Err(error) = check_command(command, "command") {
        return CommandEvaluation::rejected(error.rule(), error.to_string());
    }
    let command = trim_ascii_whitespace(command);
    let mut steps = vec![
        check_text(command),
        check_directory(place),
        check_enabled(rules),
    ];
    steps.extend(check_trust(standing));
    steps.push(check_lists(rules, command));
    steps.push(check_run_limit(rules, standing));
    steps.push(check_cooldown(standing));
    steps.push(check_watched_files(standing));
    steps.extend(check_sandbox(standing));
    let mut judgement = CommandEvaluation::from_steps(steps);
    // This line comes first to explain why an owner's own entry has no effect.
    if let (CommandVerdict::RequireApproval(_) | CommandVerdict::Deny, Some(told)) =
        (&judgement.verdict, check_trust(standing))
    {
        judgement.reason = format!("{}; {}", judgement.reason, told.finding);
    }
    judgement
}

fn policy_step(
    rule: &'static str,
    about: &'static str,
    effect: EvaluationStepEffect,
    says: impl Into<String>,
) -> EvaluationStep {
    EvaluationStep {
        rule,
        subject: about,
        effect,
        finding: says.into(),
    }
}

fn check_text(command: &str) -> EvaluationStep {
    let mut says = "all characters are visible".to_owned();
    if !command.is_ascii() {
        says.push_str(", but some are not ASCII and may look like other characters");
    }
    policy_step("R2", "text", EvaluationStepEffect::Passes, says)
}

fn check_directory(place: &WorkingDirProtection) -> EvaluationStep {
    match place {
        WorkingDirProtection::Ordinary => policy_step(
            "R6",
            "directory",
            EvaluationStepEffect::Passes,
            "the directory is inside the project",
        ),
        WorkingDirProtection::Protected(part) => {
            let says = format!("approvals do not apply inside {}", sanitize(part));
            policy_step(
                "R6",
                "directory",
                EvaluationStepEffect::Asks(ApprovalReason::ProtectedDirectory(part.clone())),
                says,
            )
        }
    }
}

fn check_enabled(rules: &RepairPolicy) -> EvaluationStep {
    if rules.enabled {
        policy_step(
            "R10",
            "switch",
            EvaluationStepEffect::Passes,
            "repairs are enabled",
        )
    } else {
        policy_step(
            "R10",
            "switch",
            EvaluationStepEffect::Denies,
            "repairs are disabled: recovery.enabled is false",
        )
    }
}

fn check_trust(standing: &CommandVerdictRestrictions) -> Option<EvaluationStep> {
    let config = sanitize(standing.untrusted_config.as_deref()?);
    let says = format!("approvals in {config} are ignored: not trusted yet (run `unstuck trust`)");
    Some(policy_step(
        "trust",
        "config",
        EvaluationStepEffect::Passes,
        says,
    ))
}

/// Checks the owner's lists, and the rule for commands in none of them.
fn check_lists(rules: &RepairPolicy, command: &str) -> EvaluationStep {
    let is_command = |entry: &&String| trim_ascii_whitespace(entry) == command;
    if let Some(entry) = rules.auto_approve.iter().find(is_command) {
        if rules.require_human.iter().any(|entry| is_command(&entry)) {
            let says = "listed in both auto_approve and require_human: approval required";
            return policy_step(
                "R5",
                "lists",
                EvaluationStepEffect::Asks(ApprovalReason::BothLists),
                says,
            );
        }
        let says = "exact match in auto_approve";
        return policy_step(
            "R4",
            "lists",
            EvaluationStepEffect::Approves(ApprovedCommand::from_list(entry)),
            says,
        );
    }
    let line = MatchableCommand::new(command);
    if let Some(pattern) = rules.require_human.iter().find(|entry| line.matches(entry)) {
        let says = format!(
            "matches `{}` in require_human",
            sanitize_command(trim_ascii_whitespace(pattern))
        );
        let why = ApprovalReason::RequireHuman(trim_ascii_whitespace(pattern).to_owned());
        return policy_step("R5", "lists", EvaluationStepEffect::Asks(why), says);
    }
    check_unlisted(rules, command)
}

fn check_unlisted(rules: &RepairPolicy, command: &str) -> EvaluationStep {
    let mut unknown = "not listed in auto_approve".to_owned();
    if let Some(near) = near_miss(rules, command) {
        unknown = format!("{unknown} (closest entry: `{}`)", sanitize_command(near));
    }
    match rules.on_unknown {
        OnUnlistedCommand::Escalate => policy_step(
            "R5",
            "lists",
            EvaluationStepEffect::Asks(ApprovalReason::Unknown),
            format!("{unknown}, and on_unknown is escalate"),
        ),
        OnUnlistedCommand::Deny => policy_step(
            "R5",
            "lists",
            EvaluationStepEffect::Denies,
            format!("{unknown}, and on_unknown is deny"),
        ),
        OnUnlistedCommand::Allow => match simple_command_objection(command) {
            None => {
                let says = "on_unknown is allow, and this is a simple command";
                policy_step(
                    "R8",
                    "lists",
                    EvaluationStepEffect::Approves(ApprovedCommand::from_allowance(command)),
                    says,
                )
            }
            Some(why) => {
                let says = format!("on_unknown is allow, but only for simple commands: {why}");
                policy_step(
                    "R8",
                    "lists",
                    EvaluationStepEffect::Asks(ApprovalReason::NotSimple(why)),
                    says,
                )
            }
        },
    }
}

/// Returns the entry that was probably meant. Reporting it approves nothing.
fn near_miss<'r>(rules: &'r RepairPolicy, command: &str) -> Option<&'r str> {
    if command.len() > MAX_NEAR_MISS_LEN {
        return None;
    }
    let entries = rules
        .auto_approve
        .iter()
        .map(|entry| trim_ascii_whitespace(entry));
    let short = entries.filter(|entry| entry.len() <= MAX_NEAR_MISS_LEN);
    nearest(command, short.map(|entry| (entry, entry)))
}

fn check_run_limit(rules: &RepairPolicy, standing: &CommandVerdictRestrictions) -> EvaluationStep {
    let (ran, most) = (
        standing.auto_repairs_this_run,
        rules.max_auto_recoveries_per_run,
    );
    let says = format!("{ran} of {most} automatic repairs used in this run");
    if ran < most {
        policy_step("R10", "limit", EvaluationStepEffect::Passes, says)
    } else {
        policy_step(
            "R10",
            "limit",
            EvaluationStepEffect::Asks(ApprovalReason::LimitReached),
            says,
        )
    }
}

fn check_cooldown(standing: &CommandVerdictRestrictions) -> EvaluationStep {
    match standing.cooldown_left.filter(|left| !left.is_zero()) {
        None => policy_step(
            "R10",
            "cooldown",
            EvaluationStepEffect::Passes,
            "no cooldown is active",
        ),
        Some(left) => {
            let says = format!(
                "repair cooldown has not elapsed ({} left)",
                HumanDuration(left)
            );
            policy_step(
                "R10",
                "cooldown",
                EvaluationStepEffect::Asks(ApprovalReason::Cooldown(left)),
                says,
            )
        }
    }
}

/// Requires approval for an incomplete sandbox, unless the owner's own file accepts it.
fn check_sandbox(standing: &CommandVerdictRestrictions) -> Option<EvaluationStep> {
    let missing = standing.incomplete_sandbox.as_ref()?;
    let says = format!(
        "the sandbox is incomplete on this machine ({}); set `sandbox = \"best-effort\"` in your own configuration to accept this",
        sanitize(missing)
    );
    let why = ApprovalReason::Sandbox(missing.clone());
    Some(policy_step(
        "sandbox",
        "sandbox",
        EvaluationStepEffect::Asks(why),
        says,
    ))
}

fn check_watched_files(standing: &CommandVerdictRestrictions) -> EvaluationStep {
    let changed = &standing.changed_watched_files;
    if changed.is_empty() {
        return policy_step(
            "guard files",
            "files",
            EvaluationStepEffect::Passes,
            "the watched files are unchanged",
        );
    }
    let names: Vec<_> = changed.iter().map(|name| sanitize(name)).collect();
    let says = format!("watched files changed: {}", names.join(", "));
    policy_step(
        "guard files",
        "files",
        EvaluationStepEffect::Asks(ApprovalReason::WatchedFiles(changed.clone())),
        says,
    )
}

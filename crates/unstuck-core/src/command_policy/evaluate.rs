//! Evaluates whether a command may run. After the lists, each step can only make the verdict stricter.

use super::approved_command::ApprovedCommand;
use super::charset::trim_ascii_whitespace;
use super::proposal_fields::check_command;
use super::repair_policy::{OnUnknown, RepairPolicy};
use super::require_human::MatchableCommand;
use super::sanitize::{sanitize, sanitize_command};
use super::simple_command::simple_command_objection;
use super::verdict::{
    ApprovalReason, DirectoryKind, Evaluation, PolicyContext, PolicyStep, StepEffect, Verdict,
};
use crate::duration::HumanDuration;
use crate::nearest;

/// Maximum length of texts that are checked for near misses.
const MAX_NEAR_MISS_LEN: usize = 200;

/// Evaluates a command against the owner's rules. Nothing else decides: no confidence, no diagnosis, no other command.
pub fn evaluate(
    rules: &RepairPolicy,
    command: &str,
    place: &DirectoryKind,
    standing: &PolicyContext,
) -> Evaluation {
    if let Err(error) = check_command(command, "command") {
        return Evaluation::rejected(error.rule(), error.to_string());
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
    let mut judgement = Evaluation::from_steps(steps);
    // This line comes first to explain why an owner's own entry has no effect.
    if let (Verdict::RequireApproval(_) | Verdict::Deny, Some(told)) =
        (&judgement.verdict, check_trust(standing))
    {
        judgement.reason = format!("{}; {}", judgement.reason, told.finding);
    }
    judgement
}

fn policy_step(
    rule: &'static str,
    about: &'static str,
    effect: StepEffect,
    says: impl Into<String>,
) -> PolicyStep {
    PolicyStep {
        rule,
        subject: about,
        effect,
        finding: says.into(),
    }
}

fn check_text(command: &str) -> PolicyStep {
    let mut says = "every character of it can be seen".to_owned();
    if !command.is_ascii() {
        says.push_str(", but some are beyond ASCII and may look like others");
    }
    policy_step("R2", "text", StepEffect::Passes, says)
}

fn check_directory(place: &DirectoryKind) -> PolicyStep {
    match place {
        DirectoryKind::Ordinary => policy_step(
            "R6",
            "folder",
            StepEffect::Passes,
            "the folder is inside the project",
        ),
        DirectoryKind::Protected(part) => {
            let says = format!("no approval counts inside {}", sanitize(part));
            policy_step(
                "R6",
                "folder",
                StepEffect::Asks(ApprovalReason::ProtectedDirectory(part.clone())),
                says,
            )
        }
    }
}

fn check_enabled(rules: &RepairPolicy) -> PolicyStep {
    if rules.enabled {
        policy_step(
            "R10",
            "switch",
            StepEffect::Passes,
            "repairs are switched on",
        )
    } else {
        policy_step(
            "R10",
            "switch",
            StepEffect::Denies,
            "repairs are switched off: recovery.enabled is false",
        )
    }
}

fn check_trust(standing: &PolicyContext) -> Option<PolicyStep> {
    let config = sanitize(standing.untrusted_config.as_deref()?);
    let says = format!("approvals in {config} are ignored: not trusted yet (run `unstuck trust`)");
    Some(policy_step("trust", "config", StepEffect::Passes, says))
}

/// Checks the owner's lists, and the rule for commands in none of them.
fn check_lists(rules: &RepairPolicy, command: &str) -> PolicyStep {
    let is_command = |entry: &&String| trim_ascii_whitespace(entry) == command;
    if let Some(entry) = rules.auto_approve.iter().find(is_command) {
        if rules.require_human.iter().any(|entry| is_command(&entry)) {
            let says = "it stands in auto_approve and in require_human: a person decides";
            return policy_step(
                "R5",
                "lists",
                StepEffect::Asks(ApprovalReason::BothLists),
                says,
            );
        }
        let says = "it is, byte for byte, an entry of auto_approve";
        return policy_step(
            "R4",
            "lists",
            StepEffect::Approves(ApprovedCommand::from_list(entry)),
            says,
        );
    }
    let line = MatchableCommand::new(command);
    if let Some(pattern) = rules.require_human.iter().find(|entry| line.matches(entry)) {
        let says = format!(
            "`{}` of require_human covers it",
            sanitize_command(trim_ascii_whitespace(pattern))
        );
        let why = ApprovalReason::RequireHuman(trim_ascii_whitespace(pattern).to_owned());
        return policy_step("R5", "lists", StepEffect::Asks(why), says);
    }
    check_unlisted(rules, command)
}

fn check_unlisted(rules: &RepairPolicy, command: &str) -> PolicyStep {
    let mut unknown = "no entry of auto_approve is this very text".to_owned();
    if let Some(near) = near_miss(rules, command) {
        unknown = format!("{unknown} (the nearest is `{}`)", sanitize_command(near));
    }
    match rules.on_unknown {
        OnUnknown::Escalate => policy_step(
            "R5",
            "lists",
            StepEffect::Asks(ApprovalReason::Unknown),
            format!("{unknown}, and on_unknown is escalate"),
        ),
        OnUnknown::Deny => policy_step(
            "R5",
            "lists",
            StepEffect::Denies,
            format!("{unknown}, and on_unknown is deny"),
        ),
        OnUnknown::Allow => match simple_command_objection(command) {
            None => {
                let says = "on_unknown is allow, and it is a plain command";
                policy_step(
                    "R8",
                    "lists",
                    StepEffect::Approves(ApprovedCommand::from_allowance(command)),
                    says,
                )
            }
            Some(why) => {
                let says = format!("on_unknown is allow, but only for plain commands: {why}");
                policy_step(
                    "R8",
                    "lists",
                    StepEffect::Asks(ApprovalReason::NotSimple(why)),
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

fn check_run_limit(rules: &RepairPolicy, standing: &PolicyContext) -> PolicyStep {
    let (ran, most) = (
        standing.auto_repairs_this_run,
        rules.max_auto_recoveries_per_run,
    );
    let says = format!("{ran} of at most {most} repairs ran by themselves in this run");
    if ran < most {
        policy_step("R10", "limit", StepEffect::Passes, says)
    } else {
        policy_step(
            "R10",
            "limit",
            StepEffect::Asks(ApprovalReason::LimitReached),
            says,
        )
    }
}

fn check_cooldown(standing: &PolicyContext) -> PolicyStep {
    match standing.cooldown_left.filter(|left| !left.is_zero()) {
        None => policy_step(
            "R10",
            "cooldown",
            StepEffect::Passes,
            "the last repair is long enough ago",
        ),
        Some(left) => {
            let says = format!(
                "the next repair may run by itself in {}",
                HumanDuration(left)
            );
            policy_step(
                "R10",
                "cooldown",
                StepEffect::Asks(ApprovalReason::Cooldown(left)),
                says,
            )
        }
    }
}

/// Requires approval for an incomplete sandbox, unless the owner's own file accepts it.
fn check_sandbox(standing: &PolicyContext) -> Option<PolicyStep> {
    let missing = standing.incomplete_sandbox.as_ref()?;
    let says = format!(
        "the sandbox is not complete here ({}); `sandbox = \"best-effort\"` in your own configuration accepts that",
        sanitize(missing)
    );
    let why = ApprovalReason::Sandbox(missing.clone());
    Some(policy_step(
        "sandbox",
        "sandbox",
        StepEffect::Asks(why),
        says,
    ))
}

fn check_watched_files(standing: &PolicyContext) -> PolicyStep {
    let changed = &standing.changed_watched_files;
    if changed.is_empty() {
        return policy_step(
            "guard files",
            "files",
            StepEffect::Passes,
            "no file that decides what it does has changed",
        );
    }
    let names: Vec<_> = changed.iter().map(|name| sanitize(name)).collect();
    let says = format!("{} decides what it does, and has changed", names.join(", "));
    policy_step(
        "guard files",
        "files",
        StepEffect::Asks(ApprovalReason::WatchedFiles(changed.clone())),
        says,
    )
}

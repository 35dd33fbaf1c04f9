//! Renders repairs for both screens and for the history.

use std::time::Duration;

use unstuck_core::command_policy::sanitize;
use unstuck_core::duration::HumanDuration;
use unstuck_core::event::{
    ApprovalSource, Event, PolicyVerdict, RepairConfinement, RepairExecuted, RepairProposalOrigin,
    RepairProposed, RepairStarted,
};
use unstuck_core::repair::needs_network;
use unstuck_core::views::RepairView;

use crate::output::{BOLD, GREEN, YELLOW};
use crate::sanitized_text::one_line;

/// Maximum length of a command or a reason in a line.
const MAX_LINE: usize = 160;
/// Maximum length of the output of a repair.
const MAX_TRACE: usize = 400;

/// Renders a repair event in one line; none for other events.
pub(crate) fn event_line(event: &Event) -> Option<String> {
    match event {
        // An allowed repair is reported when it runs.
        Event::RepairProposed(one) if one.verdict == PolicyVerdict::Run => None,
        Event::RepairProposed(one) => Some(proposed_line(one)),
        Event::RepairRejected(one) => Some(format!(
            "{YELLOW}proposed fix rejected{YELLOW:#}: {}",
            one_line(&one.reason, MAX_LINE)
        )),
        Event::RepairStarted(one) => Some(format!(
            "running fix: {BOLD}{}{BOLD:#} ({})",
            one_line(&one.command, MAX_LINE),
            approval_text(one)
        )),
        Event::RepairExecuted(one) => Some(executed_line(one)),
        Event::RepairFailed(one) => Some(format!(
            "{YELLOW}fix did not help{YELLOW:#}: {}",
            one_line(&one.error, MAX_LINE)
        )),
        _ => None,
    }
}

fn proposed_line(one: &RepairProposed) -> String {
    let command = one_line(&one.command, MAX_LINE);
    let so = match one.verdict {
        PolicyVerdict::Deny => "is not allowed",
        PolicyVerdict::Ask | PolicyVerdict::Run => "needs approval",
    };
    let why = one_line(&one.reason, MAX_LINE);
    let record = match one.by {
        // The suffix shows how often it has helped.
        RepairProposalOrigin::Remembered => format!(" ({})", one_line(&one.root_cause, MAX_LINE)),
        _ => String::new(),
    };
    format!(
        "proposed fix {} from {}{record}: {BOLD}{command}{BOLD:#} {so}: {why}",
        one.id,
        proposer_label(one.by)
    )
}

fn executed_line(one: &RepairExecuted) -> String {
    let took = HumanDuration(Duration::from_millis(one.duration_ms));
    let confined = match one.sandbox.as_str() {
        "full" => "",
        "partial" => ", in a partial sandbox",
        _ => ", without a sandbox",
    };
    let line = match one.exit_code {
        0 => {
            format!("{GREEN}fix applied{GREEN:#} in {took}{confined}; retrying")
        }
        code => {
            format!("{YELLOW}fix failed with exit code {code}{YELLOW:#} after {took}{confined}")
        }
    };
    let more = one.side_effects.lines().into_iter();
    let more = more.map(|line| format!("\n  {}", one_line(&line, MAX_TRACE)));
    more.fold(line, |line, more| line + &more)
}

/// Returns the answers to a pending repair as command lines to copy.
pub(crate) fn answer_commands(
    repair: &str,
    short: &str,
    option: &str,
) -> impl Iterator<Item = String> {
    let network = network_flag(repair);
    let answers = [
        ("approve", "approve", ""),
        ("preview", "preview", network),
        ("reject", "reject", ""),
    ];
    let lines = answers
        .map(|(what, command, flag)| format!("{what}: unstuck {command} {short}{flag}{option}"));
    lines.into_iter()
}

/// Returns the flag that a preview of the command needs for network access; empty if not needed.
pub(crate) fn network_flag(repair: &str) -> &'static str {
    if needs_network(repair) {
        " --network"
    } else {
        ""
    }
}

/// Returns the label of the proposer.
pub(crate) fn proposer_label(by: RepairProposalOrigin) -> &'static str {
    match by {
        RepairProposalOrigin::Agent => "the agent",
        RepairProposalOrigin::Fallback => "the agent (fallback)",
        RepairProposalOrigin::Remembered => "recovery history",
        RepairProposalOrigin::Owner => "your configuration",
        RepairProposalOrigin::BuiltIn => "unstuck",
    }
}

fn approval_text(one: &RepairStarted) -> &'static str {
    match (one.source, one.is_unlisted) {
        (ApprovalSource::Auto, false) => "auto-approved",
        (ApprovalSource::Auto, true) => "not listed; on_unknown = \"allow\"",
        (ApprovalSource::Human, _) => "approved by you",
    }
}

/// Renders the conditions under which a repair would run, as labeled lines.
pub(crate) fn condition_lines(of: &RepairConfinement) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("sandbox", sanitize(&of.confinement())),
        ("network", of.network_label().to_owned()),
        ("env", sanitize(&of.variables.join(" "))),
    ];
    let effects = of.effects.iter();
    lines.extend(effects.map(|effect| ("git", effect.clone())));
    lines
}

/// Renders the outcome of a repair in one line of the history.
pub(crate) fn outcome_line(story: &RepairView) -> String {
    let command = one_line(&story.proposed.command, MAX_LINE);
    let by = proposer_label(story.proposed.by);
    let so = match (&story.failure_reason, story.exit_code, story.approved_by) {
        (Some(why), ..) => format!("did not help: {}", one_line(why, MAX_LINE)),
        (None, Some(0), _) => match story.duration_ms {
            Some(millis) => format!("ran in {}", HumanDuration(Duration::from_millis(millis))),
            None => "ran".to_owned(),
        },
        (None, Some(code), _) => format!("exit code {code}"),
        (None, None, Some(_)) => "approved".to_owned(),
        (None, None, None) => one_line(&story.proposed.reason, MAX_LINE),
    };
    let confined = match story.sandbox.as_deref() {
        None | Some("full") => String::new(),
        Some("none") => "; without a sandbox".to_owned(),
        Some(level) => format!("; in a {level} sandbox"),
    };
    let more = story.side_effects.lines().into_iter();
    let more = more.map(|line| format!("; {}", one_line(&line, MAX_TRACE)));
    let line = format!("`{command}` (by {by}): {so}{confined}");
    more.fold(line, |line, more| line + &more)
}

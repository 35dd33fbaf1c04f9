//! What is told about repairs, in the words of both screens and of the history.

use std::time::Duration;

use unstuck_core::duration::Human;
use unstuck_core::episode::RepairStory;
use unstuck_core::event::{
    ApprovalSource, Event, GuardWord, Proposer, RecoveryExecuted, RecoveryProposed,
    RecoveryStarted, RepairConditions,
};
use unstuck_core::guard::show;
use unstuck_core::repair::needs_network;

use crate::output::{BOLD, GREEN, YELLOW};
use crate::show_text::one_line;

/// How much of a command, or of a reason, is shown on one line.
const LONGEST: usize = 160;
/// How much of what a repair left is shown.
const LONGEST_TRACE: usize = 400;

/// One line for each thing that happens to a repair; none for any other event.
pub(crate) fn line(event: &Event) -> Option<String> {
    match event {
        // One that may run is told when it does.
        Event::RecoveryProposed(one) if one.verdict == GuardWord::Run => None,
        Event::RecoveryProposed(one) => Some(proposed(one)),
        Event::RecoveryRejected(one) => Some(format!(
            "{YELLOW}the agent's proposal of a repair is refused{YELLOW:#}: {}",
            one_line(&one.reason, LONGEST)
        )),
        Event::RecoveryStarted(one) => Some(format!(
            "repairing: {BOLD}{}{BOLD:#} ({})",
            one_line(&one.command, LONGEST),
            allowed(one)
        )),
        Event::RecoveryExecuted(one) => Some(executed(one)),
        Event::RecoveryFailed(one) => Some(format!(
            "{YELLOW}the repair did not help{YELLOW:#}: {}",
            one_line(&one.error, LONGEST)
        )),
        _ => None,
    }
}

fn proposed(one: &RecoveryProposed) -> String {
    let command = one_line(&one.command, LONGEST);
    let so = match one.verdict {
        GuardWord::Deny => "must not run",
        GuardWord::Ask | GuardWord::Run => "needs your word",
    };
    let why = one_line(&one.reason, LONGEST);
    let record = match one.by {
        // What is behind it there is how often it has helped.
        Proposer::Remembered => format!(" ({})", one_line(&one.root_cause, LONGEST)),
        _ => String::new(),
    };
    format!(
        "repair {} by {}{record}: {BOLD}{command}{BOLD:#} {so}: {why}",
        one.id,
        proposer(one.by)
    )
}

fn executed(one: &RecoveryExecuted) -> String {
    let took = Human(Duration::from_millis(one.duration_ms));
    let confined = match one.sandbox.as_str() {
        "full" => "",
        "partial" => ", in a partial sandbox",
        _ => ", without a sandbox",
    };
    let line = match one.exit_code {
        0 => {
            format!(
                "{GREEN}the repair ran{GREEN:#} in {took}{confined}; now what failed is tried again"
            )
        }
        code => format!(
            "{YELLOW}the repair ended with exit code {code}{YELLOW:#} after {took}{confined}"
        ),
    };
    let more = one.traces.lines().into_iter();
    let more = more.map(|line| format!("\n  {}", one_line(&line, LONGEST_TRACE)));
    more.fold(line, |line, more| line + &more)
}

/// What a person can answer to a repair that waits, as lines to copy.
pub(crate) fn answers(repair: &str, short: &str, option: &str) -> impl Iterator<Item = String> {
    let network = network_flag(repair);
    let answers = [
        ("allow it", "approve", ""),
        ("see first what it would change", "preview", network),
        ("go on without it", "reject", ""),
    ];
    let lines = answers
        .map(|(what, command, flag)| format!("{what}: unstuck {command} {short}{flag}{option}"));
    lines.into_iter()
}

/// The flag without which a preview of the command would fail; empty where it needs none.
pub(crate) fn network_flag(repair: &str) -> &'static str {
    if needs_network(repair) {
        " --network"
    } else {
        ""
    }
}

/// Who proposed it.
pub(crate) fn proposer(by: Proposer) -> &'static str {
    match by {
        Proposer::Agent => "the agent",
        Proposer::Fallback => "the agent, as a second way",
        Proposer::Remembered => "what has helped here before",
        Proposer::Owner => "your list",
        Proposer::BuiltIn => "unstuck",
    }
}

fn allowed(one: &RecoveryStarted) -> &'static str {
    match (one.source, one.unlisted) {
        (ApprovalSource::Auto, false) => "it stands in your auto_approve",
        (ApprovalSource::Auto, true) => "nobody listed it; on_unknown is allow",
        (ApprovalSource::Human, _) => "you allowed it",
    }
}

/// Under which conditions a repair would run, as lines with a name each.
pub(crate) fn conditions(of: &RepairConditions) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("sandbox", show(&of.confinement())),
        ("network", of.network_word().to_owned()),
        ("sees", show(&of.variables.join(" "))),
    ];
    let effects = of.effects.iter();
    lines.extend(effects.map(|effect| ("git", effect.clone())));
    lines
}

/// What came of a repair, in one line of the history.
pub(crate) fn outcome(story: &RepairStory) -> String {
    let command = one_line(&story.proposed.command, LONGEST);
    let by = proposer(story.proposed.by);
    let so = match (&story.failed, story.exit_code, story.approved) {
        (Some(why), ..) => format!("did not help: {}", one_line(why, LONGEST)),
        (None, Some(0), _) => match story.duration_ms {
            Some(millis) => format!("ran in {}", Human(Duration::from_millis(millis))),
            None => "ran".to_owned(),
        },
        (None, Some(code), _) => format!("exit code {code}"),
        (None, None, Some(_)) => "allowed".to_owned(),
        (None, None, None) => one_line(&story.proposed.reason, LONGEST),
    };
    let confined = match story.sandbox.as_deref() {
        None | Some("full") => String::new(),
        Some("none") => "; without a sandbox".to_owned(),
        Some(level) => format!("; in a {level} sandbox"),
    };
    let more = story.traces.lines().into_iter();
    let more = more.map(|line| format!("; {}", one_line(&line, LONGEST_TRACE)));
    let line = format!("`{command}` (by {by}): {so}{confined}");
    more.fold(line, |line, more| line + &more)
}

//! May this command run? The steps in order; each but the lists can only make the verdict stricter.

use super::approved::Approved;
use super::characters::trimmed;
use super::fields::check_command;
use super::plain::why_not_plain;
use super::require_human::Line;
use super::rules::{OnUnknown, Rules};
use super::show::{show, show_command};
use super::verdict::{AskWhy, Effect, Judgement, Place, Standing, Step, Verdict};
use crate::duration::Human;
use crate::nearest;

/// Longer texts are not looked at for slips.
const LONGEST_NEAR_MISS: usize = 200;

/// Judges one command by the owner's rules. Nothing else decides: no confidence, no diagnosis, no other command.
pub fn judge(rules: &Rules, command: &str, place: &Place, standing: &Standing) -> Judgement {
    if let Err(error) = check_command(command, "command") {
        return Judgement::rejected(error.rule(), error.to_string());
    }
    let command = trimmed(command);
    let mut steps = vec![text(command), folder(place), switch(rules)];
    steps.extend(trust(standing));
    steps.push(lists(rules, command));
    steps.push(limit(rules, standing));
    steps.push(cooldown(standing));
    steps.push(guard_files(standing));
    steps.extend(sandbox(standing));
    let mut judgement = Judgement::of(steps);
    // Whoever wonders why an entry of their own does not count reads this line first.
    if let (Verdict::Ask(_) | Verdict::Deny, Some(told)) = (&judgement.verdict, trust(standing)) {
        judgement.reason = format!("{}; {}", judgement.reason, told.says);
    }
    judgement
}

fn step(rule: &'static str, about: &'static str, effect: Effect, says: impl Into<String>) -> Step {
    Step {
        rule,
        about,
        effect,
        says: says.into(),
    }
}

fn text(command: &str) -> Step {
    let mut says = "every character of it can be seen".to_owned();
    if !command.is_ascii() {
        says.push_str(", but some are beyond ASCII and may look like others");
    }
    step("R2", "text", Effect::Passes, says)
}

fn folder(place: &Place) -> Step {
    match place {
        Place::Ordinary => step(
            "R6",
            "folder",
            Effect::Passes,
            "the folder is inside the project",
        ),
        Place::Protected(part) => {
            let says = format!("no approval counts inside {}", show(part));
            step(
                "R6",
                "folder",
                Effect::Asks(AskWhy::ProtectedFolder(part.clone())),
                says,
            )
        }
    }
}

fn switch(rules: &Rules) -> Step {
    if rules.enabled {
        step("R10", "switch", Effect::Passes, "repairs are switched on")
    } else {
        step(
            "R10",
            "switch",
            Effect::Denies,
            "repairs are switched off: recovery.enabled is false",
        )
    }
}

fn trust(standing: &Standing) -> Option<Step> {
    let config = show(standing.untrusted.as_deref()?);
    let says = format!("approvals in {config} are ignored: not trusted yet (run `unstuck trust`)");
    Some(step("trust", "config", Effect::Passes, says))
}

/// The owner's lists, and what is to happen to a command that is in none.
fn lists(rules: &Rules, command: &str) -> Step {
    let is_command = |entry: &&String| trimmed(entry) == command;
    if let Some(entry) = rules.auto_approve.iter().find(is_command) {
        if rules.require_human.iter().any(|entry| is_command(&entry)) {
            let says = "it stands in auto_approve and in require_human: a person decides";
            return step("R5", "lists", Effect::Asks(AskWhy::BothLists), says);
        }
        let says = "it is, byte for byte, an entry of auto_approve";
        return step(
            "R4",
            "lists",
            Effect::Approves(Approved::listed(entry)),
            says,
        );
    }
    let line = Line::new(command);
    if let Some(pattern) = rules.require_human.iter().find(|entry| line.fits(entry)) {
        let says = format!(
            "`{}` of require_human covers it",
            show_command(trimmed(pattern))
        );
        let why = AskWhy::RequireHuman(trimmed(pattern).to_owned());
        return step("R5", "lists", Effect::Asks(why), says);
    }
    unknown(rules, command)
}

fn unknown(rules: &Rules, command: &str) -> Step {
    let mut unknown = "no entry of auto_approve is this very text".to_owned();
    if let Some(near) = near_miss(rules, command) {
        unknown = format!("{unknown} (the nearest is `{}`)", show_command(near));
    }
    match rules.on_unknown {
        OnUnknown::Escalate => step(
            "R5",
            "lists",
            Effect::Asks(AskWhy::Unknown),
            format!("{unknown}, and on_unknown is escalate"),
        ),
        OnUnknown::Deny => step(
            "R5",
            "lists",
            Effect::Denies,
            format!("{unknown}, and on_unknown is deny"),
        ),
        OnUnknown::Allow => match why_not_plain(command) {
            None => {
                let says = "on_unknown is allow, and it is a plain command";
                step(
                    "R8",
                    "lists",
                    Effect::Approves(Approved::allowed(command)),
                    says,
                )
            }
            Some(why) => {
                let says = format!("on_unknown is allow, but only for plain commands: {why}");
                step("R8", "lists", Effect::Asks(AskWhy::NotPlain(why)), says)
            }
        },
    }
}

/// The entry that may have been meant. To tell it approves nothing.
fn near_miss<'r>(rules: &'r Rules, command: &str) -> Option<&'r str> {
    if command.len() > LONGEST_NEAR_MISS {
        return None;
    }
    let entries = rules.auto_approve.iter().map(|entry| trimmed(entry));
    let short = entries.filter(|entry| entry.len() <= LONGEST_NEAR_MISS);
    nearest(command, short.map(|entry| (entry, entry)))
}

fn limit(rules: &Rules, standing: &Standing) -> Step {
    let (ran, most) = (standing.auto_this_run, rules.max_auto_recoveries_per_run);
    let says = format!("{ran} of at most {most} repairs ran by themselves in this run");
    if ran < most {
        step("R10", "limit", Effect::Passes, says)
    } else {
        step("R10", "limit", Effect::Asks(AskWhy::LimitReached), says)
    }
}

fn cooldown(standing: &Standing) -> Step {
    match standing.cooling.filter(|left| !left.is_zero()) {
        None => step(
            "R10",
            "cooldown",
            Effect::Passes,
            "the last repair is long enough ago",
        ),
        Some(left) => {
            let says = format!("the next repair may run by itself in {}", Human(left));
            step("R10", "cooldown", Effect::Asks(AskWhy::Cooling(left)), says)
        }
    }
}

/// Less than the whole sandbox is for a person to accept, or for the owner's own file.
fn sandbox(standing: &Standing) -> Option<Step> {
    let missing = standing.incomplete_sandbox.as_ref()?;
    let says = format!(
        "the sandbox is not complete here ({}); `sandbox = \"best-effort\"` in your own configuration accepts that",
        show(missing)
    );
    let why = AskWhy::Sandbox(missing.clone());
    Some(step("sandbox", "sandbox", Effect::Asks(why), says))
}

fn guard_files(standing: &Standing) -> Step {
    let changed = &standing.changed_guard_files;
    if changed.is_empty() {
        return step(
            "guard files",
            "files",
            Effect::Passes,
            "no file that decides what it does has changed",
        );
    }
    let names: Vec<_> = changed.iter().map(|name| show(name)).collect();
    let says = format!("{} decides what it does, and has changed", names.join(", "));
    step(
        "guard files",
        "files",
        Effect::Asks(AskWhy::GuardFiles(changed.clone())),
        says,
    )
}

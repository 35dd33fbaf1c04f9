//! Status badges: a word, an icon and a color, never the color alone.

use maud::{Markup, html};
use unstuck_core::views::RunStatus;

use super::icon::Icon;

/// Renders a badge.
pub(crate) fn badge(class: &str, icon: Icon, word: &str) -> Markup {
    html! {
        span class={ "pill " (class) } { (icon.render()) (word) }
    }
}

/// Renders the status of a run or session.
pub(crate) fn status_badge(status: RunStatus) -> Markup {
    let (class, icon) = match status {
        RunStatus::Running => ("is-busy", Icon::Running),
        RunStatus::Waiting => ("is-wait", Icon::Clock),
        RunStatus::AwaitingHuman => ("is-human", Icon::Person),
        RunStatus::Succeeded => ("is-ok", Icon::Check),
        RunStatus::Recovered => ("is-ok", Icon::Recovered),
        RunStatus::Failed => ("is-bad", Icon::Cross),
        RunStatus::Interrupted => ("is-gone", Icon::Stopped),
        RunStatus::Crashed => ("is-bad", Icon::Stopped),
    };
    badge(class, icon, status_label(status))
}

/// Returns the display name of a status.
pub(crate) const fn status_label(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "Running",
        RunStatus::Waiting => "Waiting",
        RunStatus::AwaitingHuman => "Needs your input",
        RunStatus::Succeeded => "Succeeded",
        RunStatus::Recovered => "Recovered",
        RunStatus::Failed => "Failed",
        RunStatus::Interrupted => "Interrupted",
        RunStatus::Crashed => "Crashed",
    }
}

/// Renders the outcome of an attempt from its wire name.
pub(crate) fn outcome_badge(name: &str) -> Markup {
    match name {
        "running" => badge("is-busy", Icon::Running, "Running"),
        "succeeded" => badge("is-ok", Icon::Check, "Succeeded"),
        "interrupted" => badge("is-gone", Icon::Stopped, "Interrupted"),
        _ => badge("is-bad", Icon::Cross, "Failed"),
    }
}

/// Returns the display name of an escalation kind.
pub(crate) fn escalation_kind_label(name: &str) -> &'static str {
    match name {
        "recovery_approval_required" => "Repair needs approval",
        "cost_confirmation" => "Cost needs approval",
        "stuck" => "Stuck in a loop",
        _ => "Blocked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_distinct_label_besides_its_color() {
        let words: std::collections::BTreeSet<_> = RunStatus::ALL.map(status_label).into();
        assert_eq!(words.len(), RunStatus::ALL.len());
        for one in RunStatus::ALL {
            assert!(
                status_badge(one)
                    .into_string()
                    .ends_with(&format!("{}</span>", status_label(one)))
            );
        }
    }
}

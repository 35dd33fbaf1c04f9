//! How something stands: a word, an icon and a colour, never the colour alone.

use maud::{Markup, html};
use unstuck_core::episode::Status;

use super::icon::Icon;

/// A pill with a word.
pub(crate) fn pill(class: &str, icon: Icon, word: &str) -> Markup {
    html! {
        span class={ "pill " (class) } { (icon.drawn()) (word) }
    }
}

/// Where a run or a session stands.
pub(crate) fn status(status: Status) -> Markup {
    let (class, icon) = match status {
        Status::Running => ("is-busy", Icon::Turning),
        Status::Waiting => ("is-wait", Icon::Clock),
        Status::AwaitingHuman => ("is-human", Icon::Person),
        Status::Succeeded => ("is-ok", Icon::Check),
        Status::Recovered => ("is-ok", Icon::Again),
        Status::Failed => ("is-bad", Icon::Cross),
        Status::Interrupted => ("is-gone", Icon::Stopped),
        Status::Crashed => ("is-bad", Icon::Stopped),
    };
    pill(class, icon, status_word(status))
}

/// Where a run stands, in words for a person.
pub(crate) const fn status_word(status: Status) -> &'static str {
    match status {
        Status::Running => "Running",
        Status::Waiting => "Waiting",
        Status::AwaitingHuman => "Needs you",
        Status::Succeeded => "Succeeded",
        Status::Recovered => "Recovered",
        Status::Failed => "Failed",
        Status::Interrupted => "Stopped",
        Status::Crashed => "Crashed",
    }
}

/// What came of an attempt, by its name on the wire.
pub(crate) fn outcome(name: &str) -> Markup {
    match name {
        "running" => pill("is-busy", Icon::Turning, "Running"),
        "succeeded" => pill("is-ok", Icon::Check, "Succeeded"),
        "interrupted" => pill("is-gone", Icon::Stopped, "Cut off"),
        _ => pill("is-bad", Icon::Cross, "Failed"),
    }
}

/// What kind of question it is, in words for a person.
pub(crate) fn question(name: &str) -> &'static str {
    match name {
        "recovery_approval_required" => "Wants to run a repair",
        "cost_confirmation" => "Wants to spend money",
        "stuck" => "Goes in circles",
        _ => "Cannot go on alone",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_word_of_its_own_beside_its_colour() {
        let words: std::collections::BTreeSet<_> = Status::ALL.map(status_word).into();
        assert_eq!(words.len(), Status::ALL.len());
        for one in Status::ALL {
            assert!(
                status(one)
                    .into_string()
                    .ends_with(&format!("{}</span>", status_word(one)))
            );
        }
    }
}

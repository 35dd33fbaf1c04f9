//! How something stands: a word, an icon and a colour, never the colour alone.

use maud::{Markup, html};
use unstuck_core::episode::{AttemptOutcome, Status};
use unstuck_core::event::EscalationKind;

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
    }
}

/// What came of an attempt.
pub(crate) fn outcome(outcome: AttemptOutcome) -> Markup {
    match outcome {
        AttemptOutcome::Running => pill("is-busy", Icon::Turning, "Running"),
        AttemptOutcome::Succeeded => pill("is-ok", Icon::Check, "Succeeded"),
        AttemptOutcome::Failed => pill("is-bad", Icon::Cross, "Failed"),
        AttemptOutcome::Interrupted => pill("is-gone", Icon::Stopped, "Cut off"),
    }
}

/// What kind of question it is, in words for a person.
pub(crate) const fn question_word(kind: EscalationKind) -> &'static str {
    match kind {
        EscalationKind::Hiccup => "Cannot go on alone",
        EscalationKind::RecoveryApprovalRequired => "Wants to run a repair",
        EscalationKind::CostConfirmation => "Wants to spend money",
        EscalationKind::Stuck => "Goes in circles",
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
            assert!(status(one).into_string().ends_with(&format!("{}</span>", status_word(one))));
        }
    }
}

//! Buttons and dialogs, and who may use them.

use maud::{Markup, html};

/// What whoever looks at a page may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Permissions {
    /// Answer questions, retry, stop.
    pub(crate) can_answer: bool,
    /// Change policies and settings.
    pub(crate) can_change: bool,
}

impl Permissions {
    /// Why a button that answers does nothing; none where it works.
    pub(crate) fn answer_refusal(self) -> Option<&'static str> {
        (!self.can_answer)
            .then_some("You can only read. Open the link that `unstuck serve` prints.")
    }

    /// Why a button that changes something does nothing; none where it works.
    pub(crate) fn change_refusal(self) -> Option<&'static str> {
        (!self.can_change)
            .then_some("Only an admin can change this. Open the link that `unstuck serve` prints.")
    }
}

/// A button, or why there is none to press.
pub(crate) fn button(class: &str, kind: &str, refused: Option<&str>, words: Markup) -> Markup {
    html! {
        button type=(kind) class=(class) disabled[refused.is_some()] title=[refused] { (words) }
    }
}

/// A button that opens a dialog.
pub(crate) fn dialog_button(
    class: &str,
    dialog: &str,
    refused: Option<&str>,
    words: &str,
) -> Markup {
    html! {
        button type="button" id={ "open-" (dialog) } class=(class) data-dialog=(dialog) disabled[refused.is_some()] title=[refused] aria-haspopup="dialog" { (words) }
    }
}

/// A dialog whose content is fetched when it is opened.
pub(crate) fn dialog(id: &str, title: &str, part: &str) -> Markup {
    html! {
        dialog id=(id) aria-labelledby={ (id) "-title" } {
            div class="inside" {
                h2 id={ (id) "-title" } { (title) }
                div data-load=(part) { p class="dim" { "Loading…" } }
            }
        }
    }
}

/// A dialog whose content is worked out when it is opened: not by looking, but by doing something.
pub(crate) fn action_dialog(id: &str, title: &str, path: &str) -> Markup {
    html! {
        dialog id=(id) aria-labelledby={ (id) "-title" } {
            div class="inside" {
                h2 id={ (id) "-title" } { (title) }
                div data-load=(id) data-post=(path) { p class="dim" { "Trying it on a copy…" } }
            }
        }
    }
}

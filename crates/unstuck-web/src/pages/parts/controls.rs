//! Buttons and dialogs, enabled by permission.

use maud::{Markup, html};

/// The permissions of the viewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Permissions {
    /// May answer, retry and stop.
    pub(crate) can_answer: bool,
    /// May change policies and settings.
    pub(crate) can_change: bool,
}

impl Permissions {
    /// Returns why answering is not allowed, or `None` if it is.
    pub(crate) fn answer_refusal(self) -> Option<&'static str> {
        (!self.can_answer).then_some("Read-only access. Open the link printed by `unstuck serve`.")
    }

    /// Returns why changing settings is not allowed, or `None` if it is.
    pub(crate) fn change_refusal(self) -> Option<&'static str> {
        (!self.can_change)
            .then_some("Requires the admin scope. Open the link printed by `unstuck serve`.")
    }
}

/// Renders a button, disabled with the reason if refused.
pub(crate) fn button(class: &str, kind: &str, refused: Option<&str>, words: Markup) -> Markup {
    html! {
        button type=(kind) class=(class) disabled[refused.is_some()] title=[refused] { (words) }
    }
}

/// Renders a button that opens a dialog.
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

/// Renders a dialog whose content is loaded when it opens.
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

/// Renders a dialog whose content is loaded with a POST request when it opens, because that runs something.
pub(crate) fn action_dialog(id: &str, title: &str, path: &str) -> Markup {
    html! {
        dialog id=(id) aria-labelledby={ (id) "-title" } {
            div class="inside" {
                h2 id={ (id) "-title" } { (title) }
                div data-load=(id) data-post=(path) {
                    p class="dim" { "Running on a copy… " span data-elapsed {} }
                    div class="row" { button type="button" data-close { "Cancel" } }
                }
            }
        }
    }
}

//! Placeholder for empty lists, with the command that fills them.

use maud::{Markup, html};

/// Renders an empty list with the next step.
pub(crate) fn empty_state(what: &str, next: &str, command: Option<&str>) -> Markup {
    html! {
        div class="empty" {
            strong { (what) }
            span { (next) }
            @if let Some(command) = command { code { (command) } }
        }
    }
}

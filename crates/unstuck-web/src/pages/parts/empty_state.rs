//! What is shown where there is nothing yet: what would be here, and which command makes it so.

use maud::{Markup, html};

/// Nothing is there, and that is what can be done about it.
pub(crate) fn empty_state(what: &str, next: &str, command: Option<&str>) -> Markup {
    html! {
        div class="empty" {
            strong { (what) }
            span { (next) }
            @if let Some(command) = command { code { (command) } }
        }
    }
}

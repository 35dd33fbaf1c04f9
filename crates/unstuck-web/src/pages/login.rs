//! Logging in by the link that the program prints, and pages that are not there.

use maud::{Markup, html};

use super::layout::{self, Frame, Place};

/// Where the link leads: the script exchanges the code in its fragment.
pub(crate) fn page(frame: &Frame) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Log in" } } }
        div class="card stack" {
            p { "The link that " code { "unstuck serve" } " prints brings you here with a code that works once, for ten minutes." }
            p id="login-says" class="says" role="alert" {}
            p class="dim" { "Reading needs no login on this machine." }
            p { a class="button" href="/" { "Go on and read" } }
        }
    };
    layout::page(frame, Place::Elsewhere, "Log in", body)
}

/// Something that is not there, or cannot be shown.
pub(crate) fn trouble(frame: &Frame, title: &str, detail: &str) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { (title) } } }
        div class="card stack" {
            p { (super::parts::text::one_line(detail, 600)) }
            p class="actions" { a class="button" href="/" { "What goes on now" } a class="button" href="/runs" { "All runs" } }
        }
    };
    layout::page(frame, Place::Elsewhere, title, body)
}

//! Logging in by the link that the program prints, and pages that are not there.

use maud::{Markup, html};

use super::layout::{self, NavItem, PageFrame};

/// Where somebody goes back to: a path of this server, and nothing that a browser would take for another one.
pub(crate) fn safe_return_path(asked: &str) -> &str {
    let is_path = asked.starts_with('/') && !asked.starts_with("//");
    let is_plain = !asked.contains(['\\', '\n', '\r', '\t']);
    if is_path && is_plain && !asked.starts_with("/login") {
        asked
    } else {
        "/"
    }
}

/// Where the link leads: the script exchanges the code in its fragment.
pub(crate) fn page(frame: &PageFrame, back: &str) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Log in" } } }
        div class="cards" {
        div class="card stack" {
            p { "The link that " code { "unstuck serve" } " prints brings you here with a code that works once, for ten minutes." }
            p { "A new link for a server that runs: " code { "unstuck token link" } }
            p id="login-says" class="says" role="alert" {}
        }
        // Without script nothing is sent by the address, where a token would be kept.
        form id="login" class="card stack" method="post" action="/login" data-api="/api/login" data-keeps="key" data-goto=(back) data-done="Logged in." {
            div class="field" {
                label for="code" { "Or log in with a token" }
                input id="code" name="code" type="password" autocomplete="off" required maxlength="200" aria-describedby="code-hint";
                p id="code-hint" class="hint" { code { "unstuck token create --scope answer" } " makes one." }
            }
            p class="says" role="alert" {}
            div class="row" { button type="submit" class="primary" { "Log in" } a class="button" href=(back) { "Only read" } span class="small dim" { "Reading needs no login on this machine." } }
        }
        }
    };
    layout::page(frame, NavItem::Unlisted, "Log in", body)
}

/// Something that is not there, or cannot be shown.
pub(crate) fn error_page(frame: &PageFrame, title: &str, detail: &str) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { (title) } } }
        div class="card stack" {
            p { (super::parts::text::one_line(detail, 600)) }
            p class="actions" { a class="button" href="/" { "What goes on now" } a class="button" href="/runs" { "All runs" } }
        }
    };
    layout::page(frame, NavItem::Unlisted, title, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_logs_in_goes_back_to_a_page_of_this_server_only() {
        for path in ["/sessions/k3v9-1", "/runs?status=failed"] {
            assert_eq!(safe_return_path(path), path);
        }
        let elsewhere = [
            "",
            "//evil.example",
            "https://evil.example",
            "/\\evil",
            "/login",
            "runs",
        ];
        for path in elsewhere {
            assert_eq!(safe_return_path(path), "/", "{path}");
        }
    }
}

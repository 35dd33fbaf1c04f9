//! The login page and error pages.

use maud::{Markup, html};

use super::layout::{self, NavItem, PageFrame};

/// Returns the path to go back to after the login: only a path of this server, and nothing a browser could read as
/// another host.
pub(crate) fn safe_return_path(asked: &str) -> &str {
    let is_path = asked.starts_with('/') && !asked.starts_with("//");
    let is_plain = !asked.contains(['\\', '\n', '\r', '\t']);
    if is_path && is_plain && !asked.starts_with("/login") {
        asked
    } else {
        "/"
    }
}

/// Renders the login page; its script exchanges the code in the URL fragment.
pub(crate) fn page(frame: &PageFrame, back: &str) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Log in" } } }
        div class="cards" {
        div class="card stack" {
            p { "The link printed by " code { "unstuck serve" } " logs you in. Its code works once and expires after 10 minutes." }
            p { "To get a new link for a running server, run " code { "unstuck token link" } "." }
            p id="login-says" class="says" role="alert" {}
        }
        // Without the script nothing is sent in the URL, where a token would be recorded.
        form id="login" class="card stack" method="post" action="/login" data-api="/api/login" data-keeps="key" data-goto=(back) data-done="Logged in." {
            div class="field" {
                label for="code" { "Or log in with a token" }
                input id="code" name="code" type="password" autocomplete="off" required maxlength="200" aria-describedby="code-hint";
                p id="code-hint" class="hint" { "Create one with " code { "unstuck token create --scope answer" } "." }
            }
            p class="says" role="alert" {}
            div class="row" { button type="submit" class="primary" { "Log in" } a class="button" href=(back) { "Continue read-only" } span class="small dim" { "Read access from this machine requires no login." } }
        }
        }
    };
    layout::page(frame, NavItem::Unlisted, "Log in", body)
}

/// Renders an error page.
pub(crate) fn error_page(frame: &PageFrame, title: &str, detail: &str) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { (title) } } }
        div class="card stack" {
            p { (super::parts::sanitized_text::one_line(detail, 600)) }
            p class="actions" { a class="button" href="/" { "Overview" } a class="button" href="/runs" { "All runs" } }
        }
    };
    layout::page(frame, NavItem::Unlisted, title, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_returns_only_to_paths_of_this_server() {
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

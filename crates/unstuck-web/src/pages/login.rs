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
            p { "The link that " code { "unstuck serve" } " prints brings you here with a code that works once, for ten minutes." }
            p { "A new link for a server that runs: " code { "unstuck token link" } }
            p id="login-says" class="says" role="alert" {}
        }
        // Without the script nothing is sent in the URL, where a token would be recorded.
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

/// Renders an error page.
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

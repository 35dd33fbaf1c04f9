//! The layout of every page: navigation, connection status and messages.

use maud::{DOCTYPE, Markup, html};
use unstuck_core::Timestamp;
use unstuck_core::event::Event;

use super::assets;
use super::parts::controls::Permissions;
use super::parts::icon::{self, Icon};
use super::parts::{money, time};
use crate::auth::RejectedTokenReport;

/// An entry of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavItem {
    /// Overview.
    Overview,
    /// Inbox.
    Inbox,
    /// Runs, and a single run.
    Runs,
    /// Failures.
    Failures,
    /// Policies.
    Policies,
    /// Settings.
    Settings,
    /// A page outside the navigation.
    Unlisted,
}

const NAV_ITEMS: [(NavItem, &str, &str, Icon); 6] = [
    (NavItem::Overview, "/", "Overview", Icon::Overview),
    (NavItem::Inbox, "/inbox", "Inbox", Icon::Inbox),
    (NavItem::Runs, "/runs", "Runs", Icon::Runs),
    (NavItem::Failures, "/failures", "Failures", Icon::Failures),
    (NavItem::Policies, "/policies", "Policies", Icon::Policies),
    (NavItem::Settings, "/settings", "Settings", Icon::Settings),
];

/// Data that all pages share.
#[derive(Debug, Clone)]
pub(crate) struct PageFrame {
    /// Current time.
    pub(crate) now: Timestamp,
    /// Number of pending escalations.
    pub(crate) open_escalations: usize,
    /// Permissions of the viewer.
    pub(crate) permissions: Permissions,
    /// True if the viewer is logged in.
    pub(crate) is_logged_in: bool,
    /// True if the viewer's login has ended.
    pub(crate) login_ended: bool,
    /// Address that keeps sending invalid tokens, if any.
    pub(crate) rejected: Option<RejectedTokenReport>,
    /// Path of the event stream; `None` if the page is not live.
    pub(crate) stream: Option<String>,
}

/// Renders a whole page.
pub(crate) fn page(frame: &PageFrame, place: NavItem, title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-now=[frame.stream.as_ref().map(|_| frame.now.millis())] data-stream=[frame.stream.as_deref()] data-events=(Event::NAMES.join(" ")) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) " · unstuck" }
                link rel="icon" type="image/svg+xml" href=(assets::logo_path());
                link rel="stylesheet" href=(assets::stylesheet_path());
                script src=(assets::script_path()) defer {}
            }
            body {
                a class="skip" href="#main" { "Skip to content" }
                div class="frame" {
                    (navigation(frame, place))
                    main id="main" tabindex="-1" {
                        noscript { p class="banner" { "JavaScript is disabled: pages are read-only and do not update automatically, and times are in UTC." } }
                        @if place != NavItem::Unlisted { (banner(frame)) }
                        (body)
                    }
                }
                div id="news" class="news" role="status" aria-live="polite" {}
            }
        }
    }
}

fn navigation(frame: &PageFrame, place: NavItem) -> Markup {
    html! {
        header class="side" {
            a class="brand" href="/" { (icon::logo()) "unstuck" }
            nav class="nav" aria-label="Pages" {
                ul {
                    @for (one, href, name, icon) in NAV_ITEMS {
                        li {
                            a href=(href) aria-current=[(one == place).then_some("page")] {
                                (icon.render()) span { (name) }
                                @if one == NavItem::Inbox { (open_count(frame.open_escalations)) }
                            }
                        }
                    }
                }
            }
            div class="side-foot" {
                p id="live" class="live" role="status" data-state="still" { "Not live" }
                @if frame.is_logged_in { form id="logout" data-api="/api/logout" data-forgets="key" data-goto="/login" { button type="submit" class="plain" { "Log out" } } }
                p class="version" { "unstuck " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
}

/// Renders the number of pending escalations; the script keeps it up to date.
pub(crate) fn open_count(open: usize) -> Markup {
    html! {
        span data-part="open-count" data-about="recovery_escalated recovery_resolved run_finished run_resumed" data-open-questions=(open) {
            @if open > 0 {
                span class="count" { (open) span class="hidden-visually" { " pending" } }
            }
        }
    }
}

/// Renders the banner with what the viewer cannot do and why; the script keeps it up to date and adds the way back to
/// the page.
pub(crate) fn banner(frame: &PageFrame) -> Markup {
    html! {
        div data-part="banner" data-about="run_started" data-quietly {
            @if frame.login_ended {
                p class="banner" role="alert" { span { "Your login has expired. Access is read-only until you " a href="/login" data-login { "log in" } " again." } }
            } @else if !frame.permissions.can_answer {
                p class="banner" { span { "Read-only access. To answer requests or change settings, open the link printed by " code { "unstuck serve" } ", or " a href="/login" data-login { "log in" } "." } }
            }
            @if let Some(rejected) = &frame.rejected { (rejected_tokens(rejected, frame.now)) }
        }
    }
}

/// Renders the warning about repeated invalid tokens. They lock nobody out but should be investigated.
fn rejected_tokens(rejected: &RejectedTokenReport, now: Timestamp) -> Markup {
    html! {
        p class="banner" { span {
            (money::pluralize(rejected.count, "request")) " with an invalid token"
            @if let Some(address) = rejected.address { " from " (address) @if address.is_loopback() { " (this machine)" } }
            " in the last " (time::since(rejected.first, now)) ", most recently " (time::ago(rejected.last, now))
            ". All were rejected; other clients are not affected. If the program is yours, give it a valid token: "
            code { "unstuck token list" } " lists them."
        } }
    }
}

/// Renders the breadcrumbs above the title.
pub(crate) fn breadcrumbs(way: &[(&str, &str)]) -> Markup {
    html! {
        nav class="crumbs" aria-label="Breadcrumbs" {
            ol { @for (href, name) in way { li { a href=(href) { (name) } } } }
        }
    }
}

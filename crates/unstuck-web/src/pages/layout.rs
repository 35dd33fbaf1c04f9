//! What stands around every page: the navigation, whether it is live, and where news is told.

use maud::{DOCTYPE, Markup, html};
use unstuck_core::Timestamp;
use unstuck_core::event::Event;

use super::assets;
use super::parts::controls::May;
use super::parts::icon::{self, Icon};
use super::parts::{money, time};
use crate::guard::RejectedTokens;

/// A page of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// What goes on now.
    Now,
    /// Questions.
    Inbox,
    /// Runs, and one run.
    Runs,
    /// Failures.
    Failures,
    /// Policies.
    Policies,
    /// Settings.
    Settings,
    /// None of them.
    Elsewhere,
}

const PLACES: [(Place, &str, &str, Icon); 6] = [
    (Place::Now, "/", "Now", Icon::Now),
    (Place::Inbox, "/inbox", "Inbox", Icon::Inbox),
    (Place::Runs, "/runs", "Runs", Icon::Runs),
    (Place::Failures, "/failures", "Failures", Icon::Failures),
    (Place::Policies, "/policies", "Policies", Icon::Policies),
    (Place::Settings, "/settings", "Settings", Icon::Settings),
];

/// What is the same on all pages, as it is at this moment.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// The present moment.
    pub(crate) now: Timestamp,
    /// How many questions wait.
    pub(crate) open: usize,
    /// What whoever looks may do.
    pub(crate) may: May,
    /// Whether they have logged in.
    pub(crate) known: bool,
    /// Whether they had logged in, and that login has ended.
    pub(crate) login_ended: bool,
    /// The address that sends wrong tokens without end, if one does.
    pub(crate) rejected: Option<RejectedTokens>,
    /// Where events can be heard; none where a page is not live.
    pub(crate) stream: Option<String>,
}

/// A whole page.
pub(crate) fn page(frame: &Frame, place: Place, title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-now=[frame.stream.as_ref().map(|_| frame.now.millis())] data-stream=[frame.stream.as_deref()] data-events=(Event::NAMES.join(" ")) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) " · unstuck" }
                link rel="icon" type="image/svg+xml" href=(assets::sign());
                link rel="stylesheet" href=(assets::sheet());
                script src=(assets::script()) defer {}
            }
            body {
                a class="skip" href="#main" { "Skip to the page" }
                div class="frame" {
                    (side(frame, place))
                    main id="main" tabindex="-1" {
                        noscript { p class="banner" { "Script is off: you can read everything, but not answer, nothing updates by itself, and times are in UTC." } }
                        @if place != Place::Elsewhere { (banner(frame)) }
                        (body)
                    }
                }
                div id="news" class="news" role="status" aria-live="polite" {}
            }
        }
    }
}

fn side(frame: &Frame, place: Place) -> Markup {
    html! {
        header class="side" {
            a class="brand" href="/" { (icon::sign()) "unstuck" }
            nav class="nav" aria-label="Pages" {
                ul {
                    @for (one, href, name, icon) in PLACES {
                        li {
                            a href=(href) aria-current=[(one == place).then_some("page")] {
                                (icon.drawn()) span { (name) }
                                @if one == Place::Inbox { (open_count(frame.open)) }
                            }
                        }
                    }
                }
            }
            div class="side-foot" {
                p id="live" class="live" role="status" data-state="still" { "Not live" }
                @if frame.known { form id="logout" data-api="/api/logout" data-forgets="key" data-goto="/login" { button type="submit" class="plain" { "Log out" } } }
                p class="version" { "unstuck " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
}

/// How many questions wait; the script keeps it up to date.
pub(crate) fn open_count(open: usize) -> Markup {
    html! {
        span data-part="open-count" data-about="recovery_escalated recovery_resolved run_finished run_resumed" data-open-questions=(open) {
            @if open > 0 {
                span class="count" { (open) span class="hidden-visually" { " waiting" } }
            }
        }
    }
}

/// What whoever looks cannot do, and why; the script keeps it up to date, and adds the way back to the page.
pub(crate) fn banner(frame: &Frame) -> Markup {
    html! {
        div data-part="banner" data-about="run_started" data-quietly {
            @if frame.login_ended {
                p class="banner" role="alert" { span { "Your login has ended. You can only read until you " a href="/login" data-login { "log in" } " again." } }
            } @else if !frame.may.answer {
                p class="banner" { span { "You can only read. To answer and to change things, open the link that " code { "unstuck serve" } " prints, or " a href="/login" data-login { "log in" } "." } }
            }
            @if let Some(rejected) = &frame.rejected { (rejected_tokens(rejected, frame.now)) }
        }
    }
}

/// Somebody keeps trying tokens that are not valid: it locks nobody out, but somebody should look into it.
fn rejected_tokens(rejected: &RejectedTokens, now: Timestamp) -> Markup {
    html! {
        p class="banner" { span {
            (money::counted(rejected.count, "request")) " with a wrong token"
            @if let Some(address) = rejected.address { " from " (address) @if address.is_loopback() { " (this machine)" } }
            " for " (time::since(rejected.first, now)) ", the last " (time::ago(rejected.last, now))
            ". They were all rejected, and nobody else is affected. If it is a program of yours, give it a valid token: "
            code { "unstuck token list" } " shows which there are."
        } }
    }
}

/// Where a page stands, above its title.
pub(crate) fn crumbs(way: &[(&str, &str)]) -> Markup {
    html! {
        nav class="crumbs" aria-label="Where this is" {
            ol { @for (href, name) in way { li { a href=(href) { (name) } } } }
        }
    }
}

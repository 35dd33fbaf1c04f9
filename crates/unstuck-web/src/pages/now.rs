//! Now: what needs a person, what goes on, and how the upstreams are.

use maud::{Markup, html};

use super::chart;
use super::layout::{self, Frame, Place};
use super::parts::{empty, lanes, money, question, session};
use crate::model::{Escalation, Lane, Run, Session, Spending};
use crate::reading::Counts;

/// What the page shows.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    /// What is the same on all pages.
    pub(crate) frame: Frame,
    /// The questions that wait, the newest first.
    pub(crate) questions: Vec<Escalation>,
    /// The sessions that run, wait or need a person; of so many runs as fit.
    pub(crate) sessions: Vec<Session>,
    /// How many runs stand where, all of them.
    pub(crate) counts: Counts,
    /// The lanes of the gateway.
    pub(crate) lanes: Vec<Lane>,
    /// Where clients reach the gateway.
    pub(crate) gateway: String,
    /// Runs that ended, the newest first.
    pub(crate) ended: Vec<Run>,
    /// How many tries failed in each of the last 24 hours, the oldest first.
    pub(crate) failed_by_hour: Vec<u64>,
    /// What was used today.
    pub(crate) spent_today: Spending,
}

/// Every event can change something here.
const ABOUT: &str = "*";

/// The page.
pub(crate) fn page(now: &Now) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Now" } } }
        @for part in PARTS { (part.1(now)) }
    };
    layout::page(&now.frame, Place::Now, "Now", body)
}

type Part = (&'static str, fn(&Now) -> Markup);

const PARTS: [Part; 5] = [
    ("needs", needs),
    ("tiles", tiles),
    ("sessions", sessions),
    ("upstreams", upstreams),
    ("ended", ended),
];

/// One part of the page.
pub(crate) fn part(now: &Now, name: &str) -> Option<Markup> {
    let part = PARTS.iter().find(|part| part.0 == name)?;
    Some(part.1(now))
}

fn needs(now: &Now) -> Markup {
    let questions = &now.questions;
    html! {
        section data-part="needs" data-about=(ABOUT) aria-labelledby="needs-title" {
            @if questions.is_empty() {
                h2 id="needs-title" class="hidden-visually" { "Needs you" }
            } @else {
                div class="section-head" { h2 id="needs-title" { "Needs you" } span class="count" { (now.frame.open) } a class="more" href="/inbox" { "Inbox" } }
                div class="cards" {
                    @for asked in questions.iter().take(5) { (question::short(asked, now.frame.now)) }
                    @if now.frame.open > 5 { p { a href="/inbox" { (now.frame.open - 5) " more in the inbox" } } }
                }
            }
        }
    }
}

fn tiles(now: &Now) -> Markup {
    let failed: u64 = now.failed_by_hour.iter().sum();
    let values: Vec<f64> = now
        .failed_by_hour
        .iter()
        .map(|count| *count as f64)
        .collect();
    html! {
        section data-part="tiles" data-about=(ABOUT) data-quietly aria-label="In short" {
            div class="tiles" {
                (tile("", html! { (now.counts.running) }, "running"))
                (tile("", html! { (now.counts.waiting) }, "waiting to retry"))
                @if now.counts.crashed > 0 { (tile("is-bad", html! { (now.counts.crashed) }, "crashed")) }
                (tile(if now.questions.is_empty() { "" } else { "is-human" }, html! { (now.frame.open) }, "need you"))
                div class="card tile" {
                    div class="beside" { span class="big" { (failed) } (chart::spark(&format!("{} in the last 24 hours, hour by hour", money::counted(failed, "failure")), &values)) }
                    span class="name" { "failures in 24 h" }
                }
                (tile("", money::cost(now.spent_today.cost_usd, now.spent_today.unknown_price), "spent today (UTC)"))
            }
        }
    }
}

fn tile(class: &str, big: Markup, name: &str) -> Markup {
    html! {
        div class={ "card tile " (class) } { span class="big" { (big) } span class="name" { (name) } }
    }
}

fn sessions(now: &Now) -> Markup {
    html! {
        section data-part="sessions" data-about=(ABOUT) data-quietly[!now.sessions.is_empty()] aria-labelledby="sessions-title" {
            div class="section-head" { h2 id="sessions-title" { "Going on" } a class="more" href="/runs" { "All runs" } }
            @if now.sessions.is_empty() {
                (empty::empty("Nothing runs.", "Put this before any agent or command:", Some("unstuck exec -- claude -p 'fix the failing tests'")))
            } @else {
                (session::sessions("Sessions that go on", &now.sessions, now.frame.now))
                (session::cut_short(now.counts.shown_runs, now.counts.active_runs))
            }
        }
    }
}

fn upstreams(now: &Now) -> Markup {
    html! {
        section data-part="upstreams" data-about=(ABOUT) data-quietly aria-labelledby="upstreams-title" {
            div class="section-head" { h2 id="upstreams-title" { "Upstreams" } }
            @if now.lanes.is_empty() {
                (empty::empty("No API calls go through this gateway yet.", "Point a client at it:", Some(&format!("export ANTHROPIC_BASE_URL={}/anthropic", now.gateway))))
            } @else {
                (lanes::lanes(&now.lanes, now.frame.now))
            }
        }
    }
}

fn ended(now: &Now) -> Markup {
    html! {
        section data-part="ended" data-about=(ABOUT) aria-labelledby="ended-title" {
            @if now.ended.is_empty() { h2 id="ended-title" class="hidden-visually" { "Ended lately" } }
            @else {
                div class="section-head" { h2 id="ended-title" { "Ended lately" } }
                (session::runs("Runs that ended lately", &now.ended, now.frame.now))
            }
        }
    }
}

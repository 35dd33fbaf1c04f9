//! Overview: pending escalations, active sessions and the state of the upstreams.

use maud::{Markup, html};

use super::chart;
use super::layout::{self, NavItem, PageFrame};
use super::parts::{empty_state, escalation, money, run_tables, upstream_table};
use crate::model::{
    EscalationResponse, RunSummaryResponse, SessionResponse, UpstreamStatus, UsageTotals,
};
use crate::queries::ActiveRunCounts;

/// Data of the page.
#[derive(Debug, Clone)]
pub(crate) struct OverviewPage {
    /// Common page frame.
    pub(crate) frame: PageFrame,
    /// Pending escalations, the newest first.
    pub(crate) escalations: Vec<EscalationResponse>,
    /// Active sessions, up to the maximum number of runs.
    pub(crate) sessions: Vec<SessionResponse>,
    /// Number of runs by status.
    pub(crate) counts: ActiveRunCounts,
    /// Lanes of the gateway.
    pub(crate) lanes: Vec<UpstreamStatus>,
    /// Address of the gateway.
    pub(crate) gateway: String,
    /// Ended runs, the newest first.
    pub(crate) ended: Vec<RunSummaryResponse>,
    /// Failed attempts in each of the last 24 hours, the oldest first.
    pub(crate) failed_by_hour: Vec<u64>,
    /// Usage today.
    pub(crate) spent_today: UsageTotals,
}

/// Any event may change this page.
const REFRESH_EVENTS: &str = "*";

/// Renders the page.
pub(crate) fn page(now: &OverviewPage) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Now" } } }
        @for part in PARTS { (part.1(now)) }
    };
    layout::page(&now.frame, NavItem::Overview, "Now", body)
}

type PagePart = (&'static str, fn(&OverviewPage) -> Markup);

const PARTS: [PagePart; 5] = [
    ("needs", open_escalations),
    ("tiles", tiles),
    ("sessions", sessions),
    ("upstreams", upstreams),
    ("ended", ended),
];

/// Renders one part of the page.
pub(crate) fn part(now: &OverviewPage, name: &str) -> Option<Markup> {
    let part = PARTS.iter().find(|part| part.0 == name)?;
    Some(part.1(now))
}

fn open_escalations(now: &OverviewPage) -> Markup {
    let questions = &now.escalations;
    html! {
        section data-part="needs" data-about=(REFRESH_EVENTS) aria-labelledby="needs-title" {
            @if questions.is_empty() {
                h2 id="needs-title" class="hidden-visually" { "Needs your input" }
            } @else {
                div class="section-head" { h2 id="needs-title" { "Needs your input" } span class="count" { (now.frame.open_escalations) } a class="more" href="/inbox" { "Inbox" } }
                div class="cards" {
                    @for asked in questions.iter().take(5) { (escalation::escalation_card(asked, now.frame.now)) }
                    @if now.frame.open_escalations > 5 { p { a href="/inbox" { (now.frame.open_escalations - 5) " more in the inbox" } } }
                }
            }
        }
    }
}

fn tiles(now: &OverviewPage) -> Markup {
    let failed: u64 = now.failed_by_hour.iter().sum();
    let values: Vec<f64> = now
        .failed_by_hour
        .iter()
        .map(|count| *count as f64)
        .collect();
    html! {
        section data-part="tiles" data-about=(REFRESH_EVENTS) data-quietly aria-label="Summary" {
            div class="tiles" {
                (tile("", html! { (now.counts.running) }, "running"))
                (tile("", html! { (now.counts.waiting) }, "waiting to retry"))
                @if now.counts.crashed > 0 { (tile("is-bad", html! { (now.counts.crashed) }, "crashed")) }
                (tile(if now.escalations.is_empty() { "" } else { "is-human" }, html! { (now.frame.open_escalations) }, "need your input"))
                div class="card tile" {
                    div class="beside" { span class="big" { (failed) } (chart::sparkline(&format!("{} in the last 24 hours, by hour", money::pluralize(failed, "failure")), &values)) }
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

fn sessions(now: &OverviewPage) -> Markup {
    html! {
        section data-part="sessions" data-about=(REFRESH_EVENTS) data-quietly[!now.sessions.is_empty()] aria-labelledby="sessions-title" {
            div class="section-head" { h2 id="sessions-title" { "Active" } a class="more" href="/runs" { "All runs" } }
            @if now.sessions.is_empty() {
                (empty_state::empty_state("No active sessions.", "Run any agent or command with unstuck:", Some("unstuck exec -- claude -p 'fix the failing tests'")))
            } @else {
                (run_tables::session_table("Active sessions", &now.sessions, now.frame.now))
                (run_tables::truncation_note(now.counts.shown_runs, now.counts.active_runs))
            }
        }
    }
}

fn upstreams(now: &OverviewPage) -> Markup {
    html! {
        section data-part="upstreams" data-about=(REFRESH_EVENTS) data-quietly aria-labelledby="upstreams-title" {
            div class="section-head" { h2 id="upstreams-title" { "Upstreams" } }
            @if now.lanes.is_empty() {
                (empty_state::empty_state("No API calls through this gateway yet.", "Point a client at it:", Some(&format!("export ANTHROPIC_BASE_URL={}/anthropic", now.gateway))))
            } @else {
                (upstream_table::lane_table(&now.lanes, now.frame.now))
            }
        }
    }
}

fn ended(now: &OverviewPage) -> Markup {
    html! {
        section data-part="ended" data-about=(REFRESH_EVENTS) aria-labelledby="ended-title" {
            @if now.ended.is_empty() { h2 id="ended-title" class="hidden-visually" { "Recently ended" } }
            @else {
                div class="section-head" { h2 id="ended-title" { "Recently ended" } }
                (run_tables::run_table("Recently ended runs", &now.ended, now.frame.now))
            }
        }
    }
}

//! Run page: sessions, attempts and live events.

use std::time::Duration;

use maud::{Markup, html};
use unstuck_core::views::RunStatus;

use super::layout::{self, NavItem, PageFrame};
use super::parts::attempt_timeline::{self, AttemptEntry};
use super::parts::{
    actions, empty_state, escalation, event_list, money, run_tables, sanitized_text, time,
};
use crate::model::{AttemptResponse, EscalationResponse, EventResponse, RunDetail};

/// Data of the page.
#[derive(Debug, Clone)]
pub(crate) struct RunPage {
    /// Common page frame.
    pub(crate) frame: PageFrame,
    /// The run.
    pub(crate) run: RunDetail,
    /// Attempts, in order of their start.
    pub(crate) attempts: Vec<AttemptResponse>,
    /// Number of earlier attempts that are not shown.
    pub(crate) hidden_attempts: usize,
    /// Pending escalations.
    pub(crate) escalations: Vec<EscalationResponse>,
    /// Newest events, the newest first.
    pub(crate) events: Vec<EventResponse>,
}

/// Renders the page.
pub(crate) fn page(view: &RunPage) -> Markup {
    let title = run_tables::run_title(&view.run.run);
    let body = html! {
        @for part in PARTS { (part.1(view)) }
        (actions::stop_dialog(&view.run.run.id, view.frame.permissions))
    };
    layout::page(
        &view.frame,
        NavItem::Runs,
        &sanitized_text::truncated(&title, 60),
        body,
    )
}

type PagePart = (&'static str, fn(&RunPage) -> Markup);

const PARTS: [PagePart; 5] = [
    ("head", head),
    ("questions", escalations),
    ("sessions", sessions),
    ("attempts", timeline),
    ("events", event_log),
];

/// Renders one part of the page.
pub(crate) fn part(view: &RunPage, name: &str) -> Option<Markup> {
    let part = PARTS.iter().find(|part| part.0 == name)?;
    Some(part.1(view))
}

fn head(view: &RunPage) -> Markup {
    let (run, now) = (&view.run.run, view.frame.now);
    html! {
        div class="page-head" data-part="head" data-about=(run.id) data-quietly[run.supervised] {
            div class="titles" {
                (layout::breadcrumbs(&[("/runs", "Runs")]))
                h1 { (run_tables::run_title(run)) }
                div class="facts" {
                    span { (run_tables::status_with_hint(run.status, &run.id)) }
                    @if let Some(model) = &run.model { (run_tables::model_name(Some(model))) }
                    span title=(sanitized_text::one_line(&run.project, 400)) { (sanitized_text::one_line(sanitized_text::directory_name(&run.project), 60)) }
                    span { "started " (time::ago(run.started, now)) }
                    @if let Some(finished) = run.finished { span { "took " (time::duration(finished.since(run.started))) } } @else if run.status != RunStatus::Crashed { span { "for " (time::since(run.started, now)) } } @else { span { "last seen " (time::ago(run.updated, now)) } }
                    span { (money::pluralize(run.attempt_count.into(), "attempt")) }
                    span { (money::cost(run.cost_usd, run.unknown_price)) }
                    @if run.tokens > 0 { span { (money::tokens(run.tokens)) " tokens" } }
                    @if let Some(iteration) = run.iteration { span { "iteration " (iteration) } }
                    @if let Some(code) = run.exit_code { span { "exit code " (code) } }
                    span { "policy " (sanitized_text::one_line(&run.policy, 60)) }
                    code { (sanitized_text::one_line(&run.id, 40)) }
                }
                (run_tables::wait_reason(run.until, run.reason.as_deref(), run.status, now))
                @for change in &view.run.model_changes { (attempt_timeline::model_switch(change)) }
            }
            (actions::run_buttons(run, view.run.sessions.as_slice(), view.frame.permissions))
        }
    }
}

fn escalations(view: &RunPage) -> Markup {
    html! {
        section data-part="questions" data-about=(view.run.run.id) aria-label="Pending requests of this run" {
            @if !view.escalations.is_empty() { div class="cards" { @for asked in &view.escalations { (escalation::escalation_card(asked, view.frame.now)) } } }
        }
    }
}

fn sessions(view: &RunPage) -> Markup {
    html! {
        section data-part="sessions" data-about=(view.run.run.id) data-quietly[view.run.run.supervised] aria-labelledby="sessions-title" {
            div class="section-head" { h2 id="sessions-title" { "Sessions" } }
            @if view.run.sessions.is_empty() { (empty_state::empty_state("No sessions yet.", "Sessions appear here when they start.", None)) }
            @else { (run_tables::session_table("Sessions of this run", &view.run.sessions, view.frame.now)) }
            @if let Some(spent) = &view.run.spent {
                p class="small dim" { "Through the gateway: " (money::pluralize(spent.calls, "call")) ", " (spent.recovered) " recovered, " (spent.failed) " failed, "
                    (money::tokens(spent.input_tokens)) " tokens in, " (money::tokens(spent.cached_tokens)) " cached, " (money::tokens(spent.output_tokens)) " out, " (money::cost(spent.cost_usd, spent.unknown_price))
                    @if spent.unknown_price > 0 { "; " (money::pluralize(spent.unknown_price, "call")) " of unknown price" } }
            }
            @if !view.run.calls.is_empty() { (attempt_timeline::api_calls(&view.run.run.id, &view.run.calls)) }
        }
    }
}

fn timeline(view: &RunPage) -> Markup {
    let told: Vec<_> = view
        .attempts
        .iter()
        .map(|attempt| AttemptEntry {
            attempt,
            texts: None,
            previous_texts: None,
        })
        .collect();
    html! {
        section data-part="attempts" data-about=(view.run.run.id) aria-labelledby="attempts-title" {
            div class="section-head" { h2 id="attempts-title" { "Attempts" } @if view.hidden_attempts > 0 { span class="dim small" { (view.hidden_attempts) " earlier ones are on the session pages" } } }
            @if told.is_empty() { (empty_state::empty_state("No attempts yet.", "Attempts appear here with their outcomes.", None)) }
            @else { (attempt_timeline::timeline(&told, view.run.sessions.len() > 1, view.frame.now)) }
        }
    }
}

fn event_log(view: &RunPage) -> Markup {
    let span = view
        .events
        .last()
        .map_or(Duration::ZERO, |oldest| view.frame.now.since(oldest.at));
    html! {
        section data-part="events" data-about=(view.run.run.id) aria-labelledby="events-title" {
            div class="section-head" { h2 id="events-title" { "Events" } span class="dim small" { "newest " (view.events.len()) ", over " (time::countdown(span)) }
                a class="more" href={ "/api/events?run=" (view.run.run.id) } { "As JSON" } }
            div class="card" { (event_list::event_list(&view.events)) }
        }
    }
}

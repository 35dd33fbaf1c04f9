//! A run: its sessions, its attempts, and its events as they happen.

use std::time::Duration;

use maud::{Markup, html};
use unstuck_core::episode::Status;

use super::layout::{self, Frame, Place};
use super::parts::attempts::{self, Told};
use super::parts::{deeds, empty, events, money, question, session, text, time};
use crate::model::{Attempt, Escalation, EventLine, RunDetail};

/// What the page shows.
#[derive(Debug, Clone)]
pub(crate) struct RunPage {
    /// What is the same on all pages.
    pub(crate) frame: Frame,
    /// The run.
    pub(crate) run: RunDetail,
    /// Its attempts, in the order in which they began.
    pub(crate) attempts: Vec<Attempt>,
    /// How many attempts before those are not shown.
    pub(crate) earlier: usize,
    /// Its questions that wait.
    pub(crate) questions: Vec<Escalation>,
    /// Its newest events, the newest first.
    pub(crate) events: Vec<EventLine>,
}

/// The page.
pub(crate) fn page(view: &RunPage) -> Markup {
    let title = session::run_title(&view.run.run);
    let body = html! {
        @for part in PARTS { (part.1(view)) }
        (deeds::stop_dialog(&view.run.run.id, view.frame.may))
    };
    layout::page(&view.frame, Place::Runs, &text::cut(&title, 60), body)
}

type Part = (&'static str, fn(&RunPage) -> Markup);

const PARTS: [Part; 5] = [
    ("head", head),
    ("questions", questions),
    ("sessions", sessions),
    ("attempts", timeline),
    ("events", happened),
];

/// One part of the page.
pub(crate) fn part(view: &RunPage, name: &str) -> Option<Markup> {
    let part = PARTS.iter().find(|part| part.0 == name)?;
    Some(part.1(view))
}

fn head(view: &RunPage) -> Markup {
    let (run, now) = (&view.run.run, view.frame.now);
    html! {
        div class="page-head" data-part="head" data-about=(run.id) data-quietly[run.driven] {
            div class="titles" {
                (layout::crumbs(&[("/runs", "Runs")]))
                h1 { (session::run_title(run)) }
                div class="facts" {
                    span { (session::standing(run.status, &run.id)) }
                    @if let Some(model) = &run.model { (session::model(Some(model))) }
                    span title=(text::one_line(&run.project, 400)) { (text::one_line(text::folder(&run.project), 60)) }
                    span { "began " (time::ago(run.started, now)) }
                    @if let Some(finished) = run.finished { span { "took " (time::took(finished.since(run.started))) } } @else if run.status != Status::Crashed { span { "for " (time::since(run.started, now)) } } @else { span { "last seen " (time::ago(run.updated, now)) } }
                    span { (money::counted(run.attempt_count.into(), "attempt")) }
                    span { (money::cost(run.cost_usd, run.unknown_price)) }
                    @if run.tokens > 0 { span { (money::tokens(run.tokens)) " tokens" } }
                    @if let Some(iteration) = run.iteration { span { "iteration " (iteration) } }
                    @if let Some(code) = run.exit_code { span { "exit code " (code) } }
                    span { "policy " (text::one_line(&run.policy, 60)) }
                    code { (text::one_line(&run.id, 40)) }
                }
                (session::waits(run.until, run.reason.as_deref(), run.status, now))
                @for change in &view.run.model_changes { (attempts::model_change(change)) }
            }
            (deeds::of_run(run, view.run.sessions.as_slice(), view.frame.may))
        }
    }
}

fn questions(view: &RunPage) -> Markup {
    html! {
        section data-part="questions" data-about=(view.run.run.id) aria-label="Questions of this run" {
            @if !view.questions.is_empty() { div class="cards" { @for asked in &view.questions { (question::short(asked, view.frame.now)) } } }
        }
    }
}

fn sessions(view: &RunPage) -> Markup {
    html! {
        section data-part="sessions" data-about=(view.run.run.id) data-quietly[view.run.run.driven] aria-labelledby="sessions-title" {
            div class="section-head" { h2 id="sessions-title" { "Sessions" } }
            @if view.run.sessions.is_empty() { (empty::empty("No session has begun yet.", "They are shown as soon as they begin.", None)) }
            @else { (session::sessions("Sessions of this run", &view.run.sessions, view.frame.now)) }
            @if let Some(spent) = &view.run.spent {
                p class="small dim" { "Through the gateway: " (money::counted(spent.calls, "call")) ", " (spent.recovered) " recovered, " (spent.failed) " failed, "
                    (money::tokens(spent.input_tokens)) " tokens in, " (money::tokens(spent.cached_tokens)) " kept, " (money::tokens(spent.output_tokens)) " out, " (money::cost(spent.cost_usd, spent.unknown_price))
                    @if spent.unknown_price > 0 { "; the price of " (money::counted(spent.unknown_price, "call")) " is not known" } }
            }
            @if !view.run.calls.is_empty() { (attempts::calls(&view.run.run.id, &view.run.calls)) }
        }
    }
}

fn timeline(view: &RunPage) -> Markup {
    let told: Vec<_> = view
        .attempts
        .iter()
        .map(|attempt| Told {
            attempt,
            texts: None,
            before: None,
        })
        .collect();
    html! {
        section data-part="attempts" data-about=(view.run.run.id) aria-labelledby="attempts-title" {
            div class="section-head" { h2 id="attempts-title" { "Attempts" } @if view.earlier > 0 { span class="dim small" { (view.earlier) " earlier ones are on the pages of their sessions" } } }
            @if told.is_empty() { (empty::empty("No attempt has begun yet.", "Each try is shown here with what came of it.", None)) }
            @else { (attempts::timeline(&told, view.run.sessions.len() > 1, view.frame.now)) }
        }
    }
}

fn happened(view: &RunPage) -> Markup {
    let span = view
        .events
        .last()
        .map_or(Duration::ZERO, |oldest| view.frame.now.since(oldest.at));
    html! {
        section data-part="events" data-about=(view.run.run.id) aria-labelledby="events-title" {
            div class="section-head" { h2 id="events-title" { "Events" } span class="dim small" { "the newest " (view.events.len()) ", over " (time::long(span)) }
                a class="more" href={ "/api/events?run=" (view.run.run.id) } { "As JSON" } }
            div class="card" { (events::events(&view.events)) }
        }
    }
}

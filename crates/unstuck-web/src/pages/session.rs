//! Session page: attempts with prompts and outputs, and the available actions.

use maud::{Markup, html};

use super::layout::{self, NavItem, PageFrame};
use super::parts::attempt_timeline::{self, AttemptEntry};
use super::parts::{
    actions, empty_state, escalation, event_list, money, run_tables, sanitized_text, time,
};
use crate::model::{
    AttemptResponse, AttemptTexts, EscalationResponse, EventResponse, ExtraCostEstimateResponse,
    RetryPromptResponse, SessionResponse,
};

/// Data of the page.
#[derive(Debug, Clone)]
pub(crate) struct SessionPage {
    /// Common page frame.
    pub(crate) frame: PageFrame,
    /// The session.
    pub(crate) session: SessionResponse,
    /// Attempts in order of their start, with prompt and output.
    pub(crate) attempts: Vec<(AttemptResponse, Option<AttemptTexts>)>,
    /// Pending escalations.
    pub(crate) escalations: Vec<EscalationResponse>,
    /// Newest events, the newest first.
    pub(crate) events: Vec<EventResponse>,
}

/// Renders the page.
pub(crate) fn page(view: &SessionPage) -> Markup {
    let title = run_tables::session_title(&view.session);
    let body = html! {
        @for part in PARTS { (part.1(view)) }
        (actions::session_dialogs(&view.session, view.frame.permissions))
    };
    layout::page(
        &view.frame,
        NavItem::Runs,
        &sanitized_text::truncated(&title, 60),
        body,
    )
}

type PagePart = (&'static str, fn(&SessionPage) -> Markup);

const PARTS: [PagePart; 4] = [
    ("head", head),
    ("questions", escalations),
    ("attempts", timeline),
    ("events", event_log),
];

/// Renders one part of the page.
pub(crate) fn part(view: &SessionPage, name: &str) -> Option<Markup> {
    let part = PARTS.iter().find(|part| part.0 == name)?;
    Some(part.1(view))
}

/// Renders the content of the retry dialog.
pub(crate) fn retry_dialog(view: &SessionPage, prompt: &RetryPromptResponse) -> Markup {
    actions::retry_form(&view.session, prompt)
}

/// Renders the content of the model switch dialog.
pub(crate) fn model_switch_dialog(
    view: &SessionPage,
    estimate: &ExtraCostEstimateResponse,
) -> Markup {
    actions::model_switch_form(&view.session, estimate)
}

fn head(view: &SessionPage) -> Markup {
    let (it, now) = (&view.session, view.frame.now);
    let run = format!("/runs/{}", it.run);
    let run_name = format!("Run {}", sanitized_text::one_line(&it.run, 20));
    html! {
        div class="page-head" data-part="head" data-about=(it.id) data-quietly[it.supervised] {
            div class="titles" {
                (layout::breadcrumbs(&[("/runs", "Runs"), (&run, &run_name)]))
                h1 { (run_tables::session_title(it)) }
                div class="facts" {
                    span { (run_tables::status_with_hint(it.status, &it.run)) }
                    (model_line(it))
                    @if let Some(agent) = &it.agent { span { (sanitized_text::one_line(agent, 60)) } }
                    span title=(sanitized_text::one_line(&it.project, 400)) { (sanitized_text::one_line(sanitized_text::directory_name(&it.project), 60)) }
                    span { "attempt " (run_tables::attempt_count(it)) }
                    span { "started " (time::ago(it.started, now)) }
                    span { (money::cost(it.cost_usd, it.unknown_price)) }
                    @if it.tokens > 0 { span { (money::tokens(it.tokens)) " tokens" } }
                    @if let Some(policy) = &it.policy { span { "policy " (sanitized_text::one_line(policy, 60)) } }
                }
                (run_tables::wait_reason(it.until, it.reason.as_deref(), it.status, now))
            }
            (actions::session_buttons(it, view.frame.permissions))
        }
    }
}

/// Renders the current model and the previous ones.
fn model_line(it: &SessionResponse) -> Markup {
    html! {
        span {
            @for change in &it.model_changes { (run_tables::model_name(Some(&change.from_model))) " → " }
            (run_tables::model_name(it.model.as_deref()))
            @if let Some(change) = it.model_changes.last() { span class="small dim" { " changed " (time::date_time(change.timestamp)) } }
        }
    }
}

fn escalations(view: &SessionPage) -> Markup {
    html! {
        section data-part="questions" data-about=(view.session.run) aria-label="Pending requests of this session" {
            @if !view.escalations.is_empty() { div class="cards" { @for asked in &view.escalations { (escalation::escalation_card(asked, view.frame.now)) } } }
        }
    }
}

fn timeline(view: &SessionPage) -> Markup {
    let befores =
        std::iter::once(None).chain(view.attempts.iter().map(|(_, texts)| texts.as_ref()));
    let told: Vec<_> = view
        .attempts
        .iter()
        .zip(befores)
        .map(|((attempt, texts), before)| AttemptEntry {
            attempt,
            texts: texts.as_ref(),
            previous_texts: before,
        })
        .collect();
    html! {
        section data-part="attempts" data-about=(view.session.id) aria-labelledby="attempts-title" {
            div class="section-head" { h2 id="attempts-title" { "Attempts" } }
            @if told.is_empty() { (empty_state::empty_state("No attempts yet.", "Attempts appear here with their outcomes.", None)) }
            @else { (attempt_timeline::timeline(&told, false, view.frame.now)) }
        }
    }
}

fn event_log(view: &SessionPage) -> Markup {
    html! {
        section data-part="events" data-about=(view.session.id) aria-labelledby="events-title" {
            div class="section-head" { h2 id="events-title" { "Events" } span class="dim small" { "newest " (view.events.len()) } }
            div class="card" { (event_list::event_list(&view.events)) }
        }
    }
}

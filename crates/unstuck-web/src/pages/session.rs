//! A session: its attempts with all that they were given and wrote, and what a person can do about it.

use maud::{Markup, html};

use super::layout::{self, Frame, Place};
use super::parts::attempts::{self, Told};
use super::parts::{deeds, empty, events, money, question, session, text, time};
use crate::model::{Attempt, AttemptTexts, Escalation, Estimate, EventLine, RetryPrompt, Session};

/// What the page shows.
#[derive(Debug, Clone)]
pub(crate) struct SessionPage {
    /// What is the same on all pages.
    pub(crate) frame: Frame,
    /// The session.
    pub(crate) session: Session,
    /// Its attempts, in the order in which they began, with what each was given and wrote.
    pub(crate) attempts: Vec<(Attempt, Option<AttemptTexts>)>,
    /// Its questions that wait.
    pub(crate) questions: Vec<Escalation>,
    /// Its newest events, the newest first.
    pub(crate) events: Vec<EventLine>,
}

/// The page.
pub(crate) fn page(view: &SessionPage) -> Markup {
    let title = session::session_title(&view.session);
    let body = html! {
        @for part in PARTS { (part.1(view)) }
        (deeds::session_dialogs(&view.session, view.frame.may))
    };
    layout::page(&view.frame, Place::Runs, &text::cut(&title, 60), body)
}

type Part = (&'static str, fn(&SessionPage) -> Markup);

const PARTS: [Part; 4] = [
    ("head", head),
    ("questions", questions),
    ("attempts", timeline),
    ("events", happened),
];

/// One part of the page.
pub(crate) fn part(view: &SessionPage, name: &str) -> Option<Markup> {
    let part = PARTS.iter().find(|part| part.0 == name)?;
    Some(part.1(view))
}

/// What stands in the dialog of a retry.
pub(crate) fn retry_dialog(view: &SessionPage, prompt: &RetryPrompt) -> Markup {
    deeds::retry_form(&view.session, prompt)
}

/// What stands in the dialog of a stronger model.
pub(crate) fn escalate_dialog(view: &SessionPage, estimate: &Estimate) -> Markup {
    deeds::escalate_form(&view.session, estimate)
}

fn head(view: &SessionPage) -> Markup {
    let (it, now) = (&view.session, view.frame.now);
    let run = format!("/runs/{}", it.run);
    let run_name = format!("Run {}", text::one_line(&it.run, 20));
    html! {
        div class="page-head" data-part="head" data-about=(it.id) data-quietly[it.driven] {
            div class="titles" {
                (layout::crumbs(&[("/runs", "Runs"), (&run, &run_name)]))
                h1 { (session::session_title(it)) }
                div class="facts" {
                    span { (session::standing(it.status, &it.run)) }
                    (model_line(it))
                    @if let Some(agent) = &it.agent { span { (text::one_line(agent, 60)) } }
                    span title=(text::one_line(&it.project, 400)) { (text::one_line(text::folder(&it.project), 60)) }
                    span { "attempt " (session::attempt(it)) }
                    span { "began " (time::ago(it.started, now)) }
                    span { (money::cost(it.cost_usd, it.unknown_price)) }
                    @if it.tokens > 0 { span { (money::tokens(it.tokens)) " tokens" } }
                    @if let Some(policy) = &it.policy { span { "policy " (text::one_line(policy, 60)) } }
                }
                (session::waits(it.until, it.reason.as_deref(), it.status, now))
            }
            (deeds::of_session(it, view.frame.may))
        }
    }
}

/// The model, with those that it had before.
fn model_line(it: &Session) -> Markup {
    html! {
        span {
            @for change in &it.model_changes { (session::model(Some(&change.from_model))) " → " }
            (session::model(it.model.as_deref()))
            @if let Some(change) = it.model_changes.last() { span class="small dim" { " changed " (time::clock(change.timestamp)) } }
        }
    }
}

fn questions(view: &SessionPage) -> Markup {
    html! {
        section data-part="questions" data-about=(view.session.run) aria-label="Questions of this session" {
            @if !view.questions.is_empty() { div class="cards" { @for asked in &view.questions { (question::short(asked, view.frame.now)) } } }
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
        .map(|((attempt, texts), before)| Told {
            attempt,
            texts: texts.as_ref(),
            before,
        })
        .collect();
    html! {
        section data-part="attempts" data-about=(view.session.id) aria-labelledby="attempts-title" {
            div class="section-head" { h2 id="attempts-title" { "Attempts" } }
            @if told.is_empty() { (empty::empty("No attempt has begun yet.", "Each try is shown here with what came of it.", None)) }
            @else { (attempts::timeline(&told, false, view.frame.now)) }
        }
    }
}

fn happened(view: &SessionPage) -> Markup {
    html! {
        section data-part="events" data-about=(view.session.id) aria-labelledby="events-title" {
            div class="section-head" { h2 id="events-title" { "Events" } span class="dim small" { "the newest " (view.events.len()) } }
            div class="card" { (events::events(&view.events)) }
        }
    }
}

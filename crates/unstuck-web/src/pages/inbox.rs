//! Inbox: what waits for a person, and one question with all that it says.

use maud::{Markup, html};

use super::layout::{self, Frame, Place};
use super::parts::controls::doing_dialog;
use super::parts::{empty, pill, question, text};
use crate::model::{Escalation, Preview};

/// What the list shows.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    /// What is the same on all pages.
    pub(crate) frame: Frame,
    /// Those that wait, the newest first.
    pub(crate) open: Vec<Escalation>,
    /// Those that were answered, the newest first.
    pub(crate) answered: Vec<Escalation>,
}

/// The page.
pub(crate) fn page(view: &Inbox) -> Markup {
    let body = html! {
        div class="page-head" {
            div class="titles" { h1 { "Inbox" } }
            div class="actions" { button type="button" data-allow-notifications hidden { "Tell me in the browser" } }
        }
        (open(view))
        (answered(view))
    };
    layout::page(&view.frame, Place::Inbox, "Inbox", body)
}

/// One part of the page.
pub(crate) fn part(view: &Inbox, name: &str) -> Option<Markup> {
    match name {
        "open" => Some(open(view)),
        "answered" => Some(answered(view)),
        _ => None,
    }
}

const ABOUT: &str = "recovery_escalated recovery_resolved run_finished run_resumed";

fn open(view: &Inbox) -> Markup {
    html! {
        section data-part="open" data-about=(ABOUT) aria-labelledby="open-title" {
            div class="section-head" { h2 id="open-title" { "Waiting for you" } @if !view.open.is_empty() { span class="count" { (view.frame.open) } } }
            @if view.open.is_empty() { (empty::empty("Nothing waits for you.", "Questions appear here by themselves. On a terminal:", Some("unstuck inbox --watch"))) }
            @else { div class="cards" { @for asked in &view.open { (question::short(asked, view.frame.now)) } } }
            @if view.frame.open > view.open.len() { p { "The newest are shown; " (view.frame.open - view.open.len()) " older ones come when these are answered." } }
        }
    }
}

fn answered(view: &Inbox) -> Markup {
    html! {
        section data-part="answered" data-about=(ABOUT) aria-labelledby="answered-title" {
            @if view.answered.is_empty() { h2 id="answered-title" class="hidden-visually" { "Answered" } }
            @else {
                div class="section-head" { h2 id="answered-title" { "Answered" } }
                div class="card flush" { table class="table folds" {
                    caption class="hidden-visually" { "Questions that were answered, the newest first" }
                    thead { tr { th scope="col" { "Question" } th scope="col" { "Kind" } th scope="col" { "Answer" } th scope="col" class="number" { "When" } } }
                    tbody { @for asked in &view.answered {
                        tr data-key={ "answered-" (asked.id) } {
                            td { div class="title-cell" { a href={ "/inbox/" (asked.id) } { (text::one_line(&asked.reason, 160)) } (question::doing(asked)) } }
                            td data-name="Kind" { span class="tag" { (asked.kind) } }
                            td data-name="Answer" { (said(asked)) }
                            td data-name="When" class="number" { @if let Some(answered) = &asked.answered { (super::parts::time::ago(answered.at, view.frame.now)) } }
                        }
                    } }
                } }
            }
        }
    }
}

fn said(asked: &Escalation) -> String {
    let how = asked
        .answered
        .as_ref()
        .and_then(|answered| answered.how.as_ref());
    how.map_or_else(
        || "not needed any more".to_owned(),
        |how| text::one_line(&how.said, 160),
    )
}

/// What the page of one question shows.
#[derive(Debug, Clone)]
pub(crate) struct QuestionPage {
    /// What is the same on all pages.
    pub(crate) frame: Frame,
    /// The question.
    pub(crate) asked: Escalation,
}

/// The page of one question.
pub(crate) fn question_page(view: &QuestionPage) -> Markup {
    let title = pill::question(&view.asked.question);
    let body = html! {
        div class="page-head" { div class="titles" { (layout::crumbs(&[("/inbox", "Inbox")])) h1 { (title) } } }
        (asked(view))
        (answers(view))
        (doing_dialog("preview", "Preview of file changes", &format!("/inbox/{}/preview", view.asked.id)))
        @if view.asked.preview_needs_network {
            (doing_dialog("preview-network", "Preview of file changes, with network", &format!("/inbox/{}/preview?network=true", view.asked.id)))
        }
    };
    layout::page(&view.frame, Place::Inbox, title, body)
}

/// One part of the page of one question.
pub(crate) fn question_part(view: &QuestionPage, name: &str) -> Option<Markup> {
    match name {
        "asked" => Some(asked(view)),
        "answers" => Some(answers(view)),
        _ => None,
    }
}

/// The buttons, as long as nobody has answered.
fn answers(view: &QuestionPage) -> Markup {
    html! {
        section data-part="answers" data-about=(view.asked.run) aria-label="Answer" {
            @if view.asked.answered.is_none() { (question::answers(&view.asked, view.frame.may)) }
        }
    }
}

fn asked(view: &QuestionPage) -> Markup {
    html! {
        section data-part="asked" data-about=(view.asked.run) aria-label="The question" {
            div class="stack" {
                (question::answered(&view.asked, view.frame.now))
                (question::whole(&view.asked, view.frame.now))
                (question::preview_opener(&view.asked, view.frame.may))
            }
        }
    }
}

/// What stands in the dialog of the preview.
pub(crate) fn preview(preview: &Preview) -> Markup {
    html! {
        (question::preview(preview))
        div class="actions" { button type="button" data-close { "Close" } }
    }
}

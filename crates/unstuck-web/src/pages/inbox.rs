//! Inbox: the list of pending escalations, and the page of one escalation.

use maud::{Markup, html};

use super::layout::{self, NavItem, PageFrame};
use super::parts::controls::action_dialog;
use super::parts::{badge, empty_state, escalation, sanitized_text};
use crate::model::{EscalationResponse, RepairPreview};

/// Data of the inbox.
#[derive(Debug, Clone)]
pub(crate) struct InboxPage {
    /// Common page frame.
    pub(crate) frame: PageFrame,
    /// Pending escalations, the newest first.
    pub(crate) open: Vec<EscalationResponse>,
    /// Answered escalations, the newest first.
    pub(crate) answered: Vec<EscalationResponse>,
}

/// Renders the page.
pub(crate) fn page(view: &InboxPage) -> Markup {
    let body = html! {
        div class="page-head" {
            div class="titles" { h1 { "Inbox" } }
            div class="actions" { button type="button" data-allow-notifications hidden { "Enable browser notifications" } }
        }
        (open_list(view))
        (answered_list(view))
    };
    layout::page(&view.frame, NavItem::Inbox, "Inbox", body)
}

/// Renders one part of the page.
pub(crate) fn part(view: &InboxPage, name: &str) -> Option<Markup> {
    match name {
        "open" => Some(open_list(view)),
        "answered" => Some(answered_list(view)),
        _ => None,
    }
}

const REFRESH_EVENTS: &str = "recovery_escalated recovery_resolved run_finished run_resumed";

fn open_list(view: &InboxPage) -> Markup {
    html! {
        section data-part="open" data-about=(REFRESH_EVENTS) aria-labelledby="open-title" {
            div class="section-head" { h2 id="open-title" { "Needs your input" } @if !view.open.is_empty() { span class="count" { (view.frame.open_escalations) } } }
            @if view.open.is_empty() { (empty_state::empty_state("Inbox empty.", "Anything that needs your input appears here automatically. In a terminal:", Some("unstuck inbox --watch"))) }
            @else { div class="cards" { @for asked in &view.open { (escalation::escalation_card(asked, view.frame.now)) } } }
            @if view.frame.open_escalations > view.open.len() { p { "Showing the newest requests; answer them to see " (view.frame.open_escalations - view.open.len()) " older ones." } }
        }
    }
}

fn answered_list(view: &InboxPage) -> Markup {
    html! {
        section data-part="answered" data-about=(REFRESH_EVENTS) aria-labelledby="answered-title" {
            @if view.answered.is_empty() { h2 id="answered-title" class="hidden-visually" { "Answered" } }
            @else {
                div class="section-head" { h2 id="answered-title" { "Answered" } }
                div class="card flush" { table class="table folds" {
                    caption class="hidden-visually" { "Answered requests, newest first" }
                    thead { tr { th scope="col" { "Request" } th scope="col" { "Kind" } th scope="col" { "Answer" } th scope="col" class="number" { "When" } } }
                    tbody { @for asked in &view.answered {
                        tr data-key={ "answered-" (asked.id) } {
                            td { div class="title-cell" { a href={ "/inbox/" (asked.id) } { (sanitized_text::one_line(&asked.reason, 160)) } (escalation::activity(asked)) } }
                            td data-name="Kind" { span class="tag" { (asked.kind) } }
                            td data-name="Answer" { (answer_summary(asked)) }
                            td data-name="When" class="number" { @if let Some(answered) = &asked.outcome { (super::parts::time::ago(answered.at, view.frame.now)) } }
                        }
                    } }
                } }
            }
        }
    }
}

fn answer_summary(asked: &EscalationResponse) -> String {
    let how = asked
        .outcome
        .as_ref()
        .and_then(|answered| answered.resolution.as_ref());
    how.map_or_else(
        || "no longer needed".to_owned(),
        |how| sanitized_text::one_line(&how.summary, 160),
    )
}

/// Data of an escalation's page.
#[derive(Debug, Clone)]
pub(crate) struct EscalationPage {
    /// Common page frame.
    pub(crate) frame: PageFrame,
    /// The escalation.
    pub(crate) escalation: EscalationResponse,
}

/// Renders the page of an escalation.
pub(crate) fn escalation_page(view: &EscalationPage) -> Markup {
    let title = badge::escalation_kind_label(&view.escalation.escalation_kind);
    let body = html! {
        div class="page-head" { div class="titles" { (layout::breadcrumbs(&[("/inbox", "Inbox")])) h1 { (title) } } }
        (escalation(view))
        (answer_buttons(view))
        (action_dialog("preview", "Preview file changes", &format!("/inbox/{}/preview", view.escalation.id)))
        @if view.escalation.preview_needs_network {
            (action_dialog("preview-network", "Preview file changes with network access", &format!("/inbox/{}/preview?network=true", view.escalation.id)))
        }
    };
    layout::page(&view.frame, NavItem::Inbox, title, body)
}

/// Renders one part of the page of an escalation.
pub(crate) fn escalation_part(view: &EscalationPage, name: &str) -> Option<Markup> {
    match name {
        "asked" => Some(escalation(view)),
        "answers" => Some(answer_buttons(view)),
        _ => None,
    }
}

/// Renders the answer buttons while the escalation is pending.
fn answer_buttons(view: &EscalationPage) -> Markup {
    html! {
        section data-part="answers" data-about=(view.escalation.run) aria-label="Answer" {
            @if view.escalation.outcome.is_none() { (escalation::answer_buttons(&view.escalation, view.frame.permissions)) }
        }
    }
}

fn escalation(view: &EscalationPage) -> Markup {
    html! {
        section data-part="asked" data-about=(view.escalation.run) aria-label="Request" {
            div class="stack" {
                (escalation::outcome(&view.escalation, view.frame.now))
                (escalation::escalation_details(&view.escalation, view.frame.now))
                (escalation::preview_button(&view.escalation, view.frame.permissions))
            }
        }
    }
}

/// Renders the content of the preview dialog.
pub(crate) fn preview(preview: &RepairPreview) -> Markup {
    html! {
        (escalation::preview(preview))
        div class="actions" { button type="button" data-close { "Close" } }
    }
}

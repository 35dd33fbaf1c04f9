//! Runs: all of them, the newest first, with filters in the address.

use maud::{Markup, html};
use serde::Deserialize;
use unstuck_core::episode::Status;

use super::layout::{self, Frame, Place};
use super::parts::pill::status_word;
use super::parts::text::encoded;
use super::parts::{empty, session, text};
use crate::model::{Page, Project, Run};

/// What the address asks for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    /// Only those that stand there.
    pub(crate) status: String,
    /// Only those of the project of this id.
    pub(crate) project: String,
    /// Where the list goes on.
    pub(crate) after: String,
    /// Only this part of the page.
    pub(crate) part: Option<String>,
}

/// What the page shows.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    /// What is the same on all pages.
    pub(crate) frame: Frame,
    /// What was asked for.
    pub(crate) asked: Asked,
    /// The projects that can be chosen.
    pub(crate) projects: Vec<Project>,
    /// The runs.
    pub(crate) runs: Page<Run>,
}

/// The page.
pub(crate) fn page(view: &Runs) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Runs" } } (filters(view)) }
        (list(view))
    };
    layout::page(&view.frame, Place::Runs, "Runs", body)
}

/// One part of the page.
pub(crate) fn part(view: &Runs, name: &str) -> Option<Markup> {
    (name == "list").then(|| list(view))
}

fn filters(view: &Runs) -> Markup {
    html! {
        form class="filters" method="get" action="/runs" role="search" aria-label="Which runs" {
            div class="field" { label for="status" { "Status" }
                select id="status" name="status" {
                    option value="" { "All" }
                    @for one in Status::ALL { option value=(one.name()) selected[view.asked.status == one.name()] { (status_word(one)) } }
                } }
            div class="field" { label for="project" { "Project" }
                select id="project" name="project" {
                    option value="" { "All" }
                    @for one in &view.projects { option value=(one.id) selected[view.asked.project == one.id] { (text::one_line(&one.name, 60)) } }
                } }
            button type="submit" { "Show" }
        }
    }
}

fn list(view: &Runs) -> Markup {
    let narrowed = !view.asked.status.is_empty() || !view.asked.project.is_empty();
    html! {
        section data-part="list" data-about="*" aria-label="Runs" {
            @if view.runs.items.is_empty() && narrowed {
                (empty::empty("No runs match.", "Choose another status or project.", None))
            } @else if view.runs.items.is_empty() {
                (empty::empty("No runs yet.", "Put this before any agent or command:", Some("unstuck exec -- claude -p 'fix the failing tests'")))
            } @else {
                (session::runs("Runs, the newest first", &view.runs.items, view.frame.now))
            }
            @if let Some(next) = &view.runs.next {
                p class="row" { a class="button" href={ "/runs?status=" (encoded(&view.asked.status)) "&project=" (encoded(&view.asked.project)) "&after=" (encoded(next)) } { "Older runs" } }
            }
        }
    }
}

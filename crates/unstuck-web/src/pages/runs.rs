//! Runs page: all runs, the newest first, with filters in the URL.

use maud::{Markup, html};
use serde::Deserialize;
use unstuck_core::views::RunStatus;

use super::layout::{self, NavItem, PageFrame};
use super::parts::badge::status_label;
use super::parts::sanitized_text::percent_encoded;
use super::parts::{empty_state, run_tables, sanitized_text};
use crate::model::{ListPage, ProjectResponse, RunSummaryResponse};

/// Query parameters of the page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunsPageQuery {
    /// Filter by status.
    pub(crate) status: String,
    /// Filter by project id.
    pub(crate) project: String,
    /// Cursor of the page.
    pub(crate) after: String,
    /// Part of the page to render.
    pub(crate) part: Option<String>,
}

/// Data of the page.
#[derive(Debug, Clone)]
pub(crate) struct RunsPage {
    /// Common page frame.
    pub(crate) frame: PageFrame,
    /// Query parameters.
    pub(crate) query: RunsPageQuery,
    /// Projects to choose from.
    pub(crate) projects: Vec<ProjectResponse>,
    /// The runs.
    pub(crate) runs: ListPage<RunSummaryResponse>,
}

/// Renders the page.
pub(crate) fn page(view: &RunsPage) -> Markup {
    let body = html! {
        div class="page-head" { div class="titles" { h1 { "Runs" } } (filters(view)) }
        (list(view))
    };
    layout::page(&view.frame, NavItem::Runs, "Runs", body)
}

/// Renders one part of the page.
pub(crate) fn part(view: &RunsPage, name: &str) -> Option<Markup> {
    (name == "list").then(|| list(view))
}

fn filters(view: &RunsPage) -> Markup {
    html! {
        form class="filters" method="get" action="/runs" role="search" aria-label="Filter runs" {
            div class="field" { label for="status" { "Status" }
                select id="status" name="status" {
                    option value="" { "All" }
                    @for one in RunStatus::ALL { option value=(one.name()) selected[view.query.status == one.name()] { (status_label(one)) } }
                } }
            div class="field" { label for="project" { "Project" }
                select id="project" name="project" {
                    option value="" { "All" }
                    @for one in &view.projects { option value=(one.id) selected[view.query.project == one.id] { (sanitized_text::one_line(&one.name, 60)) } }
                } }
            button type="submit" { "Show" }
        }
    }
}

fn list(view: &RunsPage) -> Markup {
    let narrowed = !view.query.status.is_empty() || !view.query.project.is_empty();
    html! {
        section data-part="list" data-about="*" aria-label="Runs" {
            @if view.runs.items.is_empty() && narrowed {
                (empty_state::empty_state("No runs match.", "Change the filters.", None))
            } @else if view.runs.items.is_empty() {
                (empty_state::empty_state("No runs yet.", "Run any agent or command with unstuck:", Some("unstuck exec -- claude -p 'fix the failing tests'")))
            } @else {
                (run_tables::run_table("Runs, newest first", &view.runs.items, view.frame.now))
            }
            @if let Some(next) = &view.runs.next {
                p class="row" { a class="button" href={ "/runs?status=" (percent_encoded(&view.query.status)) "&project=" (percent_encoded(&view.query.project)) "&after=" (percent_encoded(next)) } { "Older runs" } }
            }
        }
    }
}

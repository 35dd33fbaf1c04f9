//! Routes of the dashboard, and how pages and their parts are returned.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;
use unstuck_core::{SessionId, Timestamp};

use super::layout::{self, PageFrame};
use super::parts::controls::Permissions;
use super::{
    assets, failures, inbox, login, overview, page_data, policies, run, runs, session, settings,
};
use crate::auth::CallerIdentity;
use crate::commands::{RetrySession, SwitchModel};
use crate::model::{ProblemDetails, SessionRetryBody};
use crate::server_state::WebState;

/// Maximum number of parts per request.
const MOST_PARTS: usize = 20;

/// Creates the router of all pages and assets.
pub(crate) fn router() -> Router<Arc<WebState>> {
    Router::new()
        .route("/", get(overview_page))
        .route("/runs", get(runs_page))
        .route("/runs/{id}", get(run_page))
        .route("/sessions/{id}", get(session_page))
        .route("/inbox", get(inbox_page))
        .route("/inbox/{id}", get(escalation_page))
        .route("/inbox/{id}/preview", post(preview))
        .route("/failures", get(failures_page))
        .route("/policies", get(policies_page))
        .route("/settings", get(settings_page))
        .route("/login", get(login_page))
        .route("/assets/{name}", get(assets::serve))
}

/// Returns the page for an unknown path.
pub(crate) fn not_found() -> Response {
    let page = login::error_page(&static_frame(), "Not found", "Page not found.");
    (StatusCode::NOT_FOUND, page).into_response()
}

/// Returns a page frame without live data.
fn static_frame() -> PageFrame {
    PageFrame {
        now: Timestamp::from_seconds(0),
        open_escalations: 0,
        permissions: Permissions::default(),
        is_logged_in: false,
        login_ended: false,
        rejected: None,
        stream: None,
    }
}

/// A page that can be rendered whole or in parts.
trait PageView {
    fn frame(&self) -> &PageFrame;
    fn page(&self) -> Markup;
    fn part(&self, name: &str) -> Option<Markup>;
}

macro_rules! shown {
    ($($view:ty: $page:path, $part:path;)+) => {
        $(impl PageView for $view {
            fn frame(&self) -> &PageFrame {
                &self.frame
            }
            fn page(&self) -> Markup {
                $page(self)
            }
            fn part(&self, name: &str) -> Option<Markup> {
                $part(self, name)
            }
        })+
    };
}

shown! {
    overview::OverviewPage: overview::page, overview::part;
    runs::RunsPage: runs::page, runs::part;
    run::RunPage: run::page, run::part;
    session::SessionPage: session::page, session::part;
    inbox::InboxPage: inbox::page, inbox::part;
    inbox::EscalationPage: inbox::escalation_page, inbox::escalation_part;
    failures::FailuresPage: failures::page, failures::part;
    policies::PoliciesPage: policies::page, policies::part;
    settings::SettingsPage: settings::page, settings::part;
}

/// Renders the page or the requested parts.
fn render_page<V: PageView>(view: Result<V, ProblemDetails>, parts: Option<&str>) -> Response {
    let view = match view {
        Ok(view) => view,
        Err(problem) => return error_response(&problem, parts.is_some()),
    };
    let Some(parts) = parts else {
        return view.page().into_response();
    };
    let one = |name: &str| match name {
        "open-count" => Some(layout::open_count(view.frame().open_escalations)),
        "banner" => Some(layout::banner(view.frame())),
        name => view.part(name),
    };
    let found: Vec<_> = parts.split(',').take(MOST_PARTS).filter_map(one).collect();
    html! { @for part in found { (part) } }.into_response()
}

/// Renders an error as a page, or as a line in place of a part.
pub(crate) fn error_response(problem: &ProblemDetails, instead_of_part: bool) -> Response {
    let told = detail_for_people(&problem.detail);
    let title = match problem.status_code() {
        StatusCode::NOT_FOUND => "Not found",
        _ => problem.title,
    };
    let page = if instead_of_part {
        html! { p class="says is-bad" role="alert" { (told) } div class="actions" { button type="button" data-close { "Close" } } }
    } else {
        login::error_page(&static_frame(), title, &told)
    };
    (problem.status_code(), page).into_response()
}

/// Formats the detail of a problem for humans, without hints for programs.
fn detail_for_people(detail: &str) -> String {
    let told = detail.split("; GET /").next().unwrap_or(detail);
    let mut letters = told.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let sentence: String = first.chain(letters).collect();
    if sentence.ends_with(['.', '!', '?']) {
        sentence
    } else {
        format!("{sentence}.")
    }
}

/// The query parameters; invalid ones are ignored.
type QueryResult<T> = Result<Query<T>, QueryRejection>;

fn query_or_default<T: Default>(asked: QueryResult<T>) -> T {
    asked.map(|Query(asked)| asked).unwrap_or_default()
}

/// Query of a preview.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PreviewPageQuery {
    network: bool,
}

/// Query for parts of a page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PartQuery {
    part: Option<String>,
}

async fn overview_page(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
    query: QueryResult<PartQuery>,
) -> Response {
    render_page(
        page_data::overview(&web, &who).await,
        query_or_default(query).part.as_deref(),
    )
}

async fn runs_page(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
    query: QueryResult<runs::RunsPageQuery>,
) -> Response {
    let asked = query_or_default(query);
    let part = asked.part.clone();
    render_page(page_data::runs(&web, &who, asked).await, part.as_deref())
}

async fn run_page(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
    Path(id): Path<String>,
    query: QueryResult<PartQuery>,
) -> Response {
    render_page(
        page_data::run(&web, &who, &id).await,
        query_or_default(query).part.as_deref(),
    )
}

async fn session_page(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
    Path(id): Path<String>,
    query: QueryResult<PartQuery>,
) -> Response {
    let part = query_or_default(query).part;
    let shown = match part.as_deref() {
        Some("retry-form") => retry_form(&web, &who, &id).await,
        Some("escalate-form") => model_switch_form(&web, &who, &id).await,
        part => return render_page(page_data::session(&web, &who, &id).await, part),
    };
    match shown {
        Ok(form) => form.into_response(),
        Err(problem) => error_response(&problem, true),
    }
}

async fn retry_form(
    web: &WebState,
    who: &CallerIdentity,
    id: &str,
) -> Result<Markup, ProblemDetails> {
    let view = page_data::session(web, who, id).await?;
    let retrying = RetrySession {
        session: SessionId::new(id),
        options: SessionRetryBody {
            with_context: true,
            ..SessionRetryBody::default()
        },
        who: who.audit_name(),
    };
    let prompt = web.deeds().retry_prompt(retrying).await?;
    Ok(session::retry_dialog(&view, &prompt))
}

async fn model_switch_form(
    web: &WebState,
    who: &CallerIdentity,
    id: &str,
) -> Result<Markup, ProblemDetails> {
    let view = page_data::session(web, who, id).await?;
    let escalating = SwitchModel {
        session: SessionId::new(id),
        to: None,
        who: who.audit_name(),
    };
    let estimate = web.deeds().estimate(escalating).await?;
    Ok(session::model_switch_dialog(&view, &estimate))
}

async fn inbox_page(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
    query: QueryResult<PartQuery>,
) -> Response {
    render_page(
        page_data::inbox(&web, &who).await,
        query_or_default(query).part.as_deref(),
    )
}

async fn escalation_page(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
    Path(id): Path<String>,
    query: QueryResult<PartQuery>,
) -> Response {
    render_page(
        page_data::escalation(&web, &who, &id).await,
        query_or_default(query).part.as_deref(),
    )
}

/// Previews a proposed command; it runs the command, so a plain link must not trigger it.
async fn preview(
    State(web): State<Arc<WebState>>,
    Path(id): Path<String>,
    query: QueryResult<PreviewPageQuery>,
) -> Response {
    let tried = web
        .deeds()
        .preview(&id, query_or_default(query).network)
        .await;
    match tried.map_err(ProblemDetails::from) {
        Ok(tried) => inbox::preview(&tried).into_response(),
        Err(problem) => error_response(&problem, true),
    }
}

async fn failures_page(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
    query: QueryResult<failures::FailuresPageQuery>,
) -> Response {
    let asked = query_or_default(query);
    let part = asked.part.clone();
    render_page(
        page_data::failures(&web, &who, asked).await,
        part.as_deref(),
    )
}

async fn policies_page(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
    query: QueryResult<policies::PoliciesPageQuery>,
) -> Response {
    let asked = query_or_default(query);
    let view = page_data::policies(&web, &who, &asked).await;
    render_page(view, asked.part.as_deref())
}

async fn settings_page(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
    query: QueryResult<PartQuery>,
) -> Response {
    render_page(
        page_data::settings(&web, &who).await,
        query_or_default(query).part.as_deref(),
    )
}

/// Query of the login page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct LoginPageQuery {
    back: String,
}

async fn login_page(query: QueryResult<LoginPageQuery>) -> Markup {
    let asked = query_or_default(query).back;
    login::page(&static_frame(), login::safe_return_path(&asked))
}

//! Which address shows which page, and how a page or a part of it is answered.

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

use super::layout::{self, Frame};
use super::parts::controls::May;
use super::{assets, failures, inbox, login, looking, now, policies, run, runs, session, settings};
use crate::deeds::{Escalating, Retrying};
use crate::guard::Who;
use crate::model::{Problem, RetryOptions};
use crate::web::Web;

/// So many parts are asked for at once at most.
const MOST_PARTS: usize = 20;

/// The routes of all pages and of what they need.
pub(crate) fn router() -> Router<Arc<Web>> {
    Router::new()
        .route("/", get(now_page))
        .route("/runs", get(runs_page))
        .route("/runs/{id}", get(run_page))
        .route("/sessions/{id}", get(session_page))
        .route("/inbox", get(inbox_page))
        .route("/inbox/{id}", get(question_page))
        .route("/inbox/{id}/preview", post(preview))
        .route("/failures", get(failures_page))
        .route("/policies", get(policies_page))
        .route("/settings", get(settings_page))
        .route("/login", get(login_page))
        .route("/assets/{name}", get(assets::serve))
}

/// The answer to whoever asks for a page that is not there.
pub(crate) fn not_found() -> Response {
    let page = login::trouble(&still(), "Not found", "There is no such page.");
    (StatusCode::NOT_FOUND, page).into_response()
}

/// What stands around a page that knows nothing of the present.
fn still() -> Frame {
    Frame {
        now: Timestamp::from_seconds(0),
        open: 0,
        may: May::default(),
        known: false,
        login_ended: false,
        rejected: None,
        stream: None,
    }
}

/// A page, or parts of it.
trait Shown {
    fn frame(&self) -> &Frame;
    fn page(&self) -> Markup;
    fn part(&self, name: &str) -> Option<Markup>;
}

macro_rules! shown {
    ($($view:ty: $page:path, $part:path;)+) => {
        $(impl Shown for $view {
            fn frame(&self) -> &Frame {
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
    now::Now: now::page, now::part;
    runs::Runs: runs::page, runs::part;
    run::RunPage: run::page, run::part;
    session::SessionPage: session::page, session::part;
    inbox::Inbox: inbox::page, inbox::part;
    inbox::QuestionPage: inbox::question_page, inbox::question_part;
    failures::Failures: failures::page, failures::part;
    policies::Policies: policies::page, policies::part;
    settings::Settings: settings::page, settings::part;
}

/// Answers with the page, or with the parts that are asked for.
fn show<V: Shown>(view: Result<V, Problem>, parts: Option<&str>) -> Response {
    let view = match view {
        Ok(view) => view,
        Err(problem) => return trouble(&problem, parts.is_some()),
    };
    let Some(parts) = parts else {
        return view.page().into_response();
    };
    let one = |name: &str| match name {
        "open-count" => Some(layout::open_count(view.frame().open)),
        "banner" => Some(layout::banner(view.frame())),
        name => view.part(name),
    };
    let found: Vec<_> = parts.split(',').take(MOST_PARTS).filter_map(one).collect();
    html! { @for part in found { (part) } }.into_response()
}

/// What went wrong, as a page; in place of a part, as a line.
pub(crate) fn trouble(problem: &Problem, instead_of_part: bool) -> Response {
    let told = for_people(&problem.detail);
    let title = match problem.code() {
        StatusCode::NOT_FOUND => "Not found",
        _ => problem.title,
    };
    let page = match instead_of_part {
        true => {
            html! { p class="says is-bad" role="alert" { (told) } div class="actions" { button type="button" data-close { "Close" } } }
        }
        false => login::trouble(&still(), title, &told),
    };
    (problem.code(), page).into_response()
}

/// A detail of a problem as a sentence, without what only programs would do next.
fn for_people(detail: &str) -> String {
    let told = detail.split("; GET /").next().unwrap_or(detail);
    let mut letters = told.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let sentence: String = first.chain(letters).collect();
    match sentence.ends_with(['.', '!', '?']) {
        true => sentence,
        false => format!("{sentence}."),
    }
}

/// What stands in the address; what cannot be read does not count.
type Asked<T> = Result<Query<T>, QueryRejection>;

fn asked<T: Default>(asked: Asked<T>) -> T {
    asked.map(|Query(asked)| asked).unwrap_or_default()
}

/// How a command is tried out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PreviewOptions {
    network: bool,
}

/// Which parts of a page are asked for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Parts {
    part: Option<String>,
}

async fn now_page(State(web): State<Arc<Web>>, who: Who, query: Asked<Parts>) -> Response {
    show(looking::now(&web, &who).await, asked(query).part.as_deref())
}

async fn runs_page(State(web): State<Arc<Web>>, who: Who, query: Asked<runs::Asked>) -> Response {
    let asked = asked(query);
    let part = asked.part.clone();
    show(looking::runs(&web, &who, asked).await, part.as_deref())
}

async fn run_page(
    State(web): State<Arc<Web>>,
    who: Who,
    Path(id): Path<String>,
    query: Asked<Parts>,
) -> Response {
    show(
        looking::run(&web, &who, &id).await,
        asked(query).part.as_deref(),
    )
}

async fn session_page(
    State(web): State<Arc<Web>>,
    who: Who,
    Path(id): Path<String>,
    query: Asked<Parts>,
) -> Response {
    let part = asked(query).part;
    let shown = match part.as_deref() {
        Some("retry-form") => retry_form(&web, &who, &id).await,
        Some("escalate-form") => escalate_form(&web, &who, &id).await,
        part => return show(looking::session(&web, &who, &id).await, part),
    };
    match shown {
        Ok(form) => form.into_response(),
        Err(problem) => trouble(&problem, true),
    }
}

async fn retry_form(web: &Web, who: &Who, id: &str) -> Result<Markup, Problem> {
    let view = looking::session(web, who, id).await?;
    let retrying = Retrying {
        session: SessionId::new(id),
        options: RetryOptions {
            with_context: true,
            ..RetryOptions::default()
        },
        who: who.signature(),
    };
    let prompt = web.deeds().retry_prompt(retrying).await?;
    Ok(session::retry_dialog(&view, &prompt))
}

async fn escalate_form(web: &Web, who: &Who, id: &str) -> Result<Markup, Problem> {
    let view = looking::session(web, who, id).await?;
    let escalating = Escalating {
        session: SessionId::new(id),
        to: None,
        who: who.signature(),
    };
    let estimate = web.deeds().estimate(escalating).await?;
    Ok(session::escalate_dialog(&view, &estimate))
}

async fn inbox_page(State(web): State<Arc<Web>>, who: Who, query: Asked<Parts>) -> Response {
    show(
        looking::inbox(&web, &who).await,
        asked(query).part.as_deref(),
    )
}

async fn question_page(
    State(web): State<Arc<Web>>,
    who: Who,
    Path(id): Path<String>,
    query: Asked<Parts>,
) -> Response {
    show(
        looking::question(&web, &who, &id).await,
        asked(query).part.as_deref(),
    )
}

/// What a proposed command would change: it is tried out, so it is nothing that a link may do.
async fn preview(
    State(web): State<Arc<Web>>,
    Path(id): Path<String>,
    query: Asked<PreviewOptions>,
) -> Response {
    let tried = web.deeds().preview(&id, asked(query).network).await;
    match tried.map_err(Problem::from) {
        Ok(tried) => inbox::preview(&tried).into_response(),
        Err(problem) => trouble(&problem, true),
    }
}

async fn failures_page(
    State(web): State<Arc<Web>>,
    who: Who,
    query: Asked<failures::Asked>,
) -> Response {
    let asked = asked(query);
    let part = asked.part.clone();
    show(looking::failures(&web, &who, asked).await, part.as_deref())
}

async fn policies_page(
    State(web): State<Arc<Web>>,
    who: Who,
    query: Asked<policies::Asked>,
) -> Response {
    let asked = asked(query);
    let view = looking::policies(&web, &who, &asked).await;
    show(view, asked.part.as_deref())
}

async fn settings_page(State(web): State<Arc<Web>>, who: Who, query: Asked<Parts>) -> Response {
    show(
        looking::settings(&web, &who).await,
        asked(query).part.as_deref(),
    )
}

/// Where somebody goes once they have logged in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Back {
    back: String,
}

async fn login_page(query: Asked<Back>) -> Markup {
    let asked = asked(query).back;
    login::page(&still(), login::way_back(&asked))
}

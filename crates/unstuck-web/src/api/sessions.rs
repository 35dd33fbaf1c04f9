//! Sessions: how they stand, trying them again, and a stronger model for them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use unstuck_core::{SessionId, duration};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Asked, Body, Named, Part, limit};
use crate::deeds::{Escalating, Retrying};
use crate::guard::Who;
use crate::model::{
    Attempt, EscalateSession, Escalated, FieldProblem, Page, Problem, RetryOptions, RetryPrompt,
    RetryStarted, Session,
};
use crate::reading;
use crate::web::Web;

pub(super) fn routes() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::new()
        .routes(routes!(list_sessions))
        .routes(routes!(get_session))
        .routes(routes!(list_session_attempts))
        .routes(routes!(show_retry_prompt))
        .routes(routes!(retry_session))
        .routes(routes!(escalate_session))
}

/// List the sessions that run, wait or need a person
#[utoipa::path(
    get,
    path = "/api/sessions",
    tag = "sessions",
    params(Part),
    responses((status = OK, description = "Sessions.", body = Page<Session>))
)]
async fn list_sessions(
    State(web): State<Arc<Web>>,
    Asked(part): Asked<Part>,
) -> Result<Response, Problem> {
    let limit = limit(part.limit)?;
    let all = reading::active_sessions(&web, MOST_RUNS).await?;
    let from = match &part.after {
        None => 0,
        Some(after) => {
            let place = all.iter().position(|one| one.id == *after);
            let unknown = || Problem::bad_request(format!("`after` names no session: {after}"));
            place.ok_or_else(unknown)? + 1
        }
    };
    let left = all.len() - from;
    let items: Vec<_> = all.into_iter().skip(from).take(limit).collect();
    let next = items.last().filter(|_| left > limit);
    web.told(&Page {
        next: next.map(|last| last.id.clone()),
        items,
    })
}

/// Of so many runs at most the sessions are told that go on.
const MOST_RUNS: usize = 500;

/// Show a session
#[utoipa::path(
    get,
    path = "/api/sessions/{id}",
    tag = "sessions",
    params(("id" = String, Path, description = "The id of the session.")),
    responses((status = OK, description = "The session.", body = Session))
)]
async fn get_session(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
) -> Result<Response, Problem> {
    web.told(&reading::session(&web, &id).await?)
}

/// List the attempts of a session, in the order in which they began
#[utoipa::path(
    get,
    path = "/api/sessions/{id}/attempts",
    tag = "sessions",
    params(("id" = String, Path, description = "The id of the session.")),
    responses((status = OK, description = "Its attempts.", body = Page<Attempt>))
)]
async fn list_session_attempts(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
) -> Result<Response, Problem> {
    web.told(&Page::whole(reading::session_attempts(&web, &id).await?))
}

/// Show what a retry would send
///
/// Nothing is changed.
#[utoipa::path(
    post,
    path = "/api/sessions/{id}/retry-prompt",
    tag = "sessions",
    params(("id" = String, Path, description = "The id of the session.")),
    request_body = RetryOptions,
    responses((status = OK, description = "What would be sent.", body = RetryPrompt))
)]
async fn show_retry_prompt(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
    who: Who,
    Body(options): Body<RetryOptions>,
) -> Result<Response, Problem> {
    let retrying = retrying(&web, id, options, &who).await?;
    web.told(&web.deeds().retry_prompt(retrying).await?)
}

/// Try a session again
///
/// With the error in the prompt, with a person's words, with another model or more time, as the options say. What was
/// tried before stays in the history.
#[utoipa::path(
    post,
    path = "/api/sessions/{id}/retry",
    tag = "sessions",
    params(("id" = String, Path, description = "The id of the session.")),
    request_body = RetryOptions,
    responses((status = ACCEPTED, description = "It is tried again.", body = RetryStarted))
)]
async fn retry_session(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
    who: Who,
    Body(options): Body<RetryOptions>,
) -> Result<Response, Problem> {
    let retrying = retrying(&web, id, options, &who).await?;
    let started = web.told(&web.deeds().retry(retrying).await?)?;
    Ok((StatusCode::ACCEPTED, started).into_response())
}

/// Go on with a stronger model
///
/// Without `confirm` nothing is changed: the answer tells what it is expected to cost. With it the session's further
/// calls go to the other model, in the same conversation.
#[utoipa::path(
    post,
    path = "/api/sessions/{id}/escalate",
    tag = "sessions",
    params(("id" = String, Path, description = "The id of the session.")),
    request_body = EscalateSession,
    responses((status = OK, description = "The estimate, and the change if it was confirmed.", body = Escalated))
)]
async fn escalate_session(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
    who: Who,
    Body(wanted): Body<EscalateSession>,
) -> Result<Response, Problem> {
    let session = reading::session(&web, &id).await?;
    let escalating = Escalating {
        session: SessionId::new(session.id),
        to: wanted.to,
        who: who.signature(),
    };
    let estimate = web.deeds().estimate(escalating.clone()).await?;
    let change = match wanted.confirm {
        true => Some(web.deeds().escalate(escalating).await?),
        false => None,
    };
    web.told(&Escalated { estimate, change })
}

async fn retrying(
    web: &Web,
    id: String,
    options: RetryOptions,
    who: &Who,
) -> Result<Retrying, Problem> {
    let session = reading::session(web, &id).await?;
    if let Some(timeout) = &options.timeout
        && duration::parse(timeout).is_err()
    {
        let wrong = FieldProblem {
            field: "timeout".to_owned(),
            value: timeout.clone(),
            why: "must be a duration like 30s, 20m or 1h30m".to_owned(),
        };
        let detail = "`timeout` is not a duration";
        let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
        return Err(problem.with_errors(vec![wrong]));
    }
    Ok(Retrying {
        session: SessionId::new(session.id),
        options,
        who: who.signature(),
    })
}

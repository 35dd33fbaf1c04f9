//! Endpoints for sessions: status, retry and model switch.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use unstuck_core::{SessionId, duration};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::{JsonBody, PageQuery, PathParams, QueryParams, page_limit};
use crate::auth::CallerIdentity;
use crate::commands::{RetrySession, SwitchModel};
use crate::model::{
    AttemptResponse, FieldProblem, ListPage, ModelSwitchRequest, ModelSwitchResult, ProblemDetails,
    RetryPromptResponse, SessionResponse, SessionRetryBody, SessionRetryResponse,
};
use crate::queries;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(list_sessions))
        .routes(routes!(get_session))
        .routes(routes!(list_session_attempts))
        .routes(routes!(show_retry_prompt))
        .routes(routes!(retry_session))
        .routes(routes!(escalate_session))
}

/// List active sessions: running, waiting or blocked
#[utoipa::path(
    get,
    path = "/api/sessions",
    tag = "sessions",
    params(PageQuery),
    responses((status = OK, description = "Sessions.", body = ListPage<SessionResponse>))
)]
async fn list_sessions(
    State(web): State<Arc<WebState>>,
    QueryParams(part): QueryParams<PageQuery>,
) -> Result<Response, ProblemDetails> {
    let limit = page_limit(part.limit)?;
    let all = queries::active_sessions(&web, MAX_ACTIVE_RUNS).await?;
    let from = match &part.after {
        None => 0,
        Some(after) => {
            let place = all.iter().position(|one| one.id == *after);
            let unknown =
                || ProblemDetails::bad_request(format!("unknown session `{after}` in `after`"));
            place.ok_or_else(unknown)? + 1
        }
    };
    let left = all.len() - from;
    let items: Vec<_> = all.into_iter().skip(from).take(limit).collect();
    let next = items.last().filter(|_| left > limit);
    web.json_response(&ListPage {
        next: next.map(|last| last.id.clone()),
        items,
    })
}

/// Maximum number of active runs whose sessions are listed.
const MAX_ACTIVE_RUNS: usize = 500;

/// Show a session
#[utoipa::path(
    get,
    path = "/api/sessions/{id}",
    tag = "sessions",
    params(("id" = String, Path, description = "Id of the session.")),
    responses((status = OK, description = "The session.", body = SessionResponse))
)]
async fn get_session(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ProblemDetails> {
    web.json_response(&queries::session(&web, &id).await?)
}

/// List the attempts of a session, in order of their start
#[utoipa::path(
    get,
    path = "/api/sessions/{id}/attempts",
    tag = "sessions",
    params(("id" = String, Path, description = "Id of the session.")),
    responses((status = OK, description = "Attempts of the session.", body = ListPage<AttemptResponse>))
)]
async fn list_session_attempts(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ProblemDetails> {
    web.json_response(&ListPage::single(
        queries::session_attempts(&web, &id).await?,
    ))
}

/// Preview the prompt of a retry
///
/// Changes nothing.
#[utoipa::path(
    post,
    path = "/api/sessions/{id}/retry-prompt",
    tag = "sessions",
    params(("id" = String, Path, description = "Id of the session.")),
    request_body = SessionRetryBody,
    responses((status = OK, description = "Prompt that would be sent.", body = RetryPromptResponse))
)]
async fn show_retry_prompt(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    who: CallerIdentity,
    JsonBody(options): JsonBody<SessionRetryBody>,
) -> Result<Response, ProblemDetails> {
    let retrying = retry_command(&web, id, options, &who).await?;
    web.json_response(&web.deeds().retry_prompt(retrying).await?)
}

/// Retry a session
///
/// The options add the error or additional instructions to the prompt, change the model or extend the time limit.
/// Earlier attempts stay in the history.
#[utoipa::path(
    post,
    path = "/api/sessions/{id}/retry",
    tag = "sessions",
    params(("id" = String, Path, description = "Id of the session.")),
    request_body = SessionRetryBody,
    responses((status = ACCEPTED, description = "Retry started.", body = SessionRetryResponse))
)]
async fn retry_session(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    who: CallerIdentity,
    JsonBody(options): JsonBody<SessionRetryBody>,
) -> Result<Response, ProblemDetails> {
    let retrying = retry_command(&web, id, options, &who).await?;
    let started = web.json_response(&web.deeds().retry(retrying).await?)?;
    Ok((StatusCode::ACCEPTED, started).into_response())
}

/// Switch to a stronger model
///
/// Without `confirm` nothing changes and only the cost estimate is returned. With it, further calls of the session use
/// the new model in the same conversation.
#[utoipa::path(
    post,
    path = "/api/sessions/{id}/escalate",
    tag = "sessions",
    params(("id" = String, Path, description = "Id of the session.")),
    request_body = ModelSwitchRequest,
    responses((status = OK, description = "Cost estimate, and the model switch if confirmed.", body = ModelSwitchResult))
)]
async fn escalate_session(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    who: CallerIdentity,
    JsonBody(wanted): JsonBody<ModelSwitchRequest>,
) -> Result<Response, ProblemDetails> {
    let session = queries::session(&web, &id).await?;
    let escalating = SwitchModel {
        session: SessionId::new(session.id),
        to: wanted.to,
        who: who.audit_name(),
    };
    let estimate = web.deeds().estimate(escalating.clone()).await?;
    let change = if wanted.confirm {
        Some(web.deeds().escalate(escalating).await?)
    } else {
        None
    };
    web.json_response(&ModelSwitchResult { estimate, change })
}

async fn retry_command(
    web: &WebState,
    id: String,
    options: SessionRetryBody,
    who: &CallerIdentity,
) -> Result<RetrySession, ProblemDetails> {
    let session = queries::session(web, &id).await?;
    if let Some(timeout) = &options.timeout
        && duration::parse(timeout).is_err()
    {
        let wrong = FieldProblem {
            field: "timeout".to_owned(),
            value: timeout.clone(),
            reason: "must be a duration like 30s, 20m or 1h30m".to_owned(),
        };
        let detail = "invalid `timeout`";
        let problem = ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
        return Err(problem.with_errors(vec![wrong]));
    }
    Ok(RetrySession {
        session: SessionId::new(session.id),
        options,
        who: who.audit_name(),
    })
}

//! Endpoints for escalations and their answers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use unstuck_core::{RunId, escalation};
use unstuck_store::{EscalationFilter, EscalationStatusFilter};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::{JsonBody, PathParams, QueryParams, page_limit};
use crate::auth::CallerIdentity;
use crate::commands::AnswerEscalation;
use crate::model::{
    AnswerRequest, EscalationAnswerResponse, EscalationResponse, ListPage, ProblemDetails,
    RepairPreview,
};
use crate::queries;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(list_escalations))
        .routes(routes!(get_escalation))
        .routes(routes!(answer_escalation))
        .routes(routes!(preview_escalation))
}

/// Query for a list of escalations.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EscalationListQuery {
    /// Filter by run.
    run: Option<String>,
    /// Filter by project id.
    project: Option<String>,
    /// Include answered escalations.
    answered: bool,
    /// Maximum number of results; the default is 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// Value of `next` from the previous page.
    after: Option<String>,
}

/// List pending escalations, the newest first
#[utoipa::path(
    get,
    path = "/api/escalations",
    tag = "escalations",
    params(EscalationListQuery),
    responses((status = OK, description = "Questions.", body = ListPage<EscalationResponse>))
)]
async fn list_escalations(
    State(web): State<Arc<WebState>>,
    QueryParams(asked): QueryParams<EscalationListQuery>,
) -> Result<Response, ProblemDetails> {
    let project = match &asked.project {
        Some(id) => Some(queries::project_root(&web, id).await?),
        None => None,
    };
    let filter = EscalationFilter {
        run: asked.run.map(RunId::new),
        project,
        status: if asked.answered {
            EscalationStatusFilter::Any
        } else {
            EscalationStatusFilter::Open
        },
        limit: Some(page_limit(asked.limit)?),
        after: asked.after,
        ..EscalationFilter::default()
    };
    web.json_response(&queries::escalations(&web, &filter).await?)
}

/// Show an escalation
#[utoipa::path(
    get,
    path = "/api/escalations/{id}",
    tag = "escalations",
    params(("id" = String, Path, description = "Id of the escalation.")),
    responses((status = OK, description = "The escalation.", body = EscalationResponse))
)]
async fn get_escalation(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ProblemDetails> {
    web.json_response(&queries::escalation(&web, &id).await?)
}

/// Answer an escalation
///
/// The first answer is accepted and the run continues.
#[utoipa::path(
    post,
    path = "/api/escalations/{id}/answer",
    tag = "escalations",
    params(("id" = String, Path, description = "Id of the escalation.")),
    request_body = AnswerRequest,
    responses(
        (status = OK, description = "The escalation was answered.", body = EscalationAnswerResponse),
        (
            status = PRECONDITION_FAILED,
            description = "The escalation changed since `hash` was shown.",
            content_type = "application/problem+json",
            body = ProblemDetails
        )
    )
)]
async fn answer_escalation(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    who: CallerIdentity,
    JsonBody(given): JsonBody<AnswerRequest>,
) -> Result<Response, ProblemDetails> {
    let asked = queries::escalation(&web, &id).await?;
    if let Some(answered) = &asked.outcome {
        let said = answered
            .resolution
            .as_ref()
            .map_or("no longer needed", |how| &how.summary);
        let at = answered.at;
        return Err(ProblemDetails::conflict(format!(
            "request {id} is already closed ({said}, {at})"
        )));
    }
    if asked.answers.iter().all(|one| one.answer != given.answer) {
        let known: Vec<_> = asked
            .answers
            .iter()
            .map(|one| escalation::EscalationAnswer::from(one.answer).name())
            .collect();
        return Err(unprocessable(format!(
            "answer not available; choose one of: {}",
            known.join(", ")
        )));
    }
    let answer = escalation::EscalationAnswer::from(given.answer);
    if answer == escalation::EscalationAnswer::Retry && given.note.trim().is_empty() {
        return Err(unprocessable(
            "retry requires instructions in `note`; use resolve to retry unchanged".to_owned(),
        ));
    }
    let answering = AnswerEscalation {
        escalation: id,
        answer,
        note: given.note,
        hash: given.hash,
        who: who.audit_name(),
    };
    web.json_response(&web.deeds().answer(answering).await?)
}

fn unprocessable(detail: String) -> ProblemDetails {
    ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Query for a preview.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PreviewQuery {
    /// Allow network access; its effects are real.
    network: bool,
}

/// Preview the changes of a proposed command
///
/// Runs the command on a copy; does not answer the escalation.
#[utoipa::path(
    post,
    path = "/api/escalations/{id}/preview",
    tag = "escalations",
    params(("id" = String, Path, description = "Id of the escalation."), PreviewQuery),
    responses((status = OK, description = "Changes that the command would make.", body = RepairPreview))
)]
async fn preview_escalation(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    QueryParams(options): QueryParams<PreviewQuery>,
) -> Result<Response, ProblemDetails> {
    let asked = queries::escalation(&web, &id).await?;
    if !asked.can_preview {
        return Err(ProblemDetails::conflict(format!(
            "request {id} has no command to preview"
        )));
    }
    web.json_response(&web.deeds().preview(&id, options.network).await?)
}

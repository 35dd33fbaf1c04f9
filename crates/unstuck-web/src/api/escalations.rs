//! Questions to people, and their answers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use unstuck_core::{RunId, question};
use unstuck_store::{QuestionFilter, Standing};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Asked, Body, Named, limit};
use crate::deeds::Answering;
use crate::guard::Who;
use crate::model::{AnswerGiven, AnswerTaken, Escalation, Page, Preview, Problem};
use crate::reading;
use crate::web::Web;

pub(super) fn routes() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::new()
        .routes(routes!(list_escalations))
        .routes(routes!(get_escalation))
        .routes(routes!(answer_escalation))
        .routes(routes!(preview_escalation))
}

/// Which questions are asked for.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EscalationsAsked {
    /// Those of this run.
    run: Option<String>,
    /// Those of the project with this id.
    project: Option<String>,
    /// Also those that were answered.
    answered: bool,
    /// At most so many; 50 where left out.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// What `next` of the page before said.
    after: Option<String>,
}

/// List the questions that wait for a person, the newest first
#[utoipa::path(
    get,
    path = "/api/escalations",
    tag = "escalations",
    params(EscalationsAsked),
    responses((status = OK, description = "Questions.", body = Page<Escalation>))
)]
async fn list_escalations(
    State(web): State<Arc<Web>>,
    Asked(asked): Asked<EscalationsAsked>,
) -> Result<Response, Problem> {
    let project = match &asked.project {
        Some(id) => Some(reading::project_root(&web, id).await?),
        None => None,
    };
    let filter = QuestionFilter {
        run: asked.run.map(RunId::new),
        project,
        standing: match asked.answered {
            true => Standing::Any,
            false => Standing::Waiting,
        },
        limit: Some(limit(asked.limit)?),
        after: asked.after,
        ..QuestionFilter::default()
    };
    web.told(&reading::escalations(&web, &filter).await?)
}

/// Show a question whole
#[utoipa::path(
    get,
    path = "/api/escalations/{id}",
    tag = "escalations",
    params(("id" = String, Path, description = "The id of the question.")),
    responses((status = OK, description = "The question.", body = Escalation))
)]
async fn get_escalation(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
) -> Result<Response, Problem> {
    web.told(&reading::escalation(&web, &id).await?)
}

/// Answer a question
///
/// The first answer counts; the run goes on with it.
#[utoipa::path(
    post,
    path = "/api/escalations/{id}/answer",
    tag = "escalations",
    params(("id" = String, Path, description = "The id of the question.")),
    request_body = AnswerGiven,
    responses(
        (status = OK, description = "It is answered.", body = AnswerTaken),
        (
            status = PRECONDITION_FAILED,
            description = "The question has changed since `hash` was shown.",
            content_type = "application/problem+json",
            body = Problem
        )
    )
)]
async fn answer_escalation(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
    who: Who,
    Body(given): Body<AnswerGiven>,
) -> Result<Response, Problem> {
    let asked = reading::escalation(&web, &id).await?;
    if let Some(answered) = &asked.answered {
        let said = answered.how.as_ref().map_or("settled", |how| &how.said);
        let at = answered.at;
        return Err(Problem::conflict(format!(
            "{id} was {said} at {at}; the first answer counts"
        )));
    }
    if asked.answers.iter().all(|one| one.answer != given.answer) {
        let known: Vec<_> = asked
            .answers
            .iter()
            .map(|one| question::Answer::from(one.answer).name())
            .collect();
        return Err(unprocessable(format!(
            "this can be answered with {}",
            known.join(", ")
        )));
    }
    let answer = question::Answer::from(given.answer);
    if answer == question::Answer::Retry && given.note.trim().is_empty() {
        return Err(unprocessable(
            "retry needs your words in `note`; resolve tries the same again".to_owned(),
        ));
    }
    let answering = Answering {
        question: id,
        answer,
        note: given.note,
        hash: given.hash,
        who: who.signature(),
    };
    web.told(&web.deeds().answer(answering).await?)
}

fn unprocessable(detail: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// How a command is tried out.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PreviewOptions {
    /// Let it use the network; what it does there is real.
    network: bool,
}

/// Try out what a proposed command would change
///
/// It runs on a copy; nothing is answered.
#[utoipa::path(
    post,
    path = "/api/escalations/{id}/preview",
    tag = "escalations",
    params(("id" = String, Path, description = "The id of the question."), PreviewOptions),
    responses((status = OK, description = "What it would change.", body = Preview))
)]
async fn preview_escalation(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
    Asked(options): Asked<PreviewOptions>,
) -> Result<Response, Problem> {
    let asked = reading::escalation(&web, &id).await?;
    if !asked.can_preview {
        return Err(Problem::conflict(format!("{id} proposes no command")));
    }
    web.told(&web.deeds().preview(&id, options.network).await?)
}

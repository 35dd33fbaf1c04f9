//! Failure analytics, and the failures behind them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use unstuck_core::Timestamp;
use unstuck_store::FailureQuery;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::csv;
use super::extract::{Asked, limit, one};
use crate::leaving::Clean;
use crate::model::{Failure, FailureAnalytics, Page, Problem};
use crate::reading;
use crate::web::Web;

/// So many failures are exported at a time.
const AT_A_TIME: usize = 500;

pub(super) fn routes() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::new()
        .routes(routes!(get_failure_analytics))
        .routes(routes!(list_failures))
        .routes(routes!(export_failures))
}

/// Which failures are asked for.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AnalyticsAsked {
    /// From the hour of this moment on.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Before the hour of this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Only in the project with this id.
    project: Option<String>,
    /// Only of this model.
    model: Option<String>,
    /// Only of this kind.
    kind: Option<String>,
    /// So many messages and prompts at most; 10 where left out.
    #[param(minimum = 1, maximum = 500)]
    top: Option<u32>,
}

/// Which failures are listed.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FailuresAsked {
    /// From this moment on.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Before this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Only in the project with this id.
    project: Option<String>,
    /// Only of this model.
    model: Option<String>,
    /// Only of this kind.
    kind: Option<String>,
    /// At most so many; 50 where left out.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// What `next` of the page before said.
    after: Option<String>,
}

/// How failures are exported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// One line of JSON each.
    #[default]
    Jsonl,
    /// A table with commas.
    Csv,
}

/// Which failures are exported.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportAsked {
    /// `jsonl` where left out.
    #[param(inline)]
    format: Format,
    /// From this moment on.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Before this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Only in the project with this id.
    project: Option<String>,
    /// Only of this model.
    model: Option<String>,
    /// Only of this kind.
    kind: Option<String>,
}

/// Tell what failures say together: how many, of which kind, with which model, prompt and message, on which day
#[utoipa::path(
    get,
    path = "/api/analytics/failures",
    tag = "analytics",
    params(AnalyticsAsked),
    responses((status = OK, description = "The counts.", body = FailureAnalytics))
)]
async fn get_failure_analytics(
    State(web): State<Arc<Web>>,
    Asked(asked): Asked<AnalyticsAsked>,
) -> Result<Response, Problem> {
    let query = FailureQuery {
        since: asked.since,
        until: asked.until,
        project: root(&web, asked.project.as_deref()).await?,
        model: asked.model,
        kind: one("kind", asked.kind.as_deref())?,
        top: asked.top.map(|top| limit(Some(top))).transpose()?,
    };
    web.told(&reading::failure_analytics(&web, &query).await?)
}

/// List failures one by one, the newest first
#[utoipa::path(
    get,
    path = "/api/failures",
    tag = "analytics",
    params(FailuresAsked),
    responses((status = OK, description = "Failures.", body = Page<Failure>))
)]
async fn list_failures(
    State(web): State<Arc<Web>>,
    Asked(asked): Asked<FailuresAsked>,
) -> Result<Response, Problem> {
    let query = FailureQuery {
        since: asked.since,
        until: asked.until,
        project: root(&web, asked.project.as_deref()).await?,
        model: asked.model,
        kind: one("kind", asked.kind.as_deref())?,
        top: None,
    };
    let (after, limit) = (asked.after.as_deref(), limit(asked.limit)?);
    web.told(&reading::failures(&web, &query, after, limit).await?)
}

/// Export failures one by one, the newest first
#[utoipa::path(
    get,
    path = "/api/analytics/failures/export",
    tag = "analytics",
    params(ExportAsked),
    responses((status = OK, description = "All of them, however many.", content(
        (String = "application/jsonl"),
        (String = "text/csv"),
    )))
)]
async fn export_failures(
    State(web): State<Arc<Web>>,
    Asked(asked): Asked<ExportAsked>,
) -> Result<Response, Problem> {
    let query = FailureQuery {
        since: asked.since,
        until: asked.until,
        project: root(&web, asked.project.as_deref()).await?,
        model: asked.model,
        kind: one("kind", asked.kind.as_deref())?,
        top: None,
    };
    // What is wrong with the store is told before the answer begins.
    let first = reading::failures(&web, &query, None, AT_A_TIME).await?;
    let (media_type, name) = match asked.format {
        Format::Jsonl => ("application/jsonl", "failures.jsonl"),
        Format::Csv => ("text/csv; charset=utf-8", "failures.csv"),
    };
    let exporting = Exporting {
        web,
        query,
        format: asked.format,
        page: Some(first),
        is_first: true,
    };
    let body = Body::from_stream(stream::try_unfold(exporting, Exporting::next));
    let attachment = format!("attachment; filename=\"{name}\"");
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_DISPOSITION, &attachment),
    ];
    let mut response = (headers.map(|(name, text)| (name, value(text))), body).into_response();
    response.extensions_mut().insert(Clean);
    Ok(response)
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

async fn root(web: &Web, project: Option<&str>) -> Result<Option<String>, Problem> {
    match project {
        Some(id) => reading::project_root(web, id).await.map(Some),
        None => Ok(None),
    }
}

/// An export that goes on page by page, so that it needs little memory.
struct Exporting {
    web: Arc<Web>,
    query: FailureQuery,
    format: Format,
    /// What is written next; none once all is written.
    page: Option<Page<Failure>>,
    is_first: bool,
}

impl Exporting {
    async fn next(mut self) -> Result<Option<(String, Self)>, std::io::Error> {
        let Some(page) = self.page.take() else {
            return Ok(None);
        };
        let mut text = match (self.format, self.is_first) {
            (Format::Csv, true) => csv::HEAD.to_owned(),
            _ => String::new(),
        };
        self.is_first = false;
        for failure in &page.items {
            self.write(failure, &mut text);
        }
        if let Some(after) = &page.next {
            let next = reading::failures(&self.web, &self.query, Some(after), AT_A_TIME).await;
            // The client sees that the answer broke off.
            let next = next.map_err(|problem| std::io::Error::other(problem.detail))?;
            self.page = Some(next);
        }
        Ok(Some((text, self)))
    }

    fn write(&self, failure: &Failure, text: &mut String) {
        let redactor = &self.web.redactor;
        match self.format {
            Format::Jsonl => {
                let mut line = serde_json::to_value(failure).unwrap_or_default();
                redactor.redact_value(&mut line);
                text.push_str(&line.to_string());
                text.push('\n');
            }
            Format::Csv => text.push_str(&redactor.redact(&csv::line(failure))),
        }
    }
}

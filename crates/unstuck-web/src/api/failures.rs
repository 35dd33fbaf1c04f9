//! Endpoints for failure statistics and the list of failures.

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

use super::extractors::{QueryParams, page_limit, parse_optional};
use super::failure_csv;
use crate::model::{FailureAnalytics, FailureListItem, ListPage, ProblemDetails};
use crate::queries;
use crate::response_redaction::AlreadyRedacted;
use crate::server_state::WebState;

/// Number of failures per page of an export.
const EXPORT_PAGE_SIZE: usize = 500;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(get_failure_analytics))
        .routes(routes!(list_failures))
        .routes(routes!(export_failures))
}

/// Query for failure statistics.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FailureAnalyticsQuery {
    /// Start, rounded down to the hour.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// End, rounded down to the hour (exclusive).
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Filter by project id.
    project: Option<String>,
    /// Filter by model.
    model: Option<String>,
    /// Filter by kind.
    kind: Option<String>,
    /// Maximum number of messages and prompts; the default is 10.
    #[param(minimum = 1, maximum = 500)]
    top: Option<u32>,
}

/// Query for a list of failures.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FailureListQuery {
    /// Start.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// End (exclusive).
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Filter by project id.
    project: Option<String>,
    /// Filter by model.
    model: Option<String>,
    /// Filter by kind.
    kind: Option<String>,
    /// Maximum number of results; the default is 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// Value of `next` from the previous page.
    after: Option<String>,
}

/// The format of a failure export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ExportFormat {
    /// One JSON object per line.
    #[default]
    Jsonl,
    /// Comma-separated values.
    Csv,
}

/// Query for an export of failures.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FailureExportQuery {
    /// Export format; the default is `jsonl`.
    #[param(inline)]
    format: ExportFormat,
    /// Start.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// End (exclusive).
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Filter by project id.
    project: Option<String>,
    /// Filter by model.
    model: Option<String>,
    /// Filter by kind.
    kind: Option<String>,
}

/// Show failure statistics by kind, model, project, prompt, message and day
#[utoipa::path(
    get,
    path = "/api/analytics/failures",
    tag = "analytics",
    params(FailureAnalyticsQuery),
    responses((status = OK, description = "Failure statistics.", body = FailureAnalytics))
)]
async fn get_failure_analytics(
    State(web): State<Arc<WebState>>,
    QueryParams(asked): QueryParams<FailureAnalyticsQuery>,
) -> Result<Response, ProblemDetails> {
    let query = FailureQuery {
        since: asked.since,
        until: asked.until,
        project: project_root_filter(&web, asked.project.as_deref()).await?,
        model: asked.model,
        kind: parse_optional("kind", asked.kind.as_deref())?,
        top: asked.top.map(|top| page_limit(Some(top))).transpose()?,
    };
    web.json_response(&queries::failure_analytics(&web, &query).await?)
}

/// List failures, the newest first
#[utoipa::path(
    get,
    path = "/api/failures",
    tag = "analytics",
    params(FailureListQuery),
    responses((status = OK, description = "Failures.", body = ListPage<FailureListItem>))
)]
async fn list_failures(
    State(web): State<Arc<WebState>>,
    QueryParams(asked): QueryParams<FailureListQuery>,
) -> Result<Response, ProblemDetails> {
    let query = FailureQuery {
        since: asked.since,
        until: asked.until,
        project: project_root_filter(&web, asked.project.as_deref()).await?,
        model: asked.model,
        kind: parse_optional("kind", asked.kind.as_deref())?,
        top: None,
    };
    let (after, limit) = (asked.after.as_deref(), page_limit(asked.limit)?);
    web.json_response(&queries::failures(&web, &query, after, limit).await?)
}

/// Export failures
#[utoipa::path(
    get,
    path = "/api/analytics/failures/export",
    tag = "analytics",
    params(FailureExportQuery),
    responses((status = OK, description = "All matching failures.", content(
        (String = "application/jsonl"),
        (String = "text/csv"),
    )))
)]
async fn export_failures(
    State(web): State<Arc<WebState>>,
    QueryParams(asked): QueryParams<FailureExportQuery>,
) -> Result<Response, ProblemDetails> {
    let query = FailureQuery {
        since: asked.since,
        until: asked.until,
        project: project_root_filter(&web, asked.project.as_deref()).await?,
        model: asked.model,
        kind: parse_optional("kind", asked.kind.as_deref())?,
        top: None,
    };
    // Report database errors before the response begins.
    let first = queries::failures(&web, &query, None, EXPORT_PAGE_SIZE).await?;
    let (media_type, name) = match asked.format {
        ExportFormat::Jsonl => ("application/jsonl", "failures.jsonl"),
        ExportFormat::Csv => ("text/csv; charset=utf-8", "failures.csv"),
    };
    let exporting = FailureExport {
        web,
        query,
        format: asked.format,
        page: Some(first),
        is_first: true,
    };
    let body = Body::from_stream(stream::try_unfold(exporting, FailureExport::next_chunk));
    let attachment = format!("attachment; filename=\"{name}\"");
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_DISPOSITION, &attachment),
    ];
    let mut response = (
        headers.map(|(name, text)| (name, lossy_header_value(text))),
        body,
    )
        .into_response();
    response.extensions_mut().insert(AlreadyRedacted);
    Ok(response)
}

fn lossy_header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

async fn project_root_filter(
    web: &WebState,
    project: Option<&str>,
) -> Result<Option<String>, ProblemDetails> {
    match project {
        Some(id) => queries::project_root(web, id).await.map(Some),
        None => Ok(None),
    }
}

/// An export that loads page by page to use little memory.
struct FailureExport {
    web: Arc<WebState>,
    query: FailureQuery,
    format: ExportFormat,
    /// Next page to write; `None` once everything is written.
    page: Option<ListPage<FailureListItem>>,
    is_first: bool,
}

impl FailureExport {
    async fn next_chunk(mut self) -> Result<Option<(String, Self)>, std::io::Error> {
        let Some(page) = self.page.take() else {
            return Ok(None);
        };
        let mut text = match (self.format, self.is_first) {
            (ExportFormat::Csv, true) => failure_csv::CSV_HEADER.to_owned(),
            _ => String::new(),
        };
        self.is_first = false;
        for failure in &page.items {
            self.append_failure(failure, &mut text);
        }
        if let Some(after) = &page.next {
            let next =
                queries::failures(&self.web, &self.query, Some(after), EXPORT_PAGE_SIZE).await;
            // The client sees that the response was cut off.
            let next = next.map_err(|problem| std::io::Error::other(problem.detail))?;
            self.page = Some(next);
        }
        Ok(Some((text, self)))
    }

    fn append_failure(&self, failure: &FailureListItem, text: &mut String) {
        let redactor = &self.web.redactor;
        match self.format {
            ExportFormat::Jsonl => {
                let mut line = serde_json::to_value(failure).unwrap_or_default();
                redactor.redact_value(&mut line);
                text.push_str(&line.to_string());
                text.push('\n');
            }
            ExportFormat::Csv => text.push_str(&redactor.redact(&failure_csv::csv_row(failure))),
        }
    }
}

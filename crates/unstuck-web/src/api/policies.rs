//! Endpoints for retry policies: the default and those of projects. To prevent lost updates, a change must state in
//! `If-Match` the version it is based on.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use unstuck_core::RetryPolicy;
use unstuck_core::decision::InvalidRetryPolicy;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::{JsonBody, PathParams};
use crate::auth::{CallerIdentity, RequireAdmin};
use crate::commands::{PolicyTarget, SetRetryPolicy};
use crate::model::{
    EffectiveRetryPolicy, FieldProblem, ListPage, PolicyOrigin, ProblemDetails, RetryPolicyBody,
    RetryPolicyTemplateResponse,
};
use crate::queries;
use crate::server_state::WebState;

/// Header with the source of a policy.
const ORIGIN_HEADER: HeaderName = HeaderName::from_static("x-unstuck-origin");

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(get_policy, put_policy, delete_policy))
        .routes(routes!(
            get_project_policy,
            put_project_policy,
            delete_project_policy
        ))
        .routes(routes!(list_policy_templates))
}

/// Show the default retry policy
#[utoipa::path(
    get,
    path = "/api/retry-policy",
    tag = "policies",
    responses(
        (status = OK, description = "The policy.", body = RetryPolicyBody, headers(("etag" = String))),
        (status = NOT_MODIFIED, description = "Not modified since the version in If-None-Match."),
    )
)]
async fn get_policy(
    State(web): State<Arc<WebState>>,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    policy_response(&web, PolicyTarget::Default, &headers).await
}

/// Set the default retry policy
///
/// Omitted fields take the value of the template, or of `standard`.
#[utoipa::path(
    put,
    path = "/api/retry-policy",
    tag = "policies",
    params(("if-match" = String, Header, description = "ETag of the policy to replace.")),
    request_body = RetryPolicyBody,
    responses((status = OK, description = "The effective policy.", body = RetryPolicyBody, headers(("etag" = String))))
)]
async fn put_policy(
    State(web): State<Arc<WebState>>,
    RequireAdmin(who): RequireAdmin,
    headers: HeaderMap,
    JsonBody(policy): JsonBody<Value>,
) -> Result<Response, ProblemDetails> {
    change_policy(&web, PolicyTarget::Default, Some(policy), &headers, &who).await
}

/// Reset the default retry policy to the configured one
#[utoipa::path(
    delete,
    path = "/api/retry-policy",
    tag = "policies",
    params(("if-match" = String, Header, description = "ETag of the policy to reset.")),
    responses((status = OK, description = "The effective policy.", body = RetryPolicyBody, headers(("etag" = String))))
)]
async fn delete_policy(
    State(web): State<Arc<WebState>>,
    RequireAdmin(who): RequireAdmin,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    change_policy(&web, PolicyTarget::Default, None, &headers, &who).await
}

/// Show the retry policy of a project
#[utoipa::path(
    get,
    path = "/api/projects/{id}/retry-policy",
    tag = "policies",
    params(("id" = String, Path, description = "Id of the project.")),
    responses(
        (status = OK, description = "The policy.", body = RetryPolicyBody, headers(("etag" = String))),
        (status = NOT_MODIFIED, description = "Not modified since the version in If-None-Match."),
    )
)]
async fn get_project_policy(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    let of = project_target(&web, &id).await?;
    policy_response(&web, of, &headers).await
}

/// Set the retry policy of a project
///
/// Omitted fields take the value of the template, or of `standard`.
#[utoipa::path(
    put,
    path = "/api/projects/{id}/retry-policy",
    tag = "policies",
    params(
        ("id" = String, Path, description = "Id of the project."),
        ("if-match" = String, Header, description = "ETag of the policy to replace."),
    ),
    request_body = RetryPolicyBody,
    responses((status = OK, description = "The effective policy.", body = RetryPolicyBody, headers(("etag" = String))))
)]
async fn put_project_policy(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    RequireAdmin(who): RequireAdmin,
    headers: HeaderMap,
    JsonBody(policy): JsonBody<Value>,
) -> Result<Response, ProblemDetails> {
    let of = project_target(&web, &id).await?;
    change_policy(&web, of, Some(policy), &headers, &who).await
}

/// Reset the retry policy of a project to the default
#[utoipa::path(
    delete,
    path = "/api/projects/{id}/retry-policy",
    tag = "policies",
    params(
        ("id" = String, Path, description = "Id of the project."),
        ("if-match" = String, Header, description = "ETag of the policy to reset."),
    ),
    responses((status = OK, description = "The effective policy.", body = RetryPolicyBody, headers(("etag" = String))))
)]
async fn delete_project_policy(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    RequireAdmin(who): RequireAdmin,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    let of = project_target(&web, &id).await?;
    change_policy(&web, of, None, &headers, &who).await
}

/// List the policy templates
#[utoipa::path(
    get,
    path = "/api/policy-templates",
    tag = "policies",
    responses((status = OK, description = "Policies.", body = ListPage<RetryPolicyTemplateResponse>))
)]
async fn list_policy_templates(
    State(web): State<Arc<WebState>>,
) -> Result<Response, ProblemDetails> {
    let all = web.deeds().policy_templates().await?.into_iter();
    let all = all.map(|policy| RetryPolicyTemplateResponse { policy });
    web.json_response(&ListPage::single(all.collect()))
}

async fn project_target(web: &WebState, id: &str) -> Result<PolicyTarget, ProblemDetails> {
    let root = queries::project_root(web, id).await?;
    Ok(PolicyTarget::Project(root))
}

async fn policy_response(
    web: &WebState,
    of: PolicyTarget,
    headers: &HeaderMap,
) -> Result<Response, ProblemDetails> {
    let kept = web.deeds().policy(of).await?;
    if header_matches_etag(headers, header::IF_NONE_MATCH, &kept.etag()) == Some(true) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        add_policy_headers(&mut response, &kept);
        return Ok(response);
    }
    policy_json(web, &kept)
}

async fn change_policy(
    web: &WebState,
    of: PolicyTarget,
    policy: Option<Value>,
    headers: &HeaderMap,
    who: &CallerIdentity,
) -> Result<Response, ProblemDetails> {
    let policy = match policy {
        Some(value) => Some(RetryPolicy::from_json(&value.to_string()).map_err(invalid_policy)?),
        None => None,
    };
    let kept = web.deeds().policy(of.clone()).await?;
    match header_matches_etag(headers, header::IF_MATCH, &kept.etag()) {
        Some(true) => {}
        Some(false) => return Err(precondition_failed()),
        None => {
            let detail = "missing If-Match header; send the ETag from the GET response";
            return Err(ProblemDetails::new(
                StatusCode::PRECONDITION_REQUIRED,
                detail,
            ));
        }
    }
    let change = SetRetryPolicy {
        target: of,
        policy,
        expected_version: Some(kept.version),
        who: who.audit_name(),
    };
    policy_json(web, &web.deeds().put_policy(change).await?)
}

fn policy_json(web: &WebState, kept: &EffectiveRetryPolicy) -> Result<Response, ProblemDetails> {
    let mut response = web.json_response(&kept.policy)?;
    add_policy_headers(&mut response, kept);
    Ok(response)
}

fn add_policy_headers(response: &mut Response, kept: &EffectiveRetryPolicy) {
    let headers = response.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(&kept.etag()) {
        headers.insert(header::ETAG, etag);
    }
    let origin = match kept.origin {
        PolicyOrigin::Set => "set",
        PolicyOrigin::Configured => "configured",
        PolicyOrigin::BuiltIn => "built_in",
        PolicyOrigin::Default => "default",
    };
    headers.insert(ORIGIN_HEADER, HeaderValue::from_static(origin));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
}

/// Returns true if the header contains this version, or `None` if the header is missing.
fn header_matches_etag(headers: &HeaderMap, header: HeaderName, etag: &str) -> Option<bool> {
    let text = headers.get(header)?.to_str().unwrap_or_default();
    let mut named = text.split(',').map(str::trim);
    Some(named.any(|one| one == "*" || one == etag))
}

fn precondition_failed() -> ProblemDetails {
    ProblemDetails::new(
        StatusCode::PRECONDITION_FAILED,
        "the policy was changed in the meantime; reload it and apply your change again",
    )
}

fn invalid_policy(error: InvalidRetryPolicy) -> ProblemDetails {
    let errors = error.problems.into_iter().map(|one| FieldProblem {
        field: one.field,
        value: one.value,
        reason: one.expected,
    });
    let detail = "invalid policy; see `errors`";
    ProblemDetails::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_errors(errors.collect())
}

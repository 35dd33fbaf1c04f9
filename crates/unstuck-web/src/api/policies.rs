//! Retry policies: the default and those of projects. Two people do not overwrite each other: a change has to say in
//! `If-Match` which version it was made from.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use unstuck_core::RetryPolicy;
use unstuck_core::decision::InvalidPolicy;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Body, Named};
use crate::deeds::{PolicyChange, PolicyOf};
use crate::guard::{Admin, Who};
use crate::model::{FieldProblem, Page, Policy, PolicyKept, PolicyOrigin, PolicyTemplate, Problem};
use crate::reading;
use crate::web::Web;

/// The header that tells where a policy comes from.
const ORIGIN: HeaderName = HeaderName::from_static("x-unstuck-origin");

pub(super) fn routes() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::new()
        .routes(routes!(get_policy, put_policy, delete_policy))
        .routes(routes!(
            get_project_policy,
            put_project_policy,
            delete_project_policy
        ))
        .routes(routes!(list_policy_templates))
}

/// Show the retry policy of all projects that have none of their own
#[utoipa::path(
    get,
    path = "/api/retry-policy",
    tag = "policies",
    responses(
        (status = OK, description = "The policy.", body = Policy, headers(("etag" = String))),
        (status = NOT_MODIFIED, description = "It is the one that If-None-Match names."),
    )
)]
async fn get_policy(State(web): State<Arc<Web>>, headers: HeaderMap) -> Result<Response, Problem> {
    shown(&web, PolicyOf::Everybody, &headers).await
}

/// Set the retry policy of all projects that have none of their own
///
/// What is left out is that of the template, or of `standard`.
#[utoipa::path(
    put,
    path = "/api/retry-policy",
    tag = "policies",
    params(("if-match" = String, Header, description = "The ETag of the policy that it replaces.")),
    request_body = Policy,
    responses((status = OK, description = "The policy as it is now.", body = Policy, headers(("etag" = String))))
)]
async fn put_policy(
    State(web): State<Arc<Web>>,
    Admin(who): Admin,
    headers: HeaderMap,
    Body(policy): Body<Value>,
) -> Result<Response, Problem> {
    changed(&web, PolicyOf::Everybody, Some(policy), &headers, &who).await
}

/// Take away what was set, so that the configuration counts again
#[utoipa::path(
    delete,
    path = "/api/retry-policy",
    tag = "policies",
    params(("if-match" = String, Header, description = "The ETag of the policy that it takes away.")),
    responses((status = OK, description = "The policy as it is now.", body = Policy, headers(("etag" = String))))
)]
async fn delete_policy(
    State(web): State<Arc<Web>>,
    Admin(who): Admin,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    changed(&web, PolicyOf::Everybody, None, &headers, &who).await
}

/// Show the retry policy of a project
#[utoipa::path(
    get,
    path = "/api/projects/{id}/retry-policy",
    tag = "policies",
    params(("id" = String, Path, description = "The id of the project.")),
    responses(
        (status = OK, description = "The policy.", body = Policy, headers(("etag" = String))),
        (status = NOT_MODIFIED, description = "It is the one that If-None-Match names."),
    )
)]
async fn get_project_policy(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let of = of_project(&web, &id).await?;
    shown(&web, of, &headers).await
}

/// Set the retry policy of a project
///
/// What is left out is that of the template, or of `standard`.
#[utoipa::path(
    put,
    path = "/api/projects/{id}/retry-policy",
    tag = "policies",
    params(
        ("id" = String, Path, description = "The id of the project."),
        ("if-match" = String, Header, description = "The ETag of the policy that it replaces."),
    ),
    request_body = Policy,
    responses((status = OK, description = "The policy as it is now.", body = Policy, headers(("etag" = String))))
)]
async fn put_project_policy(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
    Admin(who): Admin,
    headers: HeaderMap,
    Body(policy): Body<Value>,
) -> Result<Response, Problem> {
    let of = of_project(&web, &id).await?;
    changed(&web, of, Some(policy), &headers, &who).await
}

/// Take away what was set for a project, so that the default counts again
#[utoipa::path(
    delete,
    path = "/api/projects/{id}/retry-policy",
    tag = "policies",
    params(
        ("id" = String, Path, description = "The id of the project."),
        ("if-match" = String, Header, description = "The ETag of the policy that it takes away."),
    ),
    responses((status = OK, description = "The policy as it is now.", body = Policy, headers(("etag" = String))))
)]
async fn delete_project_policy(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
    Admin(who): Admin,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let of = of_project(&web, &id).await?;
    changed(&web, of, None, &headers, &who).await
}

/// List the policies that can be named, to start from
#[utoipa::path(
    get,
    path = "/api/policy-templates",
    tag = "policies",
    responses((status = OK, description = "Policies.", body = Page<PolicyTemplate>))
)]
async fn list_policy_templates(State(web): State<Arc<Web>>) -> Result<Response, Problem> {
    let all = web.deeds().policy_templates().await?.into_iter();
    let all = all.map(|policy| PolicyTemplate { policy });
    web.told(&Page::whole(all.collect()))
}

async fn of_project(web: &Web, id: &str) -> Result<PolicyOf, Problem> {
    let root = reading::project_root(web, id).await?;
    Ok(PolicyOf::Project(root))
}

async fn shown(web: &Web, of: PolicyOf, headers: &HeaderMap) -> Result<Response, Problem> {
    let kept = web.deeds().policy(of).await?;
    if names(headers, header::IF_NONE_MATCH, &kept.etag()) == Some(true) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        add_facts(&mut response, &kept);
        return Ok(response);
    }
    told(web, &kept)
}

async fn changed(
    web: &Web,
    of: PolicyOf,
    policy: Option<Value>,
    headers: &HeaderMap,
    who: &Who,
) -> Result<Response, Problem> {
    let policy = match policy {
        Some(value) => Some(RetryPolicy::from_json(&value.to_string()).map_err(invalid)?),
        None => None,
    };
    let kept = web.deeds().policy(of.clone()).await?;
    match names(headers, header::IF_MATCH, &kept.etag()) {
        Some(true) => {}
        Some(false) => return Err(stale()),
        None => {
            let detail = "say in If-Match which policy you change: the ETag that GET told";
            return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, detail));
        }
    }
    let change = PolicyChange {
        of,
        policy,
        seen: Some(kept.version),
        who: who.signature(),
    };
    told(web, &web.deeds().put_policy(change).await?)
}

fn told(web: &Web, kept: &PolicyKept) -> Result<Response, Problem> {
    let mut response = web.told(&kept.policy)?;
    add_facts(&mut response, kept);
    Ok(response)
}

fn add_facts(response: &mut Response, kept: &PolicyKept) {
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
    headers.insert(ORIGIN, HeaderValue::from_static(origin));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
}

/// Whether a header names this version; none where it is not there.
fn names(headers: &HeaderMap, header: HeaderName, etag: &str) -> Option<bool> {
    let text = headers.get(header)?.to_str().unwrap_or_default();
    let mut named = text.split(',').map(str::trim);
    Some(named.any(|one| one == "*" || one == etag))
}

fn stale() -> Problem {
    Problem::new(
        StatusCode::PRECONDITION_FAILED,
        "the policy was changed meanwhile; look at it again, and change that",
    )
}

fn invalid(error: InvalidPolicy) -> Problem {
    let errors = error.problems.into_iter().map(|one| FieldProblem {
        field: one.field,
        value: one.value,
        why: one.why,
    });
    let detail = "the policy cannot be used; `errors` tells what is wrong with it";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_errors(errors.collect())
}

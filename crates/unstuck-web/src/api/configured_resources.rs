//! Endpoints for configured agents, models, budgets, webhooks and upstreams, and for learned success rates.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::PathParams;
use crate::auth::RequireAdmin;
use crate::model::{
    Agent, Budgets, ListPage, Models, ProblemDetails, StrategySuccessByKind, UpstreamStatus,
    Webhook, WebhookTestResult,
};
use crate::queries;
use crate::server_state::WebState;

#[expect(deprecated, reason = "older clients still call `/api/learned`")]
pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(list_agents))
        .routes(routes!(list_models))
        .routes(routes!(list_budgets))
        .routes(routes!(list_success_rates))
        .routes(routes!(list_learned))
        .routes(routes!(list_upstreams))
        .routes(routes!(list_webhooks))
        .routes(routes!(test_webhook))
}

/// List supported agents and whether they are installed
#[utoipa::path(
    get,
    path = "/api/agents",
    tag = "settings",
    responses((status = OK, description = "Agents.", body = ListPage<Agent>))
)]
async fn list_agents(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&ListPage::single(web.deeds().agents().await?))
}

/// List models, prices and ladders
#[utoipa::path(
    get,
    path = "/api/models",
    tag = "settings",
    responses((status = OK, description = "Models.", body = Models))
)]
async fn list_models(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&web.deeds().models().await?)
}

/// List budgets and the amounts spent
#[utoipa::path(
    get,
    path = "/api/budgets",
    tag = "settings",
    responses((status = OK, description = "Budgets.", body = Budgets))
)]
async fn list_budgets(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&web.deeds().budgets().await?)
}

/// List the success rate of each strategy by kind of failure
#[utoipa::path(
    get,
    path = "/api/success-rates",
    tag = "settings",
    responses((status = OK, description = "Success rates of the last 90 days.", body = ListPage<StrategySuccessByKind>))
)]
async fn list_success_rates(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&ListPage::single(queries::success_rates(&web).await?))
}

/// List the success rate of each strategy; use `/api/success-rates`
#[deprecated]
#[utoipa::path(
    get,
    path = "/api/learned",
    tag = "settings",
    responses((status = OK, description = "Success rates of the last 90 days.", body = ListPage<StrategySuccessByKind>))
)]
async fn list_learned(web: State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    list_success_rates(web).await
}

/// List the upstreams of the gateway with their circuit breakers and limits
#[utoipa::path(
    get,
    path = "/api/upstreams",
    tag = "settings",
    responses((status = OK, description = "One item for each upstream, key and model.", body = ListPage<UpstreamStatus>))
)]
async fn list_upstreams(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&ListPage::single(web.deeds().lanes().await?))
}

/// List the configured webhooks
#[utoipa::path(
    get,
    path = "/api/webhooks",
    tag = "settings",
    responses((status = OK, description = "Webhooks.", body = ListPage<Webhook>))
)]
async fn list_webhooks(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&ListPage::single(web.deeds().webhooks().await?))
}

/// Send a test notification to a webhook
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/test",
    tag = "settings",
    params(("id" = String, Path, description = "Id of the webhook.")),
    responses((status = OK, description = "Result of the test.", body = WebhookTestResult))
)]
async fn test_webhook(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    RequireAdmin(_): RequireAdmin,
) -> Result<Response, ProblemDetails> {
    web.json_response(&web.deeds().test_webhook(&id).await?)
}

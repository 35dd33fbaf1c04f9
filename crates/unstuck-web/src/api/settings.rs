//! Endpoints for configuration and learned data: agents, models, budgets, webhooks, upstreams and success rates.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::PathParams;
use crate::auth::RequireAdmin;
use crate::model::{
    Agent, Budgets, Lane, Models, Page, ProblemDetails, StrategySuccessRate, Webhook,
    WebhookTestResult,
};
use crate::queries;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(list_agents))
        .routes(routes!(list_models))
        .routes(routes!(list_budgets))
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
    responses((status = OK, description = "Agents.", body = Page<Agent>))
)]
async fn list_agents(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&Page::single(web.deeds().agents().await?))
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
    path = "/api/learned",
    tag = "settings",
    responses((status = OK, description = "What was learned in the last 90 days.", body = Page<StrategySuccessRate>))
)]
async fn list_learned(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&Page::single(queries::success_rates(&web).await?))
}

/// List the upstreams of the gateway with their circuit breakers and limits
#[utoipa::path(
    get,
    path = "/api/upstreams",
    tag = "settings",
    responses((status = OK, description = "One line for each upstream, key and model.", body = Page<Lane>))
)]
async fn list_upstreams(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&Page::single(web.deeds().lanes().await?))
}

/// List the configured webhooks
#[utoipa::path(
    get,
    path = "/api/webhooks",
    tag = "settings",
    responses((status = OK, description = "Webhooks.", body = Page<Webhook>))
)]
async fn list_webhooks(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&Page::single(web.deeds().webhooks().await?))
}

/// Send a test notification to a webhook
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/test",
    tag = "settings",
    params(("id" = String, Path, description = "The id of the webhook.")),
    responses((status = OK, description = "What came back.", body = WebhookTestResult))
)]
async fn test_webhook(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    RequireAdmin(_): RequireAdmin,
) -> Result<Response, ProblemDetails> {
    web.json_response(&web.deeds().test_webhook(&id).await?)
}

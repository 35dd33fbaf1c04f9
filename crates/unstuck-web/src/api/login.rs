//! Endpoints for browser logins.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::JsonBody;
use crate::auth::{CallerIdentity, LOGIN_LIFETIME, NewLogin, RandomnessError, cookie_value};
use crate::model::{CallerIdentityResponse, LoginRequest, LoginResponse, ProblemDetails};
use crate::response_redaction::AlreadyRedacted;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(login))
        .routes(routes!(logout))
        .routes(routes!(me))
}

/// Exchange the code of a dashboard link, or a token, for a login
///
/// Each code works once; a login by token ends when the token is revoked. The response sets a cookie and contains the
/// key that belongs to it.
#[utoipa::path(
    post,
    path = "/api/login",
    tag = "login",
    security(()),
    request_body = LoginRequest,
    responses((status = OK, description = "Logged in.", body = LoginResponse))
)]
async fn login(
    State(web): State<Arc<WebState>>,
    JsonBody(login): JsonBody<LoginRequest>,
) -> Result<Response, ProblemDetails> {
    let Some(opened) = exchange_for_login(&web, login.code.trim()).map_err(randomness_problem)?
    else {
        return Err(ProblemDetails::new(
            StatusCode::UNAUTHORIZED,
            "invalid or expired code or token; run `unstuck token link` to get a new link",
        ));
    };
    let body = LoginResponse {
        scope: opened.scope,
        key: opened.key,
    };
    let mut response = axum::Json(body).into_response();
    set_cookie(
        &web,
        &mut response,
        &opened.cookie,
        LOGIN_LIFETIME.as_secs(),
    );
    // The client is meant to get the key, so it is not redacted.
    response.extensions_mut().insert(AlreadyRedacted);
    Ok(response)
}

/// Creates a login for a code of this server, a code from the token file, or a token.
fn exchange_for_login(web: &WebState, code: &str) -> Result<Option<NewLogin>, RandomnessError> {
    let now = web.now();
    if let Some(opened) = web.logins.exchange_code(code, now)? {
        return Ok(Some(opened));
    }
    // A token file that cannot be read grants no access.
    if let Some(scope) = web.tokens.exchange_login_code(code, now).ok().flatten() {
        return web.logins.create_login(scope, None, now).map(Some);
    }
    match web.tokens.check(code).ok().flatten() {
        Some(token) => web
            .logins
            .create_login(token.scope, Some(token.id), now)
            .map(Some),
        None => Ok(None),
    }
}

/// End a login
#[utoipa::path(
    post,
    path = "/api/logout",
    tag = "login",
    responses((status = NO_CONTENT, description = "Logged out."))
)]
async fn logout(State(web): State<Arc<WebState>>, headers: HeaderMap) -> Response {
    if let Some(cookie) = cookie_value(&headers, &web.cookie_name()) {
        web.logins.logout(&cookie, web.now());
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&web, &mut response, "", 0);
    response
}

/// Show identity and scope of the caller
#[utoipa::path(
    get,
    path = "/api/me",
    tag = "login",
    responses((status = OK, description = "Identity of the caller.", body = CallerIdentityResponse))
)]
async fn me(
    State(web): State<Arc<WebState>>,
    who: CallerIdentity,
) -> Result<Response, ProblemDetails> {
    web.json_response(&CallerIdentityResponse {
        scope: who.scope,
        name: who.name,
    })
}

fn set_cookie(web: &WebState, response: &mut Response, value: &str, seconds: u64) {
    let name = web.cookie_name();
    let text = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}");
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}

fn randomness_problem(error: RandomnessError) -> ProblemDetails {
    ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

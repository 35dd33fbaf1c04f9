//! Logins of browsers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::Body;
use crate::guard::{LOGIN_LASTS, NoChance, Opened, Who, cookie};
use crate::leaving::Clean;
use crate::model::{LoggedIn, Login, Me, Problem};
use crate::web::Web;

pub(super) fn routes() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::new()
        .routes(routes!(login))
        .routes(routes!(logout))
        .routes(routes!(me))
}

/// Exchange the code of a dashboard's link, or a token, for a login
///
/// Each code is good once; a login by a token ends when the token is taken back. The answer sets a cookie, and tells the
/// key that goes with it.
#[utoipa::path(
    post,
    path = "/api/login",
    tag = "login",
    security(()),
    request_body = Login,
    responses((status = OK, description = "Logged in.", body = LoggedIn))
)]
async fn login(State(web): State<Arc<Web>>, Body(login): Body<Login>) -> Result<Response, Problem> {
    let Some(opened) = opened(&web, login.code.trim()).map_err(no_chance)? else {
        return Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "this code or token is not good, or no more; `unstuck token link` makes a new link",
        ));
    };
    let body = LoggedIn {
        scope: opened.scope,
        key: opened.key,
    };
    let mut response = axum::Json(body).into_response();
    set_cookie(&web, &mut response, &opened.cookie, LOGIN_LASTS.as_secs());
    // The key is what the client is meant to get.
    response.extensions_mut().insert(Clean);
    Ok(response)
}

/// Lets in whoever has a code of this server, one that was made beside it, or a token.
fn opened(web: &Web, code: &str) -> Result<Option<Opened>, NoChance> {
    let now = web.now();
    if let Some(opened) = web.logins.login(code, now)? {
        return Ok(Some(opened));
    }
    // What cannot be read lets nobody in.
    if let Some(scope) = web.tokens.login(code, now).ok().flatten() {
        return web.logins.open(scope, None, now).map(Some);
    }
    match web.tokens.check(code).ok().flatten() {
        Some(token) => web.logins.open(token.scope, Some(token.id), now).map(Some),
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
async fn logout(State(web): State<Arc<Web>>, headers: HeaderMap) -> Response {
    if let Some(cookie) = cookie(&headers, &web.cookie_name()) {
        web.logins.logout(&cookie, web.now());
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&web, &mut response, "", 0);
    response
}

/// Who asks, and what they may do
#[utoipa::path(
    get,
    path = "/api/me",
    tag = "login",
    responses((status = OK, description = "Who asks.", body = Me))
)]
async fn me(State(web): State<Arc<Web>>, who: Who) -> Result<Response, Problem> {
    web.told(&Me {
        scope: who.scope,
        name: who.name,
    })
}

fn set_cookie(web: &Web, response: &mut Response, value: &str, seconds: u64) {
    let name = web.cookie_name();
    let text = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}");
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
}

fn no_chance(error: NoChance) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

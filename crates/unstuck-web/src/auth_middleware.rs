//! Auth middleware: authorizes requests and finishes responses.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use unstuck_network::PeerOwner;

use crate::auth::{
    self, CallerIdentity, ClientPeer, CredentialStores, PermissionScope, RateLimitKey, origin,
    security_headers,
};
use crate::model::ProblemDetails;
use crate::pages;
use crate::response_redaction;
use crate::server_state::WebState;

/// Path where codes are exchanged; callers have no other credential yet.
const LOGIN_PATH: &str = "/api/login";
/// Path where a login ends; any login may end itself.
const LOGOUT_PATH: &str = "/api/logout";
/// Paths open to everyone; without them nobody could log in.
const PUBLIC_PATHS: [&str; 2] = ["/login", "/assets/"];

/// Authorizes a request and finishes its response.
pub(crate) async fn authorize_request(
    State(web): State<Arc<WebState>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let (mut parts, body) = request.into_parts();
    let is_login = path == LOGIN_PATH;
    let peer = ClientPeer::from_parts(&parts);
    let admitted = authorize(&web, &parts);
    let mut response = match admitted {
        Ok(who) => {
            parts.extensions.insert(who);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(AuthRejection::Login) => login_required(&parts),
        Err(AuthRejection::Problem(problem)) => rejection_response(&parts, *problem),
    };
    if is_login && response.status() == StatusCode::UNAUTHORIZED {
        // Guessing codes is rate-limited; the right code still works.
        if let Err(wait) = record_rejected_credential(&web, peer) {
            response = too_many_requests("too many invalid codes", wait).into_response();
        }
    }
    response = response_redaction::finish_response(&web.redactor, response, &path).await;
    security_headers::add_security_headers(response.headers_mut());
    response
}

/// The reason for rejecting a request.
enum AuthRejection {
    /// The caller must log in first.
    Login,
    /// Another problem.
    Problem(Box<ProblemDetails>),
}

impl From<ProblemDetails> for AuthRejection {
    fn from(problem: ProblemDetails) -> Self {
        Self::Problem(Box::new(problem))
    }
}

fn authorize(web: &WebState, parts: &Parts) -> Result<CallerIdentity, AuthRejection> {
    let peer = ClientPeer::from_parts(parts);
    let Some(host) = origin::request_host(parts) else {
        let detail = "the Host header must be a single host with an optional port";
        return Err(ProblemDetails::new(StatusCode::BAD_REQUEST, detail).into());
    };
    if origin::is_cross_origin(parts, host) {
        return Err(forbidden("cross-origin requests are not allowed").into());
    }
    let who = identify(web, parts).map_err(|problem| match problem.status_code() {
        StatusCode::UNAUTHORIZED => match record_rejected_credential(web, peer) {
            Ok(()) => problem,
            Err(wait) => too_many_requests("too many invalid tokens", wait),
        },
        _ => problem,
    })?;
    check_rate_limit(web, parts, &who)?;
    // A request with a token does not come from a page that was redirected here by DNS rebinding.
    let brings_token = who.may_change && parts.headers.contains_key(header::AUTHORIZATION);
    if !brings_token && !origin::is_allowed_host(host, &web.hosts) {
        return Err(forbidden(
            "unrecognized Host header; use the server's address or allow the name with --host",
        )
        .into());
    }
    check_permission(parts, &who).map(|()| who)
}

/// Counts a rejected token or code; returns the time to wait if there were too many.
fn record_rejected_credential(web: &WebState, peer: ClientPeer) -> Result<(), Duration> {
    let now = web.now();
    web.rejected.record(peer.address, now);
    web.rates.check_rejected(peer, now)
}

/// Counts a request, except reads from this machine.
fn check_rate_limit(
    web: &WebState,
    parts: &Parts,
    who: &CallerIdentity,
) -> Result<(), ProblemDetails> {
    let (peer, here) = (ClientPeer::from_parts(parts), is_local_user(parts));
    let asker = match who.scope {
        Some(_) => RateLimitKey::Credential(who.credential.clone().unwrap_or_default()),
        None if here => return Ok(()),
        None => RateLimitKey::Address(peer),
    };
    let counted = web.rates.check_request(asker, here, web.now());
    counted.map_err(|wait| too_many_requests("too many requests", wait))
}

/// Returns true if the client is a program of the same user on this machine, not behind a proxy.
fn is_local_user(parts: &Parts) -> bool {
    let peer = ClientPeer::from_parts(parts);
    let is_same_user = peer.is_local() && peer.owner == PeerOwner::SameUser;
    is_same_user && !origin::is_forwarded(&parts.headers)
}

/// Returns true if a request would still be authorized: tokens get revoked and logins end.
pub(crate) fn is_still_authorized(web: &WebState, parts: &Parts) -> bool {
    identify(web, parts).is_ok_and(|who| check_permission(parts, &who).is_ok())
}

fn identify(web: &WebState, parts: &Parts) -> Result<CallerIdentity, ProblemDetails> {
    let papers = CredentialStores {
        tokens: &web.tokens,
        logins: &web.logins,
        cookie: &web.cookie_name(),
        now: web.now(),
    };
    CallerIdentity::authenticate(
        &papers,
        parts,
        origin::request_host(parts).unwrap_or_default(),
    )
}

/// Checks the scope that the request needs.
fn check_permission(parts: &Parts, who: &CallerIdentity) -> Result<(), AuthRejection> {
    let (path, method) = (parts.uri.path(), &parts.method);
    let is_open = PUBLIC_PATHS.iter().any(|open| path.starts_with(open));
    let only_looks = matches!(*method, Method::GET | Method::HEAD);
    if path == LOGIN_PATH
        || only_looks && (is_open || is_local_user(parts) || who.has_scope(PermissionScope::Read))
    {
        return Ok(());
    }
    if only_looks {
        return Err(AuthRejection::Login);
    }
    match who.scope {
        None if who.login_ended => Err(auth::invalid_credential("your dashboard login has expired: log in again").into()),
        None => Err(auth::invalid_credential(
            "authentication required: send Authorization: Bearer …; create a token with `unstuck token create`",
        )
        .into()),
        Some(_) if !who.may_change => Err(forbidden(
            "missing or invalid CSRF key: send x-unstuck-key with the cookie, from a page of this server",
        )
        .into()),
        Some(own) if own < PermissionScope::Answer && path != LOGOUT_PATH => {
            Err(auth::insufficient_scope(PermissionScope::Answer, own).into())
        }
        Some(_) => Ok(()),
    }
}

/// Returns true if a human opens a page, who needs HTML instead of JSON.
fn is_page_navigation(parts: &Parts) -> bool {
    let accept = parts.headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let takes_pages = accept.is_some_and(|accept| accept.contains("text/html"));
    takes_pages && !parts.uri.path().starts_with("/api/")
}

/// Returns true if the script of an open page sent the request.
fn is_page_script_request(parts: &Parts) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    parts.method != Method::GET || query.split('&').any(|one| one.starts_with("part="))
}

/// Returns the response for a missing login: users are redirected to the login page, programs get a problem.
fn login_required(parts: &Parts) -> Response {
    if is_page_navigation(parts) && is_page_script_request(parts) {
        // An open page stays open and shows what happened.
        return rejection_response(
            parts,
            auth::invalid_credential("your dashboard login has expired: log in again"),
        );
    }
    if is_page_navigation(parts) {
        let asked = parts
            .uri
            .path_and_query()
            .map_or("/", |asked| asked.as_str());
        let to_login = match asked {
            "/" => "/login".to_owned(),
            asked => format!("/login?back={}", pages::percent_encoded(asked)),
        };
        // A percent-encoded path is always a valid header value.
        let to_login = HeaderValue::try_from(to_login);
        let to_login = to_login.unwrap_or_else(|_| HeaderValue::from_static("/login"));
        return (StatusCode::SEE_OTHER, [(header::LOCATION, to_login)]).into_response();
    }
    auth::invalid_credential(login_required_reason(parts)).into_response()
}

/// Returns the reason why even read access needs a token.
fn login_required_reason(parts: &Parts) -> &'static str {
    let peer = ClientPeer::from_parts(parts);
    match peer.owner {
        _ if !peer.is_local() || origin::is_forwarded(&parts.headers) => {
            "access from another machine requires a token: Authorization: Bearer …"
        }
        PeerOwner::OtherUser(_) => {
            "this server belongs to another user of this machine; access requires a token: Authorization: Bearer …"
        }
        PeerOwner::SameUser | PeerOwner::Unknown => {
            "cannot determine the user of this connection; access requires a token: Authorization: Bearer …"
        }
    }
}

/// Returns the rejection: a page for users, a problem for programs.
fn rejection_response(parts: &Parts, problem: ProblemDetails) -> Response {
    if !is_page_navigation(parts) {
        return problem.into_response();
    }
    let mut response = pages::error_response(&problem, is_page_script_request(parts));
    let headers = problem.into_response().into_parts().0.headers;
    let wanted = [header::RETRY_AFTER, header::WWW_AUTHENTICATE];
    for name in wanted {
        if let Some(value) = headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

fn forbidden(detail: &str) -> ProblemDetails {
    ProblemDetails::new(StatusCode::FORBIDDEN, detail)
}

fn too_many_requests(what: &str, wait: Duration) -> ProblemDetails {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let detail = format!("{what}; retry in {seconds} s");
    ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, detail)
        .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

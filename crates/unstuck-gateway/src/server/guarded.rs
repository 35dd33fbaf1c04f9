//! A request of a client: which session it belongs to, whether it may go, and whether it is looked into.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderName, UPGRADE, USER_AGENT};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::time::Instant;

use super::doorkeeper::plain;
use super::pass::{self, trouble};
use super::path;
use super::route::Route;
use crate::answer::Answer;
use crate::call::{Call, agent_of, version_of};
use crate::clock;
use crate::identity;
use crate::ledger::Noticed;
use crate::protocol::{Asked, Endpoint, Protocol};
use crate::shared::Shared;

/// Google's clients give up when nothing has come for a minute, and take no signs of life.
const GEMINI_HOLD: Duration = Duration::from_secs(50);
/// What is left of a client's own limit for the answer to get there.
const MARGIN: Duration = Duration::from_secs(1);
/// Whoever says that it waits for longer might as well say nothing.
const LONGEST_PATIENCE: Duration = Duration::from_secs(365 * 24 * 3600);
/// How SDKs say for how many seconds they wait: those for JavaScript, those for Python, and Google's. Python's write words into the
/// first one where nobody has set a limit.
const PATIENCE: [HeaderName; 3] = [
    HeaderName::from_static("x-stainless-timeout"),
    HeaderName::from_static("x-stainless-read-timeout"),
    HeaderName::from_static("x-server-timeout"),
];
/// How often an SDK says that it has tried.
const RETRIES: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// Answers a request.
pub(crate) async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Response<Answer> {
    let Some(path) = path::contained(request.uri().path()) else {
        return plain(
            StatusCode::BAD_REQUEST,
            "unstuck: the path leads above the base URL, or holds characters that it may not\n",
        );
    };
    let path = path.into_owned();
    let Some(route) = Route::of(&path) else {
        return elsewhere(&request);
    };
    if is_websocket(request.headers()) {
        let message = "unstuck: the gateway passes no WebSocket connections on; ask the same API over plain HTTP, where answers are streamed as well";
        // At this status clients that can do without, such as Codex, go on over HTTP.
        let status = StatusCode::UPGRADE_REQUIRED;
        return trouble(route.protocol, status, "invalid_request", message);
    }
    let endpoint = Endpoint::of(route.protocol, request.method().as_str(), route.path);
    if endpoint == Endpoint::Other {
        // Calls of models do not carry the room for it along.
        return Box::pin(pass::through(&shared, &route, request)).await;
    }
    let started = Instant::now();
    let (head, body) = request.into_parts();
    let limited = Limited::new(body, shared.settings.max_request);
    let body = match tokio::time::timeout(shared.settings.limits.request, limited.collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => return unreadable(&shared, route.protocol, &*error),
        Err(_) => {
            let message = "unstuck: the request did not arrive in time";
            return trouble(
                route.protocol,
                StatusCode::REQUEST_TIMEOUT,
                "timeout",
                message,
            );
        }
    };
    let call = begin(
        &shared,
        &route,
        endpoint,
        (head.method, head.headers),
        head.uri.query(),
        body,
        started,
    );
    call.answer().await
}

/// Whether a client wants to speak WebSocket from now on.
fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|upgrade| {
        let mut names = upgrade.split(',').map(str::trim);
        names.any(|name| name.eq_ignore_ascii_case("websocket"))
    })
}

fn begin(
    shared: &Arc<Shared>,
    route: &Route<'_>,
    endpoint: Endpoint,
    (method, headers): (Method, HeaderMap),
    query: Option<&str>,
    body: Bytes,
    started: Instant,
) -> Box<Call> {
    let asked = Asked::read(endpoint, route.path, &body);
    let client = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let session = match route.session {
        Some(name) => shared.session(name, client),
        None => shared.session(
            &identity::of_client(shared.client_key(&headers), client),
            client,
        ),
    };
    let (talk, sign) = session.asked(&asked, clock::at());
    if let Some(sign) = sign {
        shared.crier.tell(&session, Noticed::Circling(sign));
    }
    let hold = hold(shared.settings.limits.hold, route.protocol);
    let own = agent_of(&session, &headers)
        .and_then(|agent| agent.own_retries(version_of(&headers)))
        .unwrap_or(&shared.settings.own_retries)
        .clone();
    let patience = patience(&headers).unwrap_or_else(|| own.timeout.saturating_sub(MARGIN));
    Box::new(Call {
        id: identity::call(),
        own_retries: number(&headers, &RETRIES).unwrap_or(0.0) as u32,
        held_until: started + hold,
        gone_at: Some(started + patience),
        own,
        was_held: Arc::default(),
        is_waiting: AtomicBool::default(),
        shared: Arc::clone(shared),
        session,
        protocol: route.protocol,
        endpoint,
        method,
        headers,
        path: route.path.to_owned(),
        query: query.map(str::to_owned),
        body,
        asked,
        talk,
        started,
    })
}

/// How long such clients can be held.
fn hold(usual: Duration, protocol: Protocol) -> Duration {
    match protocol {
        Protocol::Gemini => usual.min(GEMINI_HOLD),
        Protocol::Anthropic | Protocol::OpenAi => usual,
    }
}

/// How long a client says that it waits, less what the answer takes to get there.
fn patience(headers: &HeaderMap) -> Option<Duration> {
    let said = PATIENCE
        .iter()
        .filter_map(|name| Duration::try_from_secs_f64(number(headers, name)?).ok())
        .filter(|time| !time.is_zero() && *time < LONGEST_PATIENCE)
        .min();
    said.map(|time| time.saturating_sub(MARGIN))
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<f64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

fn unreadable(
    shared: &Shared,
    protocol: Protocol,
    error: &(dyn std::error::Error + Send + Sync + 'static),
) -> Response<Answer> {
    if error.is::<http_body_util::LengthLimitError>() {
        let most = shared.settings.max_request >> 20;
        let message =
            format!("unstuck: the request is longer than the {most} MiB that this gateway takes");
        return trouble(
            protocol,
            StatusCode::PAYLOAD_TOO_LARGE,
            "context_limit",
            &message,
        );
    }
    let message = format!("unstuck: the request cannot be read: {error}");
    trouble(
        protocol,
        StatusCode::BAD_REQUEST,
        "invalid_request",
        &message,
    )
}

/// Addresses that belong to no protocol.
fn elsewhere(request: &Request<Incoming>) -> Response<Answer> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/health") => plain(StatusCode::OK, "ok\n"),
        (&Method::GET | &Method::HEAD, "/") => plain(
            StatusCode::OK,
            "unstuck gateway: base URLs are /anthropic, /openai/v1 and /gemini, and the same under /s/<session>\n",
        ),
        _ => plain(
            StatusCode::NOT_FOUND,
            "unstuck: no such address; base URLs are /anthropic, /openai/v1 and /gemini\n",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_client_waits_is_read_from_what_its_sdk_says() {
        let held = |said: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in said {
                headers.insert(*name, value.parse().unwrap());
            }
            patience(&headers).map(|time| time.as_secs())
        };
        assert_eq!(held(&[]), None);
        assert_eq!(held(&[("x-stainless-timeout", "20")]), Some(19));
        assert_eq!(held(&[("x-server-timeout", "5")]), Some(4));
        let python = [
            ("x-stainless-timeout", "NOT_GIVEN"),
            ("x-stainless-read-timeout", "20.0"),
        ];
        assert_eq!(held(&python), Some(19));
        assert_eq!(held(&[("x-stainless-read-timeout", "3600")]), Some(3599));
        assert_eq!(held(&[("x-stainless-timeout", "1e300")]), None);
        assert_eq!(held(&[("x-stainless-timeout", "1e12")]), None);
    }
}

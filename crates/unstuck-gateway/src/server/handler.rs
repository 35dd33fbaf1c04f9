//! The request handler: finds the session, checks access, and decides whether the call is inspected.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderName, UPGRADE, USER_AGENT};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::time::Instant;

use super::access_control::text_response;
use super::contained_url_path;
use super::passthrough::{self, error_response};
use super::route::Route;
use crate::call::{GatewayCall, client_agent, client_version};
use crate::client_response_body::ResponseBody;
use crate::id_generation;
use crate::protocol::{LlmApiEndpoint, Protocol, RequestFacts};
use crate::recorder::GatewaySessionEventKind;
use crate::state::GatewayState;
use crate::system_clock;

/// The longest hold of Google's clients, which give up after a minute of silence and accept no keep-alive bytes.
const GEMINI_HOLD: Duration = Duration::from_secs(50);
/// The part of a client's limit reserved for sending the response.
const RESPONSE_MARGIN: Duration = Duration::from_secs(1);
/// The longest client timeout that is taken seriously.
const MAX_CLIENT_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
/// The headers by which SDKs state their timeout in seconds: those for JavaScript, those for Python, and Google's.
/// Python's put words into the first one if no limit is set.
const TIMEOUT_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-stainless-timeout"),
    HeaderName::from_static("x-stainless-read-timeout"),
    HeaderName::from_static("x-server-timeout"),
];
/// The header by which an SDK states its retry count.
const RETRY_COUNT_HEADER: HeaderName = HeaderName::from_static("x-stainless-retry-count");

/// Handles a request.
pub(crate) async fn handle(
    shared: Arc<GatewayState>,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let Some(path) = contained_url_path::contained_path(request.uri().path()) else {
        return text_response(
            StatusCode::BAD_REQUEST,
            "unstuck: the path leads above the base URL or contains characters that are not allowed\n",
        );
    };
    let path = path.into_owned();
    let Some(route) = Route::parse(&path) else {
        return no_such_path(&request);
    };
    if is_websocket(request.headers()) {
        let message = "unstuck: the gateway does not support WebSocket connections; use plain HTTP, which also streams responses";
        // At this status clients that can do without WebSocket, such as Codex, continue over HTTP.
        let status = StatusCode::UPGRADE_REQUIRED;
        return error_response(route.protocol, status, "invalid_request", message);
    }
    let endpoint =
        LlmApiEndpoint::from_request(route.protocol, request.method().as_str(), route.path);
    if endpoint == LlmApiEndpoint::Other {
        // Boxed so that the common future stays small.
        return Box::pin(passthrough::forward(&shared, &route, request)).await;
    }
    let started = Instant::now();
    let (head, body) = request.into_parts();
    let limited = Limited::new(body, shared.settings.max_request);
    let body = match tokio::time::timeout(shared.settings.limits.request, limited.collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => return unreadable_body(&shared, route.protocol, &*error),
        Err(_) => {
            let message = "unstuck: the request did not arrive in time";
            return error_response(
                route.protocol,
                StatusCode::REQUEST_TIMEOUT,
                "timeout",
                message,
            );
        }
    };
    let call = new_call(
        &shared,
        &route,
        endpoint,
        (head.method, head.headers),
        head.uri.query(),
        body,
        started,
    );
    call.respond().await
}

/// Returns true if a client requests an upgrade to WebSocket.
fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|upgrade| {
        let mut names = upgrade.split(',').map(str::trim);
        names.any(|name| name.eq_ignore_ascii_case("websocket"))
    })
}

fn new_call(
    shared: &Arc<GatewayState>,
    route: &Route<'_>,
    endpoint: LlmApiEndpoint,
    (method, headers): (Method, HeaderMap),
    query: Option<&str>,
    body: Bytes,
    started: Instant,
) -> Box<GatewayCall> {
    let asked = RequestFacts::read(endpoint, route.path, &body);
    let client = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let session = match route.session {
        Some(name) => shared.session(name, client),
        None => shared.session(
            &id_generation::client_session_name(shared.client_key(&headers), client),
            client,
        ),
    };
    let (talk, sign) = session.record_request(&asked, system_clock::timestamp_now());
    if let Some(sign) = sign {
        shared
            .events
            .publish(&session, GatewaySessionEventKind::LoopDetected(sign));
    }
    let hold = max_hold(shared.settings.limits.hold, route.protocol);
    let own = client_agent(&session, &headers)
        .and_then(|agent| agent.client_retries(client_version(&headers)))
        .unwrap_or(&shared.settings.client_retries)
        .clone();
    let patience =
        client_timeout(&headers).unwrap_or_else(|| own.timeout.saturating_sub(RESPONSE_MARGIN));
    Box::new(GatewayCall {
        id: id_generation::new_call_id(),
        client_retries: numeric_header(&headers, &RETRY_COUNT_HEADER).unwrap_or(0.0) as u32,
        held_until: started + hold,
        client_leaves_at: Some(started + patience),
        client_retry_policy: own,
        was_held: Arc::default(),
        is_waiting: AtomicBool::default(),
        state: Arc::clone(shared),
        session,
        protocol: route.protocol,
        endpoint,
        method,
        headers,
        path: route.path.to_owned(),
        query: query.map(str::to_owned),
        body,
        request: asked,
        conversation: talk,
        started,
    })
}

/// Returns the longest hold of clients of a protocol.
fn max_hold(usual: Duration, protocol: Protocol) -> Duration {
    match protocol {
        Protocol::Gemini => usual.min(GEMINI_HOLD),
        Protocol::Anthropic | Protocol::OpenAi => usual,
    }
}

/// Returns the timeout stated by a client, less the time to send the response.
fn client_timeout(headers: &HeaderMap) -> Option<Duration> {
    let said = TIMEOUT_HEADERS
        .iter()
        .filter_map(|name| Duration::try_from_secs_f64(numeric_header(headers, name)?).ok())
        .filter(|time| !time.is_zero() && *time < MAX_CLIENT_TIMEOUT)
        .min();
    said.map(|time| time.saturating_sub(RESPONSE_MARGIN))
}

fn numeric_header(headers: &HeaderMap, name: &HeaderName) -> Option<f64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

fn unreadable_body(
    shared: &GatewayState,
    protocol: Protocol,
    error: &(dyn std::error::Error + Send + Sync + 'static),
) -> Response<ResponseBody> {
    if error.is::<http_body_util::LengthLimitError>() {
        let most = shared.settings.max_request >> 20;
        let message = format!("unstuck: the request is larger than the limit of {most} MiB");
        return error_response(
            protocol,
            StatusCode::PAYLOAD_TOO_LARGE,
            "context_limit",
            &message,
        );
    }
    let message = format!("unstuck: cannot read the request: {error}");
    error_response(
        protocol,
        StatusCode::BAD_REQUEST,
        "invalid_request",
        &message,
    )
}

/// Answers a path that belongs to no protocol.
fn no_such_path(request: &Request<Incoming>) -> Response<ResponseBody> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/health") => text_response(StatusCode::OK, "ok\n"),
        (&Method::GET | &Method::HEAD, "/") => text_response(
            StatusCode::OK,
            "unstuck gateway: base URLs are /anthropic, /openai/v1 and /gemini, and the same under /s/<session>\n",
        ),
        _ => text_response(
            StatusCode::NOT_FOUND,
            "unstuck: unknown path; base URLs are /anthropic, /openai/v1 and /gemini\n",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_timeout_is_read_from_sdk_headers() {
        let held = |said: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in said {
                headers.insert(*name, value.parse().unwrap());
            }
            client_timeout(&headers).map(|time| time.as_secs())
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

//! Pass-through of requests that are not inspected, in both directions.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};

use super::route::Route;
use crate::client_response_body::ResponseBody;
use crate::error::with_causes;
use crate::protocol::{ErrorDetails, Protocol, error_body};
use crate::state::GatewayState;
use crate::upstream::{RequestBody, UpstreamRequest, remove_hop_by_hop};

/// Forwards a request to the first upstream of its protocol.
pub(crate) async fn forward(
    shared: &Arc<GatewayState>,
    route: &Route<'_>,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let upstreams = &shared.settings.upstreams;
    let Some(upstream) = upstreams.iter().find(|one| one.protocol == route.protocol) else {
        let message = format!(
            "unstuck: no upstream configured for {}",
            route.protocol.name()
        );
        return error_response(
            route.protocol,
            StatusCode::NOT_FOUND,
            "config_error",
            &message,
        );
    };
    let query = request.uri().query().map(str::to_owned);
    let (head, body) = request.into_parts();
    let sending = UpstreamRequest {
        method: &head.method,
        headers: &head.headers,
        path: route.path,
        query: query.as_deref(),
        is_inspected: false,
    };
    let Some(request) = sending.with_body(upstream, RequestBody::Passthrough(body)) else {
        return error_response(
            route.protocol,
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "unstuck: the upstream URL is invalid",
        );
    };
    match shared.client.request(request).await {
        Ok(response) => {
            let (mut head, body) = response.into_parts();
            remove_hop_by_hop(&mut head.headers);
            head.version = hyper::Version::HTTP_11;
            head.extensions = Default::default();
            Response::from_parts(head, ResponseBody::Passthrough(Box::new(body)))
        }
        Err(error) => {
            let why = with_causes(&error);
            let message = format!("unstuck: cannot reach {}: {why}", upstream.name);
            error_response(
                route.protocol,
                StatusCode::BAD_GATEWAY,
                "network_error",
                &message,
            )
        }
    }
}

/// Builds an error response in the client's protocol.
pub(crate) fn error_response(
    protocol: Protocol,
    status: StatusCode,
    code: &str,
    message: &str,
) -> Response<ResponseBody> {
    let trouble = ErrorDetails {
        status: status.as_u16(),
        code,
        message,
        retry_after: None,
        reset_at: None,
    };
    let (kind, body): (_, Bytes) = error_body(protocol, &trouble);
    let length = body.len();
    let mut response = Response::new(ResponseBody::Whole(Some(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert("x-should-retry", HeaderValue::from_static("false"));
    response
}

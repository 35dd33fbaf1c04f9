//! A failed attempt, described in terms that the classifier knows.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use hyper::http::response::Parts;
use hyper::{HeaderMap, StatusCode};
use unstuck_core::{Failure, Headers};

use crate::error::with_causes;
use crate::protocol::Protocol;

/// The maximum size of an error body passed to the classifier.
const MAX_CLASSIFIED_BODY: usize = 64 << 10;

/// The message for a call that was in progress when the gateway stopped.
pub(crate) const STOPPED: &str = "the gateway was stopped";

/// The hints for failures where waiting does not help.
const ADVICE: [(&str, &str); 4] = [
    (
        "invalid peer certificate: UnknownIssuer",
        "not signed by a trusted CA; behind a corporate proxy, set SSL_CERT_FILE=FILE to its certificates",
    ),
    (
        "invalid peer certificate: certificate expired",
        "check the system clock",
    ),
    (
        "invalid peer certificate: certificate not valid for name",
        "check the URL of the upstream",
    ),
    (
        "proxy authorization required",
        "set the credentials in the proxy URL: http://NAME:PASSWORD@HOST:PORT",
    ),
];

/// A failed attempt.
pub(crate) struct UpstreamError {
    pub(crate) failure: Failure,
    /// The upstream's response, if it can be passed on.
    pub(crate) response: Option<(Parts, Bytes)>,
    /// The status for the client if the upstream sent no response.
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

impl UpstreamError {
    /// Builds the error for an error status.
    pub(crate) fn refused(protocol: Protocol, head: Parts, body: Bytes) -> Self {
        let mut failure = Failure::api(protocol.name())
            .with_status(head.status.as_u16())
            .with_body(body[..body.len().min(MAX_CLASSIFIED_BODY)].to_vec());
        failure.headers = classifier_headers(&head.headers);
        Self {
            failure,
            status: head.status,
            message: format!("the API returned {}", head.status),
            response: Some((head, body)),
        }
    }

    /// Builds the error for a failure reported inside a successful response.
    pub(crate) fn in_stream(protocol: Protocol, head: Option<&Parts>, error: &str) -> Self {
        let mut failure = Failure::api(protocol.name()).with_body(error.to_owned());
        if let Some(head) = head {
            failure.headers = classifier_headers(&head.headers);
        }
        Self {
            failure,
            response: None,
            status: StatusCode::BAD_GATEWAY,
            message: "the API interrupted its response".into(),
        }
    }

    /// Builds the error for a failed or broken connection.
    pub(crate) fn transport(
        protocol: Protocol,
        doing: &str,
        error: &(dyn Error + 'static),
    ) -> Self {
        let mut text = format!("{doing}: {}", with_causes(error));
        if let Some((_, advice)) = ADVICE.iter().find(|(sign, _)| text.contains(sign)) {
            text.push_str("; ");
            text.push_str(advice);
        }
        Self {
            failure: Failure::api(protocol.name()).with_body(text.clone()),
            response: None,
            status: StatusCode::BAD_GATEWAY,
            message: text,
        }
    }

    /// Builds the error for a timeout.
    pub(crate) fn timed_out(protocol: Protocol, what: &str, limit: Duration) -> Self {
        let text = format!("Request timed out: {what} within {} s", limit.as_secs_f32());
        Self {
            failure: Failure::api(protocol.name())
                .with_timeout()
                .with_body(text.clone()),
            response: None,
            status: StatusCode::GATEWAY_TIMEOUT,
            message: text,
        }
    }

    /// Returns true if nothing arrived at all.
    pub(crate) fn is_timeout(&self) -> bool {
        self.status == StatusCode::GATEWAY_TIMEOUT && self.response.is_none()
    }

    /// Builds the error for a malformed response.
    pub(crate) fn malformed(protocol: Protocol, what: &str) -> Self {
        let text = format!("stream disconnected before completion: {what}");
        Self {
            failure: Failure::api(protocol.name()).with_body(text.clone()),
            response: None,
            status: StatusCode::BAD_GATEWAY,
            message: text,
        }
    }
}

/// Returns the headers that the classifier reads.
pub(crate) fn classifier_headers(headers: &HeaderMap) -> Headers {
    let pairs = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    pairs.collect()
}

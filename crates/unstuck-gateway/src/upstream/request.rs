//! The request to an upstream: the client's, with the URL and, if configured, the key replaced.

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName,
    HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{HeaderMap, Method, Request, Uri};

use super::request_body::RequestBody;
use crate::protocol::Protocol;
use crate::settings::{Secret, Upstream};

/// The headers that belong to one connection and are not forwarded.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The header of the gateway's own token, which is not forwarded.
pub(crate) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-unstuck-token");

/// The parts of a request to an upstream.
pub(crate) struct UpstreamRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// The path after the prefix of the protocol.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    /// If set, the response is inspected, and must therefore not be compressed.
    pub(crate) is_inspected: bool,
}

impl UpstreamRequest<'_> {
    /// Builds the request with a complete body.
    pub(crate) fn with_bytes(
        &self,
        upstream: &Upstream,
        body: Bytes,
    ) -> Option<Request<RequestBody>> {
        self.with_body(upstream, RequestBody::whole(body))
    }

    /// Builds the request; `None` if its URL is invalid.
    pub(crate) fn with_body(
        &self,
        upstream: &Upstream,
        body: RequestBody,
    ) -> Option<Request<RequestBody>> {
        let mut headers = forwarded_headers(self.headers);
        headers.remove(HOST);
        headers.remove(TOKEN_HEADER);
        headers.remove(EXPECT);
        if let RequestBody::Whole(bytes) = &body
            && (bytes.is_some() || headers.contains_key(CONTENT_LENGTH))
        {
            let length = bytes.as_ref().map_or(0, Bytes::len);
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        if self.is_inspected {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let mut query = self.query.map(str::to_owned);
        if upstream.key.is_some() || !upstream.takes_client_key {
            query = without_client_key(&mut headers, query.as_deref());
        }
        if let Some(key) = &upstream.key {
            add_key(upstream.protocol, key, &mut headers);
        }
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = upstream_uri(&upstream.base, self.path, query.as_deref())?;
        *request.headers_mut() = headers;
        Some(request)
    }
}

/// Returns the headers that are forwarded, in either direction.
pub(crate) fn forwarded_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    remove_hop_by_hop(&mut passed);
    passed
}

/// Removes the headers that belong to one connection, including those that it names itself.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .collect();
        for name in named {
            headers.remove(name);
        }
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

fn upstream_uri(base: &Uri, path: &str, query: Option<&str>) -> Option<Uri> {
    let before = base.path().trim_end_matches('/');
    let whole = match query {
        Some(query) => format!("{before}{path}?{query}"),
        None => format!("{before}{path}"),
    };
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(whole.parse().ok()?);
    Uri::from_parts(parts).ok()
}

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
/// The headers that carry client credentials.
const CREDENTIALS: [HeaderName; 6] = [
    AUTHORIZATION,
    API_KEY,
    GOOGLE_KEY,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-iam-authorization-token"),
    COOKIE,
];

/// Removes the client's key wherever a protocol may have it; returns the rest of the query.
fn without_client_key(headers: &mut HeaderMap, query: Option<&str>) -> Option<String> {
    for name in CREDENTIALS {
        headers.remove(name);
    }
    let is_key = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        ["key", "api_key", "api-key", "access_token"]
            .iter()
            .any(|key| name.eq_ignore_ascii_case(key))
    };
    let kept: Vec<_> = query?.split('&').filter(|pair| !is_key(pair)).collect();
    (!kept.is_empty()).then(|| kept.join("&"))
}

/// Adds an upstream's own key in the form of its protocol.
fn add_key(protocol: Protocol, key: &Secret, headers: &mut HeaderMap) {
    let (name, text) = match protocol {
        Protocol::Anthropic => (API_KEY, key.reveal().to_owned()),
        Protocol::OpenAi => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
        Protocol::Gemini => (GOOGLE_KEY, key.reveal().to_owned()),
    };
    if let Ok(mut value) = HeaderValue::from_str(&text) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_key_is_removed_everywhere() {
        let mut headers = HeaderMap::new();
        for name in CREDENTIALS {
            headers.insert(name, HeaderValue::from_static("key-1"));
        }
        headers.insert(HOST, HeaderValue::from_static("a"));
        let left = without_client_key(&mut headers, Some("key=key-1&a=b&API_KEY=key-1&monkey=1"));
        assert_eq!(left.as_deref(), Some("a=b&monkey=1"));
        assert_eq!(headers.len(), 1);
        assert_eq!(without_client_key(&mut headers, Some("key=key-1")), None);
    }
}

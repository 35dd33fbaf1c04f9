//! The request to an upstream: what the client sent, with the address and, where there is one, the key exchanged.

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName,
    HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{HeaderMap, Method, Request, Uri};

use super::request_body::RequestBody;
use crate::protocol::Protocol;
use crate::settings::{Secret, Upstream};

/// Headers that belong to one connection and are not passed on.
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

/// Where a token for the gateway itself is sent; it is nobody else's business.
pub(crate) const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-unstuck-token");

/// What is sent to an upstream.
pub(crate) struct UpstreamRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// The path after the prefix of the protocol.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    /// Whether the answer is looked into, and must therefore not be compressed.
    pub(crate) is_inspected: bool,
}

impl UpstreamRequest<'_> {
    /// The request with a body that is all here.
    pub(crate) fn with_bytes(
        &self,
        upstream: &Upstream,
        body: Bytes,
    ) -> Option<Request<RequestBody>> {
        self.with_body(upstream, RequestBody::whole(body))
    }

    /// The request; none if its address cannot be one.
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

/// The headers that are passed on, in either direction.
pub(crate) fn forwarded_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    remove_hop_by_hop(&mut passed);
    passed
}

/// Takes out the headers that belong to one connection, and those that it names itself.
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
/// Headers by which clients show who they are.
const CREDENTIALS: [HeaderName; 6] = [
    AUTHORIZATION,
    API_KEY,
    GOOGLE_KEY,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-iam-authorization-token"),
    COOKIE,
];

/// Takes out the client's key, wherever a protocol may have it; what is left of the query.
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

/// Puts an upstream's own key where its protocol has it.
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
    fn a_clients_key_is_taken_out_wherever_it_is() {
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

//! The request to an upstream: what the client sent, with the address and, where there is one, the key exchanged.

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName,
    HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{HeaderMap, Method, Request, Uri};

use super::body::Outgoing;
use crate::protocol::Protocol;
use crate::settings::{Secret, Upstream};

/// Headers that belong to one connection and are not passed on.
const OF_A_CONNECTION: [HeaderName; 8] = [
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
pub(crate) const TOKEN: HeaderName = HeaderName::from_static("x-unstuck-token");

/// What is sent to an upstream.
pub(crate) struct Sending<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// The path after the prefix of the protocol.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    /// Whether the answer is looked into, and must therefore not be compressed.
    pub(crate) is_read: bool,
}

impl Sending<'_> {
    /// The request with a body that is all here.
    pub(crate) fn whole(&self, upstream: &Upstream, body: Bytes) -> Option<Request<Outgoing>> {
        self.request(upstream, Outgoing::whole(body))
    }

    /// The request; none if its address cannot be one.
    pub(crate) fn request(&self, upstream: &Upstream, body: Outgoing) -> Option<Request<Outgoing>> {
        let mut headers = passed_on(self.headers);
        headers.remove(HOST);
        headers.remove(TOKEN);
        headers.remove(EXPECT);
        if let Outgoing::Whole(bytes) = &body
            && (bytes.is_some() || headers.contains_key(CONTENT_LENGTH))
        {
            let length = bytes.as_ref().map_or(0, Bytes::len);
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        if self.is_read {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let mut query = self.query.map(str::to_owned);
        if let Some(key) = &upstream.key {
            query = with_key(upstream.protocol, key, &mut headers, query.as_deref());
        }
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = address(&upstream.base, self.path, query.as_deref())?;
        *request.headers_mut() = headers;
        Some(request)
    }
}

/// The headers that are passed on, in either direction.
pub(crate) fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    own_headers(&mut passed);
    passed
}

/// Takes out the headers that belong to one connection, and those that it names itself.
pub(crate) fn own_headers(headers: &mut HeaderMap) {
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
    for name in OF_A_CONNECTION {
        headers.remove(name);
    }
}

fn address(base: &Uri, path: &str, query: Option<&str>) -> Option<Uri> {
    let before = base.path().trim_end_matches('/');
    let whole = match query {
        Some(query) => format!("{before}{path}?{query}"),
        None => format!("{before}{path}"),
    };
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(whole.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Puts an upstream's own key where its protocol has it, and takes the client's out.
fn with_key(
    protocol: Protocol,
    key: &Secret,
    headers: &mut HeaderMap,
    query: Option<&str>,
) -> Option<String> {
    const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
    const GOOGLE: HeaderName = HeaderName::from_static("x-goog-api-key");
    let sensitive = |text: &str| {
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    headers.remove(AUTHORIZATION);
    headers.remove(API_KEY);
    headers.remove(GOOGLE);
    let (name, value) = match protocol {
        Protocol::Anthropic => (API_KEY, sensitive(key.reveal())),
        Protocol::OpenAi => (
            AUTHORIZATION,
            sensitive(&format!("Bearer {}", key.reveal())),
        ),
        Protocol::Gemini => (GOOGLE, sensitive(key.reveal())),
    };
    if let Some(value) = value {
        headers.insert(name, value);
    }
    let kept: Vec<_> = query?
        .split('&')
        .filter(|pair| !(protocol == Protocol::Gemini && pair.starts_with("key=")))
        .collect();
    (!kept.is_empty()).then(|| kept.join("&"))
}

//! Which protocol and which operation a request is for.

use hyper::{HeaderMap, Method, Uri};

use super::Protocol;

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Is anyone there?
    Probe,
    /// Which models are there?
    Models(Protocol),
    /// How long is this prompt?
    CountTokens(Protocol),
    /// The model shall answer: this is what takes a step of the script.
    Generate(Protocol),
    /// Nothing that is known, and the protocol in which to say so.
    Unknown(Protocol),
}

impl Route {
    pub(crate) fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path().trim_end_matches('/');
        let protocol = spoken(path, headers);
        if path.is_empty() && (method == Method::HEAD || method == Method::GET) {
            return Self::Probe;
        }
        if method == Method::GET && (path.ends_with("/models") || path.contains("/models/")) {
            return Self::Models(protocol);
        }
        if method != Method::POST {
            return Self::Unknown(protocol);
        }
        match path {
            path if path.ends_with("/messages/count_tokens") || path.ends_with(":countTokens") => {
                Self::CountTokens(protocol)
            }
            path if GENERATING.iter().any(|end| path.ends_with(end)) => Self::Generate(protocol),
            _ => Self::Unknown(protocol),
        }
    }
}

const GENERATING: [&str; 5] = [
    "/messages",
    "/responses",
    "/chat/completions",
    ":generateContent",
    ":streamGenerateContent",
];

fn spoken(path: &str, headers: &HeaderMap) -> Protocol {
    if path.contains("/v1beta/") || path.contains(':') || headers.contains_key("x-goog-api-key") {
        Protocol::Gemini
    } else if path.contains("/messages") || headers.contains_key("anthropic-version") {
        Protocol::Anthropic
    } else if path.ends_with("/responses") {
        Protocol::Responses
    } else {
        Protocol::Chat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: Method, uri: &'static str) -> Route {
        Route::of(&method, &Uri::from_static(uri), &HeaderMap::new())
    }

    #[test]
    fn the_paths_that_agents_call_are_known() {
        let expected = [
            (
                "/v1/messages?beta=true",
                Route::Generate(Protocol::Anthropic),
            ),
            (
                "/v1/messages/count_tokens",
                Route::CountTokens(Protocol::Anthropic),
            ),
            ("/v1/responses", Route::Generate(Protocol::Responses)),
            ("/v1/chat/completions", Route::Generate(Protocol::Chat)),
            (
                "/v1beta/models/gemini-3:streamGenerateContent?alt=sse",
                Route::Generate(Protocol::Gemini),
            ),
            (
                "/v1beta/models/m:countTokens",
                Route::CountTokens(Protocol::Gemini),
            ),
            ("/v1/embeddings", Route::Unknown(Protocol::Chat)),
        ];
        for (uri, route_expected) in expected {
            assert_eq!(route(Method::POST, uri), route_expected, "{uri}");
        }
        assert_eq!(route(Method::HEAD, "/"), Route::Probe);
        assert_eq!(
            route(Method::GET, "/v1/models"),
            Route::Models(Protocol::Chat)
        );
        assert_eq!(
            route(Method::GET, "/v1/messages"),
            Route::Unknown(Protocol::Anthropic)
        );
    }
}

//! Routes a request to a protocol and operation.

use hyper::{HeaderMap, Method, Uri};

use super::Protocol;

/// The operation that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// Generate an answer: takes a step of the script.
    Generate(Protocol),
    /// An auxiliary query that needs no model.
    Auxiliary(Protocol, AuxiliaryQuery),
    /// Return the statistics.
    Stats,
    /// Restart the script.
    Restart,
}

/// An auxiliary query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuxiliaryQuery {
    /// A connectivity check.
    Probe,
    /// List the models, or describe one.
    Models,
    /// Count the tokens of a prompt.
    CountTokens,
    /// Compute embeddings.
    Embeddings,
    /// Store, list and return files.
    Files,
    /// An unknown query.
    Unknown,
}

impl Route {
    pub(crate) fn from_request(method: &Method, uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path().trim_end_matches('/');
        if let Some(own) = path.strip_prefix("/__faults/") {
            match (own, method) {
                ("stats", &Method::GET) => return Self::Stats,
                ("restart", &Method::POST) => return Self::Restart,
                _ => {}
            }
        }
        let protocol = protocol_of(path, headers);
        if method == Method::POST && GENERATE_PATHS.iter().any(|end| path.ends_with(end)) {
            return Self::Generate(protocol);
        }
        Self::Auxiliary(protocol, auxiliary_query(method, path))
    }
}

fn auxiliary_query(method: &Method, path: &str) -> AuxiliaryQuery {
    let is_get = method == Method::GET;
    let is_post = method == Method::POST;
    let ends = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if path.is_empty() && (is_get || method == Method::HEAD) {
        AuxiliaryQuery::Probe
    } else if is_get && (path.ends_with("/models") || path.contains("/models/")) {
        AuxiliaryQuery::Models
    } else if is_post && ends(&TOKEN_COUNT_PATHS) {
        AuxiliaryQuery::CountTokens
    } else if is_post && ends(&EMBEDDING_PATHS) {
        AuxiliaryQuery::Embeddings
    } else if path.ends_with("/files") || path.contains("/files/") {
        AuxiliaryQuery::Files
    } else {
        AuxiliaryQuery::Unknown
    }
}

const GENERATE_PATHS: [&str; 5] = [
    "/messages",
    "/responses",
    "/chat/completions",
    ":generateContent",
    ":streamGenerateContent",
];

const TOKEN_COUNT_PATHS: [&str; 3] = ["/messages/count_tokens", ":countTokens", "/input_tokens"];

const EMBEDDING_PATHS: [&str; 3] = ["/embeddings", ":embedContent", ":batchEmbedContents"];

fn protocol_of(path: &str, headers: &HeaderMap) -> Protocol {
    if path.contains("/v1beta/") || path.contains(':') || headers.contains_key("x-goog-api-key") {
        Protocol::Gemini
    } else if path.contains("/messages") || headers.contains_key("anthropic-version") {
        Protocol::Anthropic
    } else if path.contains("/responses") {
        Protocol::Responses
    } else {
        Protocol::Chat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: Method, uri: &'static str) -> Route {
        Route::from_request(&method, &Uri::from_static(uri), &HeaderMap::new())
    }

    #[test]
    fn paths_called_by_agents_are_routed() {
        use Protocol::{Anthropic, Chat, Gemini, Responses};
        let posted = [
            ("/v1/messages?beta=true", Route::Generate(Anthropic)),
            (
                "/v1/messages/count_tokens",
                Route::Auxiliary(Anthropic, AuxiliaryQuery::CountTokens),
            ),
            ("/v1/responses", Route::Generate(Responses)),
            (
                "/v1/responses/input_tokens",
                Route::Auxiliary(Responses, AuxiliaryQuery::CountTokens),
            ),
            ("/v1/chat/completions", Route::Generate(Chat)),
            (
                "/v1beta/models/gemini-3:streamGenerateContent?alt=sse",
                Route::Generate(Gemini),
            ),
            (
                "/v1beta/models/m:countTokens",
                Route::Auxiliary(Gemini, AuxiliaryQuery::CountTokens),
            ),
            (
                "/v1/embeddings",
                Route::Auxiliary(Chat, AuxiliaryQuery::Embeddings),
            ),
            (
                "/v1beta/models/m:embedContent",
                Route::Auxiliary(Gemini, AuxiliaryQuery::Embeddings),
            ),
            ("/v1/files", Route::Auxiliary(Chat, AuxiliaryQuery::Files)),
            (
                "/v1/messages/batches",
                Route::Auxiliary(Anthropic, AuxiliaryQuery::Unknown),
            ),
            ("/__faults/restart", Route::Restart),
        ];
        for (uri, expected) in posted {
            assert_eq!(route(Method::POST, uri), expected, "{uri}");
        }
        let got = [
            ("/v1/models", Route::Auxiliary(Chat, AuxiliaryQuery::Models)),
            (
                "/v1/models/gpt-5.1",
                Route::Auxiliary(Chat, AuxiliaryQuery::Models),
            ),
            (
                "/v1/files/file-1/content",
                Route::Auxiliary(Chat, AuxiliaryQuery::Files),
            ),
            (
                "/v1/messages",
                Route::Auxiliary(Anthropic, AuxiliaryQuery::Unknown),
            ),
            ("/__faults/stats", Route::Stats),
        ];
        for (uri, expected) in got {
            assert_eq!(route(Method::GET, uri), expected, "{uri}");
        }
        assert_eq!(
            route(Method::HEAD, "/"),
            Route::Auxiliary(Chat, AuxiliaryQuery::Probe)
        );
    }
}

//! Routing: the session and the protocol of a path.

use crate::protocol::Protocol;

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route<'a> {
    /// The session that the calls are tied to.
    pub(crate) session: Option<&'a str>,
    pub(crate) protocol: Protocol,
    /// The path after the prefix of the protocol.
    pub(crate) path: &'a str,
}

impl<'a> Route<'a> {
    /// Parses a path; `None` if it is unknown.
    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        let (session, rest) = match path.strip_prefix("/s/") {
            Some(rest) => {
                let end = rest.find('/')?;
                (Some(&rest[..end]), &rest[end..])
            }
            None => (None, path),
        };
        if session.is_some_and(|name| !is_session_name(name)) {
            return None;
        }
        Protocol::ALL.into_iter().find_map(|protocol| {
            let path = rest.strip_prefix(protocol.prefix())?;
            let is_whole = path.is_empty() || path.starts_with('/');
            is_whole.then_some(Self {
                session,
                protocol,
                path,
            })
        })
    }
}

/// Returns true if the path belongs to the gateway, even if it is a 404.
pub(crate) fn is_gateway_path(path: &str) -> bool {
    let first = path.strip_prefix('/').unwrap_or(path);
    let first = first.split('/').next().unwrap_or_default();
    matches!(first, "s" | "health" | "anthropic" | "openai" | "gemini")
}

/// Returns true if a text is a valid session name.
pub(crate) fn is_session_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_names_protocol_rest_and_session() {
        let route = |path| Route::parse(path).map(|one| (one.session, one.protocol, one.path));
        assert_eq!(
            route("/anthropic/v1/messages"),
            Some((None, Protocol::Anthropic, "/v1/messages"))
        );
        assert_eq!(
            route("/s/k3v9x0m2qa-1/openai/v1/chat/completions"),
            Some((Some("k3v9x0m2qa-1"), Protocol::OpenAi, "/chat/completions"))
        );
        assert_eq!(
            route("/gemini/v1beta/models/gemini-x:generateContent"),
            Some((
                None,
                Protocol::Gemini,
                "/v1beta/models/gemini-x:generateContent"
            ))
        );
        assert_eq!(route("/openai/v1"), Some((None, Protocol::OpenAi, "")));
    }

    #[test]
    fn mistyped_path_below_a_base_url_belongs_to_the_gateway() {
        for protocol in Protocol::ALL {
            assert!(is_gateway_path(protocol.prefix()), "{}", protocol.name());
        }
        for path in ["/s/", "/s/a/anthropic/v1", "/openai/v2/x", "/health"] {
            assert!(is_gateway_path(path), "{path}");
        }
        for path in ["/", "", "/api/runs", "/settings", "/sessions/a", "/healthy"] {
            assert!(!is_gateway_path(path), "{path}");
        }
    }

    #[test]
    fn other_paths_are_not_routed() {
        for path in [
            "/",
            "/anthropics/v1",
            "/openai/v2/x",
            "/s/",
            "/s/a",
            "/s//anthropic/v1",
            "/s/a b/anthropic/v1",
        ] {
            assert_eq!(Route::parse(path), None, "{path}");
        }
    }
}

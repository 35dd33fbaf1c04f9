//! Access control: programs of the gateway's user, and requests with the token.

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{Request, Response, StatusCode, Uri};
use unstuck_network::{PeerOwner, host_name, is_loopback_name, unambiguous_host};

use super::route::Route;
use crate::client_response_body::ResponseBody;
use crate::non_llm_request_handler::ConnectionPeer;
use crate::settings::Secret;
use crate::state::GatewayState;
use crate::upstream::TOKEN_HEADER;

const NEEDS_TOKEN: &str =
    "unstuck: invalid token: this gateway requires its token in the header x-unstuck-token\n";
const OTHER_USER: &str = "unstuck: this gateway serves only the user who runs it; other users of this machine need a token \
     (unstuck serve --token-file FILE)\n";
const UNKNOWN_USER: &str = "unstuck: cannot determine the owner of this connection, and this gateway uses API keys; \
     start it with a token (unstuck serve --token-file FILE)\n";

/// Admits a request, or returns the error response. The token is removed: it must not be forwarded.
pub(crate) fn admit(
    shared: &GatewayState,
    request: &mut Request<Incoming>,
    from: ConnectionPeer,
) -> Result<(), Box<Response<ResponseBody>>> {
    let refused = |status, text| Err(Box::new(text_response(status, text)));
    if let Some(token) = &shared.settings.token {
        return if take_token(request, token) {
            Ok(())
        } else {
            refused(StatusCode::UNAUTHORIZED, NEEDS_TOKEN)
        };
    }
    match from.owner {
        PeerOwner::SameUser => {}
        PeerOwner::OtherUser(_) => return refused(StatusCode::FORBIDDEN, OTHER_USER),
        PeerOwner::Unknown if is_open_to_all_users(shared, request) => {}
        PeerOwner::Unknown => return refused(StatusCode::UNAUTHORIZED, UNKNOWN_USER),
    }
    // A web page must not reach this machine under a name of its own (DNS rebinding).
    if !host(request).is_some_and(is_this_machine) {
        return refused(
            StatusCode::FORBIDDEN,
            "unstuck: the Host header does not name this machine\n",
        );
    }
    let mut origins = request.headers().get_all(ORIGIN).iter();
    let is_own = |origin: &HeaderValue| {
        let uri = origin.to_str().ok().and_then(|text| text.parse().ok());
        let uri: Uri = uri.unwrap_or_default();
        uri.authority()
            .is_some_and(|one| is_this_machine(one.as_str()))
    };
    if origins.all(is_own) {
        Ok(())
    } else {
        refused(
            StatusCode::FORBIDDEN,
            "unstuck: web pages are not allowed to use this gateway\n",
        )
    }
}

/// Returns true if any user of this machine may send the request: it names a session of a private gateway, whose name
/// only its agent knows, or the gateway has no key that it could spend.
fn is_open_to_all_users(shared: &GatewayState, request: &Request<Incoming>) -> bool {
    if shared.settings.is_private {
        let route = Route::parse(request.uri().path());
        let session = route.and_then(|route| shared.sessions.get(route.session?));
        return session.is_some();
    }
    shared
        .settings
        .upstreams
        .iter()
        .all(|one| one.key.is_none())
}

fn host(request: &Request<Incoming>) -> Option<&str> {
    let hosts = request.headers().get_all(HOST).iter();
    let hosts = hosts.map(|host| host.to_str().ok());
    unambiguous_host(hosts, request.uri().authority().map(Authority::as_str))
}

/// Removes the token from a request; returns true if it was valid.
fn take_token(request: &mut Request<Incoming>, token: &Secret) -> bool {
    let is_token = |given: &[u8]| is_equal_constant_time(given, token.reveal().as_bytes());
    let headers = request.headers_mut();
    if let Some(own) = headers.remove(TOKEN_HEADER) {
        return is_token(own.as_bytes());
    }
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let value = value.to_str().ok()?;
        Some(is_token(value.strip_prefix("Bearer ")?.as_bytes()))
    });
    let brings = bearer.unwrap_or(false);
    if brings {
        headers.remove(AUTHORIZATION);
    }
    brings
}

/// Compares without revealing by its duration where the values differ.
fn is_equal_constant_time(a: &[u8], b: &[u8]) -> bool {
    let differs = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && differs == 0
}

/// Returns true if a host, with or without a port, is this machine.
fn is_this_machine(host: &str) -> bool {
    host_name(host).is_some_and(is_loopback_name)
}

/// Returns a short text response.
pub(crate) fn text_response(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::text(text));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_host_names_are_this_machine() {
        for host in [
            "127.0.0.1:8080",
            "localhost",
            "LOCALHOST:1",
            "[::1]:80",
            "127.9.9.9",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil:80",
            "10.0.0.1",
            "",
            "[::1].evil.example",
            "127.0.0.1:1@evil.example",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}

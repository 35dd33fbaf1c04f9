//! Who may come in: only programs of this machine, or whoever brings the token.

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::{Request, Response, StatusCode, Uri};

use crate::answer::Answer;
use crate::shared::Shared;
use crate::upstream::TOKEN;

/// The answer to whoever may not come in.
pub(crate) fn refused(shared: &Shared, request: &Request<Incoming>) -> Option<Response<Answer>> {
    if let Some(token) = &shared.settings.token {
        return match brings(request, token.reveal()) {
            true => None,
            false => Some(plain(
                StatusCode::UNAUTHORIZED,
                "unstuck: this gateway needs its token in the header x-unstuck-token\n",
            )),
        };
    }
    // Without a token only this machine is listened to. A web page must not reach it under a name of its own.
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.or_else(|| {
        request
            .uri()
            .authority()
            .map(|authority| authority.as_str())
    });
    if !host.is_some_and(is_this_machine) {
        return Some(plain(
            StatusCode::FORBIDDEN,
            "unstuck: the host of this address is not this machine\n",
        ));
    }
    let origin = request
        .headers()
        .get(ORIGIN)
        .map(|origin| origin.to_str().unwrap_or_default());
    let is_own = |origin: &str| {
        let uri = origin.parse::<Uri>().ok();
        uri.and_then(|uri| uri.authority().map(|one| is_this_machine(one.as_str())))
            .unwrap_or(false)
    };
    match origin.is_none_or(is_own) {
        true => None,
        false => Some(plain(
            StatusCode::FORBIDDEN,
            "unstuck: web pages may not use this gateway\n",
        )),
    }
}

fn brings(request: &Request<Incoming>, token: &str) -> bool {
    let own = request.headers().get(TOKEN).map(HeaderValue::as_bytes);
    let bearer = || {
        let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
        Some(value.strip_prefix("Bearer ")?.as_bytes())
    };
    own.is_some_and(|own| same(own, token.as_bytes()))
        || own.is_none() && bearer().is_some_and(|bearer| same(bearer, token.as_bytes()))
}

/// Compares without telling by its time where a difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differs = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && differs == 0
}

/// Whether a host, with or without a port, is this machine.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// A short answer of our own.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response<Answer> {
    let mut response = Response::new(Answer::text(text));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_this_machine() {
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
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}

//! The door: lets requests in or not, and sees to what leaves.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use unstuck_network::PeerOwner;

use crate::guard::{self, Asker, Papers, Peer, Scope, Who, address, headers};
use crate::leaving;
use crate::model::Problem;
use crate::pages;
use crate::web::Web;

/// Where a code is exchanged: who comes there has nothing else yet.
const LOGIN: &str = "/api/login";
/// Where a login ends: whoever has one may end it.
const LOGOUT: &str = "/api/logout";
/// What everybody may have: without it nobody could log in.
const OPEN: [&str; 2] = ["/login", "/assets/"];

/// Lets a request in or not, and sees to what leaves.
pub(crate) async fn keep(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let (mut parts, body) = request.into_parts();
    let is_login = path == LOGIN;
    let peer = Peer::of(&parts);
    let admitted = admit(&web, &parts);
    let mut response = match admitted {
        Ok(who) => {
            parts.extensions.insert(who);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(Refusal::Login) => login_first(&parts),
        Err(Refusal::Problem(problem)) => told(&parts, *problem),
    };
    if is_login && response.status() == StatusCode::UNAUTHORIZED {
        // Whoever guesses codes is told to wait; the right code is good all the same.
        if let Err(wait) = was_wrong(&web, peer) {
            response = too_often("too many wrong codes", wait).into_response();
        }
    }
    response = leaving::finish(&web.redactor, response, &path).await;
    headers::add(response.headers_mut());
    response
}

/// Why somebody is not let in.
enum Refusal {
    /// They have to log in first.
    Login,
    /// Something else is wrong.
    Problem(Box<Problem>),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

fn admit(web: &Web, parts: &Parts) -> Result<Who, Refusal> {
    let peer = Peer::of(parts);
    let Some(host) = address::host(parts) else {
        let detail = "the header Host must name one host, with or without a port";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail).into());
    };
    if address::is_foreign(parts, host) {
        return Err(forbidden("pages of other origins may not use this server").into());
    }
    let who = who(web, parts).map_err(|problem| match problem.code() {
        StatusCode::UNAUTHORIZED => match was_wrong(web, peer) {
            Ok(()) => problem,
            Err(wait) => too_often("too many wrong tokens", wait),
        },
        _ => problem,
    })?;
    ask(web, parts, &who)?;
    // Who brings a token is no page that was led here by a name.
    let brings_token = who.may_change && parts.headers.contains_key(header::AUTHORIZATION);
    if !brings_token && !address::is_ours(host, &web.hosts) {
        return Err(forbidden(
            "this server is not known by that name; use its address, or name it with --host",
        )
        .into());
    }
    may(parts, &who).map(|()| who)
}

/// Counts a wrong token or code; how long to wait if there were too many.
fn was_wrong(web: &Web, peer: Peer) -> Result<(), Duration> {
    let now = web.now();
    web.rejected.count(peer.address, now);
    web.rates.was_wrong(peer, now)
}

/// Counts a request, but for those that only look from this machine.
fn ask(web: &Web, parts: &Parts, who: &Who) -> Result<(), Problem> {
    let (peer, here) = (Peer::of(parts), is_here(parts));
    let asker = match who.scope {
        Some(_) => Asker::Known(who.credential.clone().unwrap_or_default()),
        None if here => return Ok(()),
        None => Asker::At(peer),
    };
    let counted = web.rates.asked(asker, here, web.now());
    counted.map_err(|wait| too_often("too many requests", wait))
}

/// Whether somebody is a program of the same user on this machine, and not passed on by a proxy on it.
fn is_here(parts: &Parts) -> bool {
    let peer = Peer::of(parts);
    let is_same_user = peer.is_local() && peer.owner == PeerOwner::SameUser;
    is_same_user && !address::is_passed_on(&parts.headers)
}

/// Whether somebody who was let in would be let in once more: tokens are taken back, and logins end.
pub(crate) fn is_still_welcome(web: &Web, parts: &Parts) -> bool {
    who(web, parts).is_ok_and(|who| may(parts, &who).is_ok())
}

fn who(web: &Web, parts: &Parts) -> Result<Who, Problem> {
    let papers = Papers {
        tokens: &web.tokens,
        logins: &web.logins,
        cookie: &web.cookie_name(),
        now: web.now(),
    };
    Who::of(&papers, parts, address::host(parts).unwrap_or_default())
}

/// Whether they may do what they ask for.
fn may(parts: &Parts, who: &Who) -> Result<(), Refusal> {
    let (path, method) = (parts.uri.path(), &parts.method);
    let is_open = OPEN.iter().any(|open| path.starts_with(open));
    let only_looks = matches!(*method, Method::GET | Method::HEAD);
    if path == LOGIN || only_looks && (is_open || is_here(parts) || who.has(Scope::Read)) {
        return Ok(());
    }
    if only_looks {
        return Err(Refusal::Login);
    }
    match who.scope {
        None if who.login_ended => Err(guard::wrong("your login has ended: log in again").into()),
        None => Err(guard::wrong(
            "what changes something needs a token: Authorization: Bearer …; `unstuck token create` makes one",
        )
        .into()),
        Some(_) if !who.may_change => Err(forbidden(
            "a cookie alone changes nothing: send its key in x-unstuck-key, from a page of this server",
        )
        .into()),
        Some(own) if own < Scope::Answer && path != LOGOUT => {
            Err(guard::needs(Scope::Answer, own).into())
        }
        Some(_) => Ok(()),
    }
}

/// Whether a person looks at a page, who can do nothing with JSON.
fn is_person(parts: &Parts) -> bool {
    let accept = parts.headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let takes_pages = accept.is_some_and(|accept| accept.contains("text/html"));
    takes_pages && !parts.uri.path().starts_with("/api/")
}

/// Whether a page that is open asks, for a part of itself or for something to be done.
fn is_part(parts: &Parts) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    parts.method != Method::GET || query.split('&').any(|one| one.starts_with("part="))
}

/// From elsewhere even looking needs a login: people are led there and back, programs are told.
fn login_first(parts: &Parts) -> Response {
    if is_person(parts) && is_part(parts) {
        // A page that is open stays open, and says what has happened.
        return told(parts, guard::wrong("your login has ended: log in again"));
    }
    if is_person(parts) {
        let asked = parts
            .uri
            .path_and_query()
            .map_or("/", |asked| asked.as_str());
        let to_login = match asked {
            "/" => "/login".to_owned(),
            asked => format!("/login?back={}", pages::encoded(asked)),
        };
        // What that is encoded is always a header.
        let to_login = HeaderValue::try_from(to_login);
        let to_login = to_login.unwrap_or_else(|_| HeaderValue::from_static("/login"));
        return (StatusCode::SEE_OTHER, [(header::LOCATION, to_login)]).into_response();
    }
    guard::wrong(not_here(parts)).into_response()
}

/// Why even looking needs a token.
fn not_here(parts: &Parts) -> &'static str {
    let peer = Peer::of(parts);
    match peer.owner {
        _ if !peer.is_local() || address::is_passed_on(&parts.headers) => {
            "from another machine everything needs a token: Authorization: Bearer …"
        }
        PeerOwner::OtherUser(_) => {
            "this server belongs to another user of this machine: everything needs a token: Authorization: Bearer …"
        }
        PeerOwner::SameUser | PeerOwner::Unknown => {
            "the user at the other end of this connection cannot be determined, so everything needs a token: Authorization: Bearer …"
        }
    }
}

/// What is wrong: a page for people, and a problem for programs.
fn told(parts: &Parts, problem: Problem) -> Response {
    if !is_person(parts) {
        return problem.into_response();
    }
    let mut response = pages::trouble(&problem, is_part(parts));
    let headers = problem.into_response().into_parts().0.headers;
    let wanted = [header::RETRY_AFTER, header::WWW_AUTHENTICATE];
    for name in wanted {
        if let Some(value) = headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

fn forbidden(detail: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, detail)
}

fn too_often(what: &str, wait: Duration) -> Problem {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let detail = format!("{what}; try again in {seconds} s");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
        .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

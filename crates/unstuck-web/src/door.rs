//! The door: lets requests in or not, and sees to what leaves.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::guard::{self, Papers, Scope, Who, address, headers};
use crate::leaving;
use crate::model::Problem;
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
    let admitted = admit(&web, &parts);
    let mut response = match admitted {
        Ok(who) => {
            parts.extensions.insert(who);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(problem) => *problem,
    };
    response = leaving::finish(&web.redactor, response, &path).await;
    headers::add(response.headers_mut());
    response
}

fn admit(web: &Web, parts: &Parts) -> Result<Who, Box<Response>> {
    let (peer, now) = (guard::peer(parts), web.now());
    let refuse = |problem: Problem| Box::new(problem.into_response());
    web.rates
        .asked(peer, now)
        .map_err(|wait| refuse(too_often(wait)))?;
    let host = address::host(parts).unwrap_or_default();
    if address::is_foreign(parts, host) {
        return Err(refuse(forbidden(
            "pages of other origins may not use this server",
        )));
    }
    let who = who(web, parts).map_err(|problem| {
        if problem.code() == StatusCode::UNAUTHORIZED {
            web.rates.was_wrong(peer, now);
        }
        refuse(problem)
    })?;
    // Who brings a token is no page that was led here by a name.
    let brings_token = who.may_change && parts.headers.contains_key(header::AUTHORIZATION);
    if !brings_token && !address::is_ours(host, &web.hosts) {
        return Err(refuse(forbidden(
            "this server is not known by that name; use its address, or name it with --host",
        )));
    }
    may(parts, &who).map(|()| who)
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
fn may(parts: &Parts, who: &Who) -> Result<(), Box<Response>> {
    let (path, method) = (parts.uri.path(), &parts.method);
    let is_here = guard::peer(parts).is_some_and(|peer| peer.is_loopback());
    let is_free = is_here && !address::is_passed_on(&parts.headers);
    let refuse = |problem: Problem| Box::new(problem.into_response());
    let is_open = OPEN.iter().any(|open| path.starts_with(open));
    let only_looks = matches!(*method, Method::GET | Method::HEAD);
    if path == LOGIN || only_looks && (is_open || is_free || who.has(Scope::Read)) {
        return Ok(());
    }
    if only_looks {
        return Err(Box::new(locked(parts)));
    }
    match who.scope {
        None => Err(refuse(guard::wrong(
            "what changes something needs a token: Authorization: Bearer …; `unstuck token` makes one",
        ))),
        Some(_) if !who.may_change => Err(refuse(forbidden(
            "a cookie alone changes nothing: send its key in x-unstuck-key, from a page of this server",
        ))),
        Some(own) if own < Scope::Answer && path != LOGOUT => {
            Err(refuse(guard::needs(Scope::Answer, own)))
        }
        Some(_) => Ok(()),
    }
}

/// From elsewhere even looking needs a login: people are led there, programs are told.
fn locked(parts: &Parts) -> Response {
    let accept = parts.headers.get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let is_person = accept.is_some_and(|accept| accept.contains("text/html"));
    if is_person && !parts.uri.path().starts_with("/api/") {
        let to_login = [(header::LOCATION, HeaderValue::from_static("/login"))];
        return (StatusCode::SEE_OTHER, to_login).into_response();
    }
    guard::wrong("from another machine everything needs a token: Authorization: Bearer …")
        .into_response()
}

fn forbidden(detail: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, detail)
}

fn too_often(wait: Duration) -> Problem {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let detail = format!("too many requests from this address; try again in {seconds} s");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
        .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
}

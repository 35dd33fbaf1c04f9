//! Identity and permissions of a caller.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use unstuck_core::Timestamp;
use unstuck_network::PeerOwner;

use super::logins::LoginStore;
use super::origin;
use super::random_token::SecretHash;
use super::tokens::TokenStore;
use crate::model::{PermissionScope, ProblemDetails};

/// Header that carries the CSRF key of a login.
const LOGIN_KEY_HEADER: &str = "x-unstuck-key";

/// The identity of a caller; the auth middleware adds it to every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerIdentity {
    /// Scope of the token or cookie; `None` without either.
    pub scope: Option<PermissionScope>,
    /// Name of the token; `None` without one.
    pub name: Option<String>,
    /// True if the credential allows changes: a token, or a cookie with its key from our own page.
    pub may_change: bool,
    /// Hash of the credential; `None` if it is invalid.
    pub(crate) credential: Option<String>,
    /// True if the login has ended.
    pub(crate) login_ended: bool,
}

/// The stores to check credentials against.
pub(crate) struct CredentialStores<'a> {
    pub(crate) tokens: &'a TokenStore,
    pub(crate) logins: &'a LoginStore,
    /// Name of the login cookie.
    pub(crate) cookie: &'a str,
    pub(crate) now: Timestamp,
}

impl CallerIdentity {
    const ANONYMOUS: Self = Self {
        scope: None,
        name: None,
        may_change: false,
        credential: None,
        login_ended: false,
    };
    const EXPIRED_LOGIN: Self = Self {
        login_ended: true,
        ..Self::ANONYMOUS
    };

    /// Returns true if the scope is granted, either directly or from a page that has the key.
    pub fn has_scope(&self, scope: PermissionScope) -> bool {
        self.scope.is_some_and(|own| own >= scope)
    }

    /// Returns the name recorded as the author of a change.
    pub fn audit_name(&self) -> Option<String> {
        self.name.clone()
    }

    pub(crate) fn authenticate(
        papers: &CredentialStores<'_>,
        parts: &Parts,
        host: &str,
    ) -> Result<Self, ProblemDetails> {
        let now = papers.now;
        if let Some(given) = parts.headers.get(header::AUTHORIZATION) {
            return Self::from_token(papers.tokens, given);
        }
        let Some(cookie) = cookie_value(&parts.headers, papers.cookie) else {
            return Ok(Self::ANONYMOUS);
        };
        // An expired login does not count as a rejected credential.
        let Some(allowed) = papers.logins.check_cookie(&cookie, now) else {
            return Ok(Self::EXPIRED_LOGIN);
        };
        let name = match &allowed.token {
            None => "dashboard".to_owned(),
            // A revoked token is rejected, however it was sent.
            Some(id) => match papers.tokens.find_valid(id).ok().flatten() {
                Some(token) => token.name,
                None => return Ok(Self::EXPIRED_LOGIN),
            },
        };
        let key = parts
            .headers
            .get(LOGIN_KEY_HEADER)
            .and_then(|key| key.to_str().ok());
        let has_key = key.is_some_and(|key| papers.logins.is_valid_key(&cookie, key, now));
        Ok(Self {
            scope: Some(allowed.scope),
            name: Some(name),
            may_change: has_key && origin::is_from_own_page(parts, host),
            credential: Some(SecretHash::of_secret(&cookie).to_hex()),
            login_ended: false,
        })
    }

    fn from_token(tokens: &TokenStore, given: &HeaderValue) -> Result<Self, ProblemDetails> {
        let secret = given.to_str().ok().and_then(bearer_token);
        let Some(secret) = secret else {
            return Err(invalid_credential(
                "invalid Authorization header; expected `Bearer` and a token",
            ));
        };
        let found = tokens.check(secret).map_err(|error| {
            // Do not disclose the path of the file.
            let _ = error;
            ProblemDetails::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "cannot read the tokens; for details, run `unstuck token list` on the server",
            )
        })?;
        let token = found.ok_or_else(|| {
            invalid_credential(
                "invalid token; create one with `unstuck token create` on the server",
            )
        })?;
        Ok(Self {
            scope: Some(token.scope),
            name: Some(token.name),
            may_change: true,
            credential: Some(token.hash),
            login_ended: false,
        })
    }
}

fn bearer_token(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Creates the problem for an invalid credential.
pub(crate) fn invalid_credential(detail: &str) -> ProblemDetails {
    ProblemDetails::new(StatusCode::UNAUTHORIZED, detail).with_header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer realm=\"unstuck\""),
    )
}

/// Creates the problem for an insufficient scope.
pub(crate) fn insufficient_scope(scope: PermissionScope, own: PermissionScope) -> ProblemDetails {
    ProblemDetails::new(
        StatusCode::FORBIDDEN,
        format!(
            "requires scope {scope}, but the token has {own}; create one with `unstuck token create --scope {scope}`"
        ),
    )
}

/// Returns the cookie with this name.
pub(crate) fn cookie_value(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter();
    let mut pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let found = pairs.find(|(own, _)| *own == name);
    found.map(|(_, value)| value.to_owned())
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientPeer {
    /// Address; `None` if the listener does not provide it.
    pub(crate) address: Option<IpAddr>,
    pub(crate) owner: PeerOwner,
}

impl ClientPeer {
    pub(crate) fn from_parts(parts: &Parts) -> Self {
        let info = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let owner = parts.extensions.get::<PeerOwner>();
        Self {
            address: info.map(|ConnectInfo(peer)| peer.ip().to_canonical()),
            owner: owner.copied().unwrap_or(PeerOwner::Unknown),
        }
    }

    /// Returns true if the client is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.address.is_some_and(|address| address.is_loopback())
    }
}

impl<S: Sync> FromRequestParts<S> for CallerIdentity {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let who = parts.extensions.get::<Self>();
        Ok(who.cloned().unwrap_or(Self::ANONYMOUS))
    }
}

/// Extracts an identity that may change policies and settings.
#[derive(Debug, Clone)]
pub(crate) struct RequireAdmin(pub(crate) CallerIdentity);

impl<S: Sync> FromRequestParts<S> for RequireAdmin {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ProblemDetails> {
        let who = parts.extensions.get::<CallerIdentity>();
        let who = who.cloned().unwrap_or(CallerIdentity::ANONYMOUS);
        match who.scope {
            Some(PermissionScope::Admin) => Ok(Self(who)),
            Some(own) => Err(insufficient_scope(PermissionScope::Admin, own)),
            None => Err(invalid_credential("requires a token with the admin scope")),
        }
    }
}

//! Who somebody is to this server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::scope::Scope;

/// A one-time code, as the dashboard's link carries it, or a token.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoginRequest {
    /// The code or the token.
    #[schema(max_length = 200)]
    pub code: String,
}

/// Somebody has logged in; the cookie goes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginResponse {
    /// What they may do.
    pub scope: Scope,
    /// What has to stand in the header `x-unstuck-key` of everything that changes something. Pages keep it where only
    /// they can read it: cookies are shared with every other server of the same machine.
    pub key: String,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurrentIdentity {
    /// What they may do; null where they brought neither token nor cookie.
    pub scope: Option<Scope>,
    /// What their token is called.
    pub name: Option<String>,
}

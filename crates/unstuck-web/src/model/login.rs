//! Login requests and the identity of a caller.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access_scope::PermissionScope;

/// A one-time code from the dashboard's link, or a token.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoginRequest {
    /// The code or the token.
    #[schema(max_length = 200)]
    pub code: String,
}

/// A successful login; the response also sets the cookie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoginResponse {
    /// Scope of the login.
    pub scope: PermissionScope,
    /// CSRF key to send in the `x-unstuck-key` header of every request that changes something. Pages keep it where only
    /// they can read it, because cookies are shared with every other server on the same machine.
    pub key: String,
}

/// The identity of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallerIdentityResponse {
    /// Granted scope; null without a token or cookie.
    pub scope: Option<PermissionScope>,
    /// Name of the token.
    pub name: Option<String>,
}

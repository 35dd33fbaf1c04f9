//! Authentication, rate limits and response headers.
//!
//! - Requests for an unknown host name (DNS rebinding) and from pages of another origin are rejected.
//! - Programs of the same user on this machine have read access. Everyone else needs a token or a login: other users of
//!   this machine, other machines, and clients that cannot be told apart from them.
//! - Every change needs a token, or a login with the key that only our own pages have, wherever it comes from: agents
//!   run on this machine, too.

mod identity;
mod logins;
pub(crate) mod origin;
mod random_token;
mod rejected_token_reports;
mod request_rate_limit;
pub(crate) mod security_headers;
mod tokens;

pub use identity::CallerIdentity;
pub use logins::{CODE_LIFETIME, LOGIN_LIFETIME};
pub use random_token::RandomnessError;
pub use rejected_token_reports::RejectedTokenReport;
pub use request_rate_limit::{WebClientRateLimit, WebRequestRateLimits};
pub use tokens::{TokenStore, TokenStoreError, WebTokenRecord};

pub(crate) use identity::{
    ClientPeer, CredentialStores, RequireAdmin, cookie_value, insufficient_scope,
    invalid_credential,
};
pub(crate) use logins::{LoginStore, NewLogin};
pub(crate) use rejected_token_reports::RejectedTokenCounter;
pub(crate) use request_rate_limit::{RateLimitKey, RateLimiter};

pub use crate::model::PermissionScope;

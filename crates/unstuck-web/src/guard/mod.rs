//! Who may come in, how often, and what leaves with every answer.
//!
//! - A host that is a name of somebody else's is refused (DNS rebinding), and so is every page of another origin.
//! - From this machine programs of the same user may look; anybody else only with a token or a login: other users of this
//!   machine, other machines, and whoever cannot be told apart from them.
//! - Whatever changes something needs a token or a login with the key that only our own pages have, wherever it comes
//!   from: agents live on this machine, too.

pub(crate) mod address;
pub(crate) mod headers;
mod logins;
mod rates;
mod rejected;
mod secret;
mod tokens;
mod who;

pub use logins::{CODE_LASTS, LOGIN_LASTS};
pub use rates::{Rate, RateLimits};
pub use rejected::RejectedTokens;
pub use secret::NoChance;
pub use tokens::{Token, TokenError, Tokens};
pub use who::Who;

pub(crate) use logins::{Logins, Opened};
pub(crate) use rates::{Asker, Rates};
pub(crate) use rejected::Rejected;
pub(crate) use who::{Admin, Papers, Peer, cookie, needs, wrong};

pub use crate::model::Scope;

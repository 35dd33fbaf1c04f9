//! The gateway in front of a real server with scripted failures, and clients over real sockets.

#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![cfg(test)]

mod books;
mod connections;
mod ending;
mod escalation;
mod failover;
mod ground;
mod holding;
mod hostile;
mod leave;
mod output;
mod recovery;
mod scenarios;
mod standing_in;
pub(crate) mod streams;
mod transparent;
mod upstreams;
mod waiting;

use ground::{Ground, Reply};

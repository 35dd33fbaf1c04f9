//! The gateway in front of a real server that fails as it is told, and clients that speak to it over real sockets.

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

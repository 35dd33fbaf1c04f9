//! What a user of the fault server relies on, tried over real connections.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod exchange;
mod faults;
mod program;
mod server;
mod streams;

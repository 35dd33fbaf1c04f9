//! Tests of the fault server over real connections.

#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent;
mod connections;
mod documents;
mod exchange;
mod faults;
mod load;
mod mixes;
mod passthrough;
mod program;
mod server;
mod stream_faults;
mod streams;
mod waits;

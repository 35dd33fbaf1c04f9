//! What stands between a repair and the machine, tried on the real one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod corpus;
mod guard;
mod preview;
mod sandbox;

//! Tests of repair checks and confinement on a real machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod corpus;
mod guard;
mod preview;
mod sandbox;

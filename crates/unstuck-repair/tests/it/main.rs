//! Repairs on a real machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod sandbox;

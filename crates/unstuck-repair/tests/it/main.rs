//! Tests of repair checks and confinement on a real machine.

#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_wrapper;
mod corpus;
mod guard;
mod preview;
mod sandbox;

//! Store tests: the contract of every backend, and the failure modes of files.

#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod contract;
mod samples;
mod sqlite;

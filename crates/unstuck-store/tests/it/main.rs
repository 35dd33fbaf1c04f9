//! Store tests: the contract of every backend, and the failure modes of files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod contract;
mod samples;
mod sqlite;

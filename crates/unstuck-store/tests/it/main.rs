//! What a user of the store relies on: the contract that every backend keeps, and what only a file can suffer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod contract;
mod samples;
mod sqlite;

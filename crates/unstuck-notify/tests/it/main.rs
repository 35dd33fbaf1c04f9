//! Notification tests, from events to a real receiving server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod announcing;
mod delivering;
mod formats;
mod receiver;
mod samples;

//! Notification tests, from events to a real receiving server.

#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod announcing;
mod delivering;
mod formats;
mod receiver;
mod samples;

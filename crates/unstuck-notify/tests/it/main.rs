//! Messages, from the events that they tell of to a real server that gets them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod announcing;
mod delivering;
mod formats;
mod receiver;
mod samples;

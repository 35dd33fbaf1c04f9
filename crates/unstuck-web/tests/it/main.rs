//! Tests of the API and the dashboard over real sockets and a real store.

#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![cfg(test)]

mod chromium;
mod doer;
mod ground;
mod relay;
mod samples;

mod answers;
mod browser;
mod deeds;
mod document;
mod events;
mod failures;
mod listing;
mod logins;
mod policies;
mod problems;
mod strangers;

//! Tests of the API and the dashboard over real sockets and a real store.

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

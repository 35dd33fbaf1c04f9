//! The API and the dashboard as clients and people meet them: over real sockets, on a real store.

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

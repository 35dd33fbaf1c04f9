//! The API as clients meet it: over real sockets, on a real store.

#![cfg(test)]

mod doer;
mod ground;
mod samples;

mod answers;
mod deeds;
mod document;
mod events;
mod failures;
mod listing;
mod logins;
mod policies;
mod problems;
mod strangers;

//! The API as clients meet it: over real sockets, on a real store.

mod chromium;
mod doer;
mod ground;
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

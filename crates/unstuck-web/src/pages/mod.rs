//! The dashboard: pages for users, based on the same queries as the API, usable without scripts.
//!
//! Each page is a data struct and a function that renders it. Changing parts of a page can be requested alone
//! (`?part=`): the script replaces them when an event arrives.

mod assets;
mod chart;
mod failures;
mod inbox;
mod layout;
mod login;
mod overview;
mod page_data;
mod parts;
mod policies;
mod routes;
mod run;
mod runs;
mod session;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use parts::sanitized_text::percent_encoded;
pub(crate) use routes::{error_response, not_found, router};

//! The dashboard: pages for people, made from the same readings as the API, and complete without script.
//!
//! Each page is a value with all that it shows, and a function from that value to markup. Parts of a page that change
//! can be asked for alone (`?part=`): the script puts them in place when an event says that something has happened.

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

pub(crate) use parts::text::percent_encoded;
pub(crate) use routes::{error_response, not_found, router};

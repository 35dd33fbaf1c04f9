//! The dashboard: pages rendered by the server, which are complete without script.

pub(crate) mod assets;
pub(crate) mod chart;
pub(crate) mod failures;
pub(crate) mod inbox;
pub(crate) mod layout;
pub(crate) mod login;
pub(crate) mod now;
pub(crate) mod parts;
pub(crate) mod policies;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod session;
pub(crate) mod settings;

#[cfg(test)]
mod tests;

//! The commands, one file each.

mod case_input;
pub(crate) mod classify;
pub(crate) mod kinds;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod store;

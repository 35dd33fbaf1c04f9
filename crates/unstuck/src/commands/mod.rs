//! The commands, one file each.

mod case_input;
pub(crate) mod classify;

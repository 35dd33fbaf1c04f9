//! Runs agents and commands, and acts on what fails.
//!
//! [`process`] runs one child and leaves nothing of it behind; [`drive`] runs a command until it did what it should,
//! a person is needed, or it is stopped; [`folder`] shows in the project how that stands.

pub mod clock;
pub mod drive;
pub mod expect;
pub mod folder;
mod host;
pub mod process;
pub mod reaper;
mod zone;

//! Runs agents and commands, and acts on what fails.

pub mod process;
pub mod reaper;

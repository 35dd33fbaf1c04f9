//! Runs agents and commands, and acts on what fails.

pub mod expect;

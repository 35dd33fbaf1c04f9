//! The commands, one file each.

pub(crate) mod agents;
mod always;
pub(crate) mod answer;
mod case_input;
pub(crate) mod classify;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod diff;
mod ended;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod guard;
pub(crate) mod inbox;
pub(crate) mod kinds;
mod line_input;
pub(crate) mod logs;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod preview;
pub(crate) mod propose;
pub(crate) mod repair;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod show;
pub(crate) mod store;
pub(crate) mod trust;

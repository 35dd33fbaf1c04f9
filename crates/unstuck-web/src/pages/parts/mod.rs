//! Parts of pages.

pub(crate) mod actions;
pub(crate) mod attempts;
pub(crate) mod badge;
pub(crate) mod controls;
pub(crate) mod diff;
pub(crate) mod empty_state;
pub(crate) mod escalation;
pub(crate) mod event_list;
pub(crate) mod evidence;
pub(crate) mod icon;
pub(crate) mod lane_table;
pub(crate) mod money;
pub(crate) mod run_tables;
pub(crate) mod text;
pub(crate) mod time;

//! Parts of pages.

pub(crate) mod actions;
pub(crate) mod attempt_timeline;
pub(crate) mod badge;
pub(crate) mod controls;
pub(crate) mod diff;
pub(crate) mod empty_state;
pub(crate) mod escalation;
pub(crate) mod event_list;
pub(crate) mod evidence;
pub(crate) mod icon;
pub(crate) mod money;
pub(crate) mod run_tables;
pub(crate) mod sanitized_text;
pub(crate) mod time;
pub(crate) mod upstream_table;

//! What pages are made of.

pub(crate) mod attempts;
pub(crate) mod controls;
pub(crate) mod deeds;
pub(crate) mod diff;
pub(crate) mod empty;
pub(crate) mod events;
pub(crate) mod evidence;
pub(crate) mod icon;
pub(crate) mod lanes;
pub(crate) mod money;
pub(crate) mod pill;
pub(crate) mod question;
pub(crate) mod session;
pub(crate) mod text;
pub(crate) mod time;

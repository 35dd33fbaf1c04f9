//! What pages are made of.

pub(crate) mod diff;
pub(crate) mod empty;
pub(crate) mod icon;
pub(crate) mod money;
pub(crate) mod pill;
pub(crate) mod text;
pub(crate) mod time;

//! Whom the gateway asks, and how what it sends gets there.

mod body;
mod connect;
mod request;

pub(crate) use body::Outgoing;
pub(crate) use connect::{Sender, sender};
pub(crate) use request::{Sending, TOKEN, own_headers};

//! Whom the gateway asks, and how what it sends gets there.

mod believed;
mod body;
mod connect;
mod proxy;
mod request;

pub(crate) use body::Outgoing;
pub(crate) use connect::Sender;
pub(crate) use request::{Sending, TOKEN, own_headers};

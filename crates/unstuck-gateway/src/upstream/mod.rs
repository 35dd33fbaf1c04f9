//! Whom the gateway asks, and how what it sends gets there.

mod arriving;
mod believed;
mod body;
mod connect;
mod line;
mod pool;
mod proxy;
mod request;
mod sender;

pub(crate) use arriving::Arriving;
pub(crate) use body::Outgoing;
pub(crate) use request::{Sending, TOKEN, own_headers};
pub(crate) use sender::Sender;

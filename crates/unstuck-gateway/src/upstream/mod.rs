//! The connections and requests to upstreams.

mod client;
mod connector;
mod http1_conn;
mod outbound_proxy;
mod pool;
mod request;
mod request_body;
mod response_body;
mod trust_roots;

pub(crate) use client::UpstreamClient;
pub(crate) use request::{TOKEN_HEADER, UpstreamRequest, remove_hop_by_hop};
pub(crate) use request_body::RequestBody;
pub(crate) use response_body::UpstreamResponseBody;

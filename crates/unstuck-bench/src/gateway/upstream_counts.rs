//! Request counts of an upstream.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of polls: half a minute.
const MAX_POLLS: u32 = 600;

/// The request counts of an upstream.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpstreamCounts {
    pub(super) requests: u64,
    /// Requests in flight.
    pub(super) in_flight: u64,
    /// Maximum number of requests in flight at once.
    pub(super) most_in_flight: u64,
}

/// Fetches the counts of an upstream.
pub(super) async fn fetch_counts(upstream: SocketAddr) -> Result<UpstreamCounts> {
    let mut stream = TcpStream::connect(upstream).await?;
    stream
        .write_all(b"GET /__faults/stats HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let told: Value = serde_json::from_str(body)?;
    let count = |name: &str| told[name].as_u64().unwrap_or_default();
    Ok(UpstreamCounts {
        requests: count("requests"),
        in_flight: count("in_flight"),
        most_in_flight: count("most_in_flight"),
    })
}

/// Waits until this many requests are in flight.
pub(super) async fn wait_for_in_flight(upstream: SocketAddr, wanted: u64) -> Result<()> {
    for _ in 0..MAX_POLLS {
        if fetch_counts(upstream).await?.in_flight >= wanted {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let most = fetch_counts(upstream).await?.most_in_flight;
    bail!("only {most} of {wanted} requests were in flight at once: this machine is too busy");
}

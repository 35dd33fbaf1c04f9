//! What an upstream has counted.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How often is looked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How often is looked at most: for half a minute.
const MAX_POLLS: u32 = 600;

/// What an upstream has counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpstreamCounts {
    pub(super) requests: u64,
    /// Requests that are being answered.
    pub(super) in_flight: u64,
    /// The most that were at a time.
    pub(super) most_in_flight: u64,
}

/// Asks an upstream for its counts.
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

/// Waits until so many requests are being answered.
pub(super) async fn wait_for_in_flight(upstream: SocketAddr, wanted: u64) -> Result<()> {
    for _ in 0..MAX_POLLS {
        if fetch_counts(upstream).await?.in_flight >= wanted {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let most = fetch_counts(upstream).await?.most_in_flight;
    bail!("only {most} of {wanted} requests were under way at a time: this machine is too busy");
}

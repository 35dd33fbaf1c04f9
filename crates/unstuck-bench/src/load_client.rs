//! Load clients: plain sockets that send the next request after each response, or at a given rate.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::measure::now;

/// The requested form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    /// One document.
    Whole,
    /// A stream.
    Stream,
}

/// Returns the bytes of a Chat Completions request.
pub(crate) fn request(path: &str, wanted: ResponseMode) -> Vec<u8> {
    let stream = wanted == ResponseMode::Stream;
    let body = format!(
        r#"{{"model":"gpt-6-luna","stream":{stream},"messages":[{{"role":"user","content":"Fix the tests"}}]}}"#
    );
    format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A client with a persistent connection.
pub(crate) struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

/// The result of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientResult {
    pub(crate) status: u16,
    /// Number of attempts by the gateway.
    pub(crate) attempts: u32,
    /// Seconds until the last byte.
    pub(crate) total_seconds: f64,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
            buffer: Vec::with_capacity(64 << 10),
        }
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<ClientResult> {
        let begin = now();
        let got = self.exchange(request, begin).await;
        if got.is_err() {
            self.stream = None;
        }
        got
    }

    async fn exchange(
        &mut self,
        request: &[u8],
        begin: std::time::Instant,
    ) -> Result<ClientResult> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let stream = TcpStream::connect(self.address).await?;
                stream.set_nodelay(true)?;
                none.insert(stream)
            }
        };
        stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("connection closed");
            }
            if let Some(head) = complete_head(&self.buffer)? {
                return Ok(ClientResult {
                    status: head.get(9..12).context("no status line")?.parse()?,
                    attempts: header(head, "x-unstuck-attempts").unwrap_or(1),
                    total_seconds: begin.elapsed().as_secs_f64(),
                });
            }
        }
    }
}

/// Returns the head of a response once it is complete.
fn complete_head(bytes: &[u8]) -> Result<Option<&str>> {
    let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end])?;
    let body = &bytes[end + 4..];
    let is_whole = match header::<usize>(head, "content-length") {
        Some(length) => body.len() >= length,
        None => body.ends_with(b"0\r\n\r\n"),
    };
    Ok(is_whole.then_some(head))
}

fn header<T: std::str::FromStr>(head: &str, name: &str) -> Option<T> {
    head.lines().find_map(|line| {
        let (of, value) = line.split_once(':')?;
        let is_it = of.eq_ignore_ascii_case(name);
        is_it.then(|| value.trim().parse().ok())?
    })
}

/// Returns the responses per second over this many busy connections.
pub(crate) async fn max_rate(
    address: SocketAddr,
    connections: usize,
    request: &[u8],
    time: Duration,
) -> Result<f64> {
    let begin = now();
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        let request = request.to_vec();
        clients.spawn(async move {
            let mut client = Client::new(address);
            let mut count = 0_u64;
            while begin.elapsed() < time {
                let got = client.ask(&request).await?;
                anyhow::ensure!(got.status == 200, "status {}", got.status);
                count += 1;
            }
            Ok(count)
        });
    }
    let mut count = 0;
    while let Some(done) = clients.join_next().await {
        count += done??;
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

/// Returns the latencies of requests at a rate, in seconds.
pub(crate) async fn latencies_at_rate(
    address: SocketAddr,
    request: &[u8],
    per_second: u32,
    count: u32,
) -> Result<Vec<f64>> {
    let mut client = Client::new(address);
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / per_second);
    let mut times = Vec::new();
    for _ in 0..count {
        ticks.tick().await;
        times.push(client.ask(request).await?.total_seconds);
    }
    Ok(times)
}

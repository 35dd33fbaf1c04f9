//! Connections to an upstream are reused, and a closed one is replaced invisibly.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use unstuck_gateway::Upstream;
use unstuck_gateway::protocol::Protocol::OpenAi;

use crate::Ground;

const ANSWER: &str =
    r#"{"model":"gpt-x","choices":[{"message":{"content":"Done"},"finish_reason":"stop"}]}"#;

/// Starts an upstream that closes each connection after some responses; returns its address and the number of
/// connections.
async fn upstream(answers: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(answer(stream, answers));
        }
    });
    (address, connections)
}

async fn answer(mut stream: TcpStream, answers: usize) {
    for _ in 0..answers {
        let mut read = Vec::new();
        while !read.ends_with(b"}") {
            if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ANSWER}",
            ANSWER.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn in_front_of(address: SocketAddr) -> Ground {
    Ground::with(OpenAi, &[], |settings| {
        let base = format!("http://{address}/v1");
        settings.upstreams = vec![Upstream::new("plain", OpenAi, &base).unwrap()];
    })
    .await
}

#[tokio::test]
async fn connection_is_reused_for_sequential_calls() {
    let (address, connections) = upstream(usize::MAX).await;
    let ground = in_front_of(address).await;
    for _ in 0..5 {
        assert_eq!(ground.chat(false).await.status.as_u16(), 200);
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn concurrent_calls_use_separate_connections() {
    let (address, connections) = upstream(usize::MAX).await;
    let ground = in_front_of(address).await;
    for _ in 0..3 {
        let replies = futures_util::future::join_all((0..8).map(|_| ground.chat(false))).await;
        assert!(replies.iter().all(|reply| reply.status.as_u16() == 200));
    }
    assert!(connections.load(Ordering::Relaxed) <= 8);
}

#[tokio::test]
async fn closed_idle_connection_is_replaced_invisibly() {
    let (address, connections) = upstream(1).await;
    let ground = in_front_of(address).await;
    for call in 1..=5 {
        let reply = ground.chat(false).await;
        assert_eq!(reply.status.as_u16(), 200, "{call}: {reply:?}");
        assert_eq!(reply.header("x-unstuck-attempts"), "1", "{call}");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 5);
}

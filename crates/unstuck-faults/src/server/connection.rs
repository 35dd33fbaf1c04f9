//! One connection from its first bytes to its end: HTTP/1.1, HTTP/2 with prior knowledge, or TLS around either.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::raw_connection::{HeadRecordingStream, RawConnection, ResettableStream};
use super::request_handler::respond;
use super::state::ServerState;
use super::tls::Handshake;
use crate::script::TlsHandshakeFault;

/// First bytes of TLS and of HTTP/2; no HTTP/1 method begins like that.
const TLS: u8 = 0x16;
const HTTP2: &[u8] = b"PRI";

/// Delay between looks at the first bytes.
const BEFORE_NEXT_LOOK: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WireProtocol {
    Http1,
    Http2,
    Tls,
}

/// Serves a connection until it ends.
pub(super) async fn serve(stream: TcpStream, state: Arc<ServerState>) {
    // Without it small frames may be delayed by 40 ms; a failure is harmless.
    let _ = stream.set_nodelay(true);
    let Ok(speech) = detect_protocol(&stream).await else {
        return;
    };
    match speech {
        WireProtocol::Http1 => serve_http1(stream, state).await,
        WireProtocol::Http2 => serve_http2(stream, state).await,
        WireProtocol::Tls => serve_tls(stream, state).await,
    }
}

/// Detects the protocol by peeking at the first bytes.
async fn detect_protocol(stream: &TcpStream) -> std::io::Result<WireProtocol> {
    loop {
        let mut first = [0; 3];
        let heard = stream.peek(&mut first).await?;
        let first = &first[..heard];
        if first.first() == Some(&TLS) {
            return Ok(WireProtocol::Tls);
        }
        if first == HTTP2 {
            return Ok(WireProtocol::Http2);
        }
        if heard == 0 || !HTTP2.starts_with(first) {
            return Ok(WireProtocol::Http1);
        }
        tokio::time::sleep(BEFORE_NEXT_LOOK).await;
    }
}

async fn serve_tls(mut stream: TcpStream, state: Arc<ServerState>) {
    let Some(tls) = &state.tls else {
        return;
    };
    match tls.next_handshake() {
        Handshake::Fails(TlsHandshakeFault::Garbage) => {
            let _ = stream.write_all(b"\x00\x01this is not TLS\r\n").await;
            let _ = stream.shutdown().await;
        }
        Handshake::Fails(TlsHandshakeFault::Close) => {}
        Handshake::Fails(TlsHandshakeFault::Reset) => stream.reset(),
        Handshake::Works(acceptor) => {
            // A client that rejects the certificate disconnects here.
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            if is_http2 {
                serve_http2(stream, state).await
            } else {
                serve_http1(stream, state).await
            }
        }
    }
}

async fn serve_http1<W: ResettableStream>(wire: W, state: Arc<ServerState>) {
    let line = Arc::new(RawConnection::new(state.script.may_echo()));
    let shared = Arc::clone(&line);
    let service = service_fn(move |request| {
        Box::pin(respond(Arc::clone(&state), Arc::clone(&shared), request))
    });
    let io = TokioIo::new(HeadRecordingStream {
        wire,
        connection: Arc::clone(&line),
    });
    let mut connection = http1::Builder::new().serve_connection(io, service);
    // A client that disconnects in the middle is no error of the server.
    let _ = poll_fn(|context| connection.poll_without_shutdown(context)).await;
    let parts = connection.into_parts();
    line.finish(parts.io.into_inner().wire).await;
}

async fn serve_http2<W: ResettableStream>(wire: W, state: Arc<ServerState>) {
    let line = Arc::new(RawConnection::new(false));
    let service =
        service_fn(move |request| respond(Arc::clone(&state), Arc::clone(&line), request));
    let _ = http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(wire), service)
        .await;
}

//! Below HTTP: resets, closed connections, wrong lengths, TLS, HTTP/2.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use unstuck_faults::{
    CertificateFault, ConnectionResetPoint, FaultScript, FaultScriptReply, FaultScriptStepRepeat,
    FaultServer, FaultStreamCutMode, TlsFaultOptions, TlsHandshakeFault,
};

use crate::exchange::{ANTHROPIC, CHAT, DIALECTS, PROMPT};

fn serving(reply: FaultScriptReply) -> FaultServer {
    FaultServer::start(FaultScript::default().with_step(reply)).unwrap()
}

fn resetting(by: ConnectionResetPoint) -> FaultServer {
    serving(FaultScriptReply::Reset { by })
}

#[tokio::test]
async fn a_reset_can_happen_before_or_after_the_headers_or_in_the_body() {
    for dialect in DIALECTS {
        for streams in [false, true] {
            let raw = dialect
                .raw(&resetting(ConnectionResetPoint::BeforeHeaders), streams)
                .await;
            assert!(raw.is_reset() && raw.bytes.is_empty(), "{raw:?}");

            let raw = dialect
                .raw(&resetting(ConnectionResetPoint::AfterHeaders), streams)
                .await;
            assert!(
                raw.is_reset() && raw.text().starts_with("HTTP/1.1 200"),
                "{raw:?}"
            );
            assert!(raw.text().ends_with("\r\n\r\n"), "{raw:?}");

            let raw = dialect
                .raw(&resetting(ConnectionResetPoint::MidBody), streams)
                .await;
            let text = raw.text();
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
            assert!(
                raw.is_reset() && body.is_some_and(|body| body.len() > 50),
                "{raw:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_closed_connection_returns_no_bytes() {
    for dialect in DIALECTS {
        let raw = dialect.raw(&serving(FaultScriptReply::Close), true).await;
        assert!(raw.end.is_ok() && raw.bytes.is_empty(), "{raw:?}");
    }
}

#[tokio::test]
async fn a_stream_is_cut_by_a_reset_or_by_a_plain_end() {
    for (by, is_reset, is_ended) in [
        (FaultStreamCutMode::Reset, true, false),
        (FaultStreamCutMode::Close, false, false),
        (FaultStreamCutMode::End, false, true),
    ] {
        let raw = ANTHROPIC
            .raw(&serving(FaultScriptReply::CutAt { after: 4, by }), true)
            .await;
        assert_eq!(raw.is_reset(), is_reset, "{by:?} {raw:?}");
        assert_eq!(
            raw.text().ends_with("0\r\n\r\n"),
            is_ended,
            "{by:?} {raw:?}"
        );
    }
}

#[tokio::test]
async fn content_length_can_be_too_large_or_too_small() {
    for (by, is_short) in [(100, true), (-10, false)] {
        let raw = CHAT
            .raw(&serving(FaultScriptReply::WrongLength { by }), false)
            .await;
        let text = raw.text();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let stated = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let stated: usize = stated.unwrap().parse().unwrap();
        assert_eq!(body.len() < stated, is_short);
        assert_eq!(body.len().abs_diff(stated), by.unsigned_abs() as usize);
    }
}

#[tokio::test]
async fn responses_can_be_invalid_http_or_invalid_chunks() {
    let raw = CHAT.raw(&serving(FaultScriptReply::NotHttp), false).await;
    assert!(!raw.text().starts_with("HTTP"), "{raw:?}");
    let raw = CHAT.raw(&serving(FaultScriptReply::BadFraming), true).await;
    assert!(raw.text().contains("chunked\r\n\r\nzz\r\n"), "{raw:?}");
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_supported_and_resets_only_the_stream() {
    let script = FaultScript::default()
        .with_step(FaultScriptReply::Close)
        .with_step(FaultScriptReply::answer("Done"));
    let server = FaultServer::start(script).unwrap();
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    let _connection = tokio::spawn(connection);
    let ask = || {
        let (path, body) = CHAT.question(true);
        Request::post(format!("http://faults{path}"))
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap()
    };
    sender.ready().await.unwrap();
    assert!(sender.send_request(ask()).await.is_err());
    let answer = sender.send_request(ask()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.ends_with(b"data: [DONE]\n\n"));
    assert_eq!(server.stats().connections, 1);
    assert_eq!(server.requests()[1].prompt, PROMPT);
}

/// Connects by TLS, trusting only the server's own certificate.
async fn secure(server: &FaultServer) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let pem = server.certificate().unwrap();
    roots
        .add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

fn secured(tls: TlsFaultOptions) -> FaultServer {
    FaultServer::start(FaultScript::answering("Done").with_tls(tls)).unwrap()
}

#[tokio::test]
async fn the_same_port_speaks_tls_to_clients_that_trust_its_certificate() {
    let server = secured(TlsFaultOptions::default());
    assert!(server.tls_url().unwrap().starts_with("https://127.0.0.1:"));
    let stream = secure(&server).await.unwrap();
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    let _connection = tokio::spawn(connection);
    let (path, body) = CHAT.question(false);
    let request = Request::post(path)
        .header("host", "localhost")
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    assert_eq!(CHAT.ask(&server).await.status, 200);
}

#[tokio::test]
async fn a_certificate_can_be_for_another_name_or_expired() {
    for (certificate, complaint) in [
        (CertificateFault::WrongHost, "not valid for name"),
        (CertificateFault::Expired, "expired"),
    ] {
        let server = secured(TlsFaultOptions {
            certificate,
            ..TlsFaultOptions::default()
        });
        let error = secure(&server).await.unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
}

#[tokio::test]
async fn the_first_handshakes_can_fail() {
    for how in [
        TlsHandshakeFault::Garbage,
        TlsHandshakeFault::Close,
        TlsHandshakeFault::Reset,
    ] {
        let server = secured(TlsFaultOptions {
            failing_handshakes: FaultScriptStepRepeat::Count(2),
            handshake_fault: how,
            ..TlsFaultOptions::default()
        });
        for works in [false, false, true] {
            assert_eq!(secure(&server).await.is_ok(), works, "{how:?}");
        }
    }
}

#[tokio::test]
async fn tls_without_a_tls_script_is_closed() {
    let server = FaultServer::start(FaultScript::answering("Done")).unwrap();
    assert_eq!((server.tls_url(), server.certificate()), (None, None));
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, &[0x16, 3, 1, 0, 5])
        .await
        .unwrap();
    let ended = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 8]).await;
    assert!(matches!(ended, Ok(0) | Err(_)));
}

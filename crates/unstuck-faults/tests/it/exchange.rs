//! A plain HTTP client for the tests, and the four protocols it speaks.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use unstuck_core::{ClockReading, Diagnosis, Failure, Timestamp, classify};
use unstuck_faults::FaultServer;

/// The prompt of every call.
pub(crate) const PROMPT: &str = "Fix the tests";

/// A protocol of the test client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    pub(crate) provider: &'static str,
    whole: &'static str,
    stream: &'static str,
}

/// All supported protocols.
pub(crate) const DIALECTS: [Dialect; 4] = [ANTHROPIC, RESPONSES, CHAT, GEMINI];

pub(crate) const ANTHROPIC: Dialect = Dialect {
    provider: "anthropic",
    whole: "/v1/messages",
    stream: "/v1/messages?beta=true",
};
pub(crate) const RESPONSES: Dialect = Dialect {
    provider: "openai",
    whole: "/v1/responses",
    stream: "/v1/responses",
};
pub(crate) const CHAT: Dialect = Dialect {
    provider: "openai",
    whole: "/v1/chat/completions",
    stream: "/v1/chat/completions",
};
pub(crate) const GEMINI: Dialect = Dialect {
    provider: "gemini",
    whole: "/v1beta/models/some-model:generateContent",
    stream: "/v1beta/models/some-model:streamGenerateContent?alt=sse",
};

impl Dialect {
    fn body(self, streams: bool) -> Value {
        let said = json!([{"role": "user", "content": PROMPT}]);
        match self.whole {
            "/v1/responses" => json!({"model": "some-model", "stream": streams, "input": said}),
            path if path.contains(':') => json!({"contents": [{"parts": [{"text": PROMPT}]}]}),
            _ => json!({
                "model": "some-model", "stream": streams, "messages": said,
                "stream_options": {"include_usage": true},
            }),
        }
    }

    /// Returns the path and body of a model call.
    pub(crate) fn question(self, streams: bool) -> (&'static str, Value) {
        let path = if streams { self.stream } else { self.whole };
        (path, self.body(streams))
    }

    /// Sends a model call without an HTTP library, and returns the response and the way the connection ended.
    pub(crate) async fn raw(self, server: &FaultServer, streams: bool) -> Raw {
        let (path, body) = self.question(streams);
        raw(server.address(), path, &body).await
    }

    /// Requests the answer in one piece.
    pub(crate) async fn ask(self, server: &FaultServer) -> Reached {
        post(server, self.whole, &self.body(false)).await
    }

    /// Requests the answer as a stream.
    pub(crate) async fn stream(self, server: &FaultServer) -> Reached {
        post(server, self.stream, &self.body(true)).await
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) end: End,
}

/// A raw response until the end of the connection.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) bytes: Vec<u8>,
    /// `Ok` for a normal end, else the system's error.
    pub(crate) end: std::io::Result<()>,
}

impl Raw {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(crate) fn is_reset(&self) -> bool {
        let error = self.end.as_ref().err();
        error.map(std::io::Error::kind) == Some(std::io::ErrorKind::ConnectionReset)
    }
}

/// Sends a model call over a bare connection and reads until it ends.
pub(crate) async fn raw(address: SocketAddr, path: &str, body: &Value) -> Raw {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: faults\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    let end = loop {
        match stream.read(&mut buffer).await {
            Ok(0) => break Ok(()),
            Ok(count) => bytes.extend(&buffer[..count]),
            Err(error) => break Err(error),
        }
    };
    Raw { bytes, end }
}

/// The end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    Broken,
    /// The connection had not ended after a while.
    Silent,
}

impl Reached {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the JSON of every `data:` line except the `[DONE]` of chats.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// Returns the product's diagnosis of it.
    pub(crate) fn diagnosis(&self, provider: &str) -> Diagnosis {
        let failure = Failure::api(provider)
            .with_status(self.status)
            .with_body(self.body.as_str());
        let headers = self.headers.iter();
        let failure = headers.fold(failure, |failure, (name, value)| {
            failure.with_header(name, value)
        });
        classify(&failure, &now())
    }
}

pub(crate) fn now() -> ClockReading {
    #[expect(
        clippy::disallowed_methods,
        reason = "resets lie ahead of the real clock"
    )]
    let now = std::time::SystemTime::now();
    let since_epoch = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    ClockReading::utc(Timestamp::from_millis(
        since_epoch.as_millis().try_into().unwrap(),
    ))
}

pub(crate) async fn post(server: &FaultServer, path: &str, body: &Value) -> Reached {
    let request = Request::post(path)
        .header("authorization", "Bearer sk-secret")
        .body(Full::from(body.to_string()))
        .unwrap();
    send(server, request).await
}

/// Sends a request with one more header.
pub(crate) async fn post_with(
    server: &FaultServer,
    (path, body): (&str, &Value),
    (name, value): (&str, &str),
) -> Reached {
    let request = Request::post(path)
        .header(name, value)
        .body(Full::from(body.to_string()))
        .unwrap();
    send(server, request).await
}

pub(crate) async fn bare(server: &FaultServer, method: Method, path: &str) -> Reached {
    let request = Request::builder().method(method).uri(path);
    send(server, request.body(Full::default()).unwrap()).await
}

/// Sends a request; waits without limit for the start of the answer, and a while for its end.
pub(crate) async fn send(server: &FaultServer, mut request: Request<Full<Bytes>>) -> Reached {
    let host = format!("127.0.0.1:{}", server.port());
    request.headers_mut().insert("host", host.parse().unwrap());
    let stream = TcpStream::connect(&host).await.unwrap();
    let io = TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    let _connection = tokio::spawn(connection);
    let (head, mut body) = sender.send_request(request).await.unwrap().into_parts();
    let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    let mut bytes = Vec::new();
    let end = loop {
        match tokio::time::timeout(Duration::from_millis(300), body.frame()).await {
            Err(_) => break End::Silent,
            Ok(None) => break End::Complete,
            Ok(Some(Err(_))) => break End::Broken,
            Ok(Some(Ok(frame))) => bytes.extend(frame.into_data().unwrap_or_default()),
        }
    };
    Reached {
        status: head.status.as_u16(),
        headers: head.headers.iter().map(header).collect(),
        body: String::from_utf8(bytes).unwrap(),
        end,
    }
}

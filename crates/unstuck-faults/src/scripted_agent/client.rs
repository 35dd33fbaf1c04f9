//! One HTTP request, sent once.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{HeaderMap, Method, Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;

use super::args::ScriptedAgentArgs;
use super::outcome::AgentFailure;

/// Maximum response length.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// A complete response.
#[derive(Debug)]
pub(super) struct ReceivedResponse {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Sends the prompt and reads the response.
pub(super) async fn send(
    args: &ScriptedAgentArgs,
    session: &str,
) -> Result<ReceivedResponse, AgentFailure> {
    let base: Uri = args.api.parse().map_err(|_| invalid_address(&args.api))?;
    let authority = base.authority().ok_or_else(|| invalid_address(&args.api))?;
    if base.scheme_str() != Some("http") {
        return Err(invalid_address(&args.api));
    }
    let port = authority.port_u16().unwrap_or(80);
    let stream = TcpStream::connect((authority.host(), port))
        .await
        .map_err(|error| AgentFailure::Unreachable(error.to_string()))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|_| AgentFailure::Lost)?;
    let request = request(args, session, base.path(), authority.as_str())
        .map_err(|_| invalid_address(&args.api))?;
    let exchange = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|_| AgentFailure::Lost)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await;
        Ok(ReceivedResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.map_err(|_| AgentFailure::Lost)?.to_bytes(),
        })
    };
    tokio::pin!(exchange, connection);
    tokio::select! {
        answered = &mut exchange => answered,
        _ = &mut connection => exchange.await,
    }
}

fn invalid_address(api: &str) -> AgentFailure {
    AgentFailure::Unreachable(format!(
        "`{api}` is not a URL such as http://127.0.0.1:8080"
    ))
}

fn request(
    args: &ScriptedAgentArgs,
    session: &str,
    base: &str,
    authority: &str,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let body = json!({
        "model": args.model, "max_tokens": 4096, "stream": true,
        "metadata": {"user_id": session},
        "messages": [{"role": "user", "content": args.prompt}],
    });
    Request::builder()
        .method(Method::POST)
        .uri(format!("{}/v1/messages", base.trim_end_matches('/')))
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .header("anthropic-version", "2023-06-01")
        .header("x-session-id", session)
        .body(Full::from(body.to_string()))
}

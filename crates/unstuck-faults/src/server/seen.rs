//! What came in, without secrets and within bounds.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use hyper::{HeaderMap, Uri};
use serde::Serialize;
use unstuck_core::Timestamp;

use crate::error::FaultsError;
use crate::protocol::Call;

const KEPT: usize = 1000;
const BODY_BYTES: usize = 64 * 1024;
const PROMPT_BYTES: usize = 64 * 1024;
const HIDDEN: &str = "(hidden)";

/// A request that came in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// When it came.
    pub at: Timestamp,
    /// The HTTP method.
    pub method: String,
    /// The path, without a query.
    pub path: String,
    /// The model that was asked; empty if none was.
    pub model: String,
    /// The last thing that the user said, up to 64 KiB of it.
    pub prompt: String,
    /// Whether a stream was asked for.
    #[serde(rename = "streams")]
    pub streams: bool,
    /// The SHA-256 of the body, in hexadecimal digits.
    pub body_sha256: String,
    /// The body, up to 64 KiB of it; not in the log.
    #[serde(skip)]
    pub body: Bytes,
    /// The headers, names in lower case; values of credentials are hidden.
    pub headers: Vec<(String, String)>,
    /// The name of the reply that the script had for it, `over_limit` or `over_capacity`; `None` if it was no question to a model.
    pub reply: Option<&'static str>,
}

/// The requests that came in, and their log.
#[derive(Debug)]
pub(super) struct Seen {
    requests: VecDeque<Request>,
    log: Option<File>,
}

impl Seen {
    pub(super) fn new(log: Option<&Path>) -> Result<Self, FaultsError> {
        let open = |path: &Path| {
            let mut options = File::options();
            options.append(true).create(true);
            options.open(path).map_err(FaultsError::file(path))
        };
        Ok(Self {
            requests: VecDeque::new(),
            log: log.map(open).transpose()?,
        })
    }

    pub(super) fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    pub(super) fn all(&self) -> Vec<Request> {
        self.requests.iter().cloned().collect()
    }

    pub(super) fn forget(&mut self) {
        self.requests.clear();
    }

    /// Keeps a request.
    pub(super) fn record(&mut self, request: Request) {
        if let (Some(log), Ok(mut line)) = (&mut self.log, serde_json::to_string(&request)) {
            line.push('\n');
            // A full disk must not change what the client sees.
            let _ = log.write_all(line.as_bytes());
        }
        if self.requests.len() == KEPT {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
    }
}

impl Request {
    pub(super) fn new(at: Timestamp, method: &str, uri: &Uri, headers: &HeaderMap) -> Self {
        let header = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
            let shown = if is_secret(name.as_str()) {
                HIDDEN.to_owned()
            } else {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            };
            (name.as_str().to_owned(), shown)
        };
        Self {
            at,
            method: method.to_owned(),
            path: uri.path().to_owned(),
            model: String::new(),
            prompt: String::new(),
            streams: false,
            body_sha256: String::new(),
            body: Bytes::new(),
            headers: headers.iter().map(header).collect(),
            reply: None,
        }
    }

    /// Adds what the model was asked.
    pub(super) fn asking(mut self, call: &Call) -> Self {
        self.model.clone_from(&call.model);
        let end = call.prompt.floor_char_boundary(PROMPT_BYTES);
        call.prompt[..end].clone_into(&mut self.prompt);
        self.streams = call.streams;
        self
    }

    /// Adds the body.
    pub(super) fn saying(mut self, body: &Bytes) -> Self {
        self.body_sha256 = super::echo::sha256(body);
        self.body = body.slice(..body.len().min(BODY_BYTES));
        self
    }

    /// The value of a header; the name must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

fn is_secret(name: &str) -> bool {
    let parts = ["auth", "key", "token", "cookie", "secret"];
    parts.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_thousand_requests_are_kept_and_long_prompts_are_shortened() {
        let mut seen = Seen::new(None).unwrap();
        for number in 1..=1005 {
            let at = Timestamp::from_seconds(number);
            let call = Call {
                prompt: "ü".repeat(40_000),
                ..Call::default()
            };
            let uri = Uri::from_static("/v1/messages");
            let request = Request::new(at, "POST", &uri, &HeaderMap::new()).asking(&call);
            seen.record(request);
        }
        let kept = seen.all();
        assert_eq!((kept.len(), kept[0].at), (1000, Timestamp::from_seconds(6)));
        assert_eq!(kept[0].prompt.len(), 64 * 1024);
    }
}

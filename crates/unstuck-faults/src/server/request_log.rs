//! The received requests, without secrets and bounded in size.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use bytes::Bytes;
use hyper::{HeaderMap, Uri};
use serde::Serialize;
use unstuck_core::Timestamp;

use crate::error::FaultServerError;
use crate::protocol::ModelCall;

const MAX_REQUESTS: usize = 1000;
const BODY_BYTES: usize = 64 * 1024;
const PROMPT_BYTES: usize = 64 * 1024;
const HIDDEN: &str = "(hidden)";

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultServerRequestRecord {
    /// Timestamp of its arrival.
    pub at: Timestamp,
    /// HTTP method.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Requested model; empty if none.
    pub model: String,
    /// Last message of the user, up to 64 KiB.
    pub prompt: String,
    /// If set, a stream was requested.
    #[serde(rename = "streams")]
    pub wants_stream: bool,
    /// SHA-256 of the body in hexadecimal.
    pub body_sha256: String,
    /// Body, up to 64 KiB; not in the log.
    #[serde(skip)]
    pub body: Bytes,
    /// Headers with lower-case names; values of credentials are hidden.
    pub headers: Vec<(String, String)>,
    /// Name of the script's reply, `over_limit` or `over_capacity`; `None` if the request was not a model call.
    pub reply: Option<&'static str>,
}

/// The received requests, and their log file.
#[derive(Debug)]
pub(super) struct RequestLog {
    requests: VecDeque<FaultServerRequestRecord>,
    log: Option<File>,
}

impl RequestLog {
    #[expect(clippy::disallowed_methods, reason = "a log that the user names")]
    pub(super) fn new(log: Option<&Path>) -> Result<Self, FaultServerError> {
        let open = |path: &Path| {
            let mut options = File::options();
            options.append(true).create(true);
            options.open(path).map_err(FaultServerError::file(path))
        };
        Ok(Self {
            requests: VecDeque::new(),
            log: log.map(open).transpose()?,
        })
    }

    pub(super) fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    pub(super) fn all(&self) -> Vec<FaultServerRequestRecord> {
        self.requests.iter().cloned().collect()
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
    }

    /// Records a request.
    pub(super) fn record(&mut self, request: FaultServerRequestRecord) {
        if let (Some(log), Ok(mut line)) = (&mut self.log, serde_json::to_string(&request)) {
            line.push('\n');
            // A full disk must not change the client's answer.
            let _ = log.write_all(line.as_bytes());
        }
        if self.requests.len() == MAX_REQUESTS {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
    }
}

impl FaultServerRequestRecord {
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
            wants_stream: false,
            body_sha256: String::new(),
            body: Bytes::new(),
            headers: headers.iter().map(header).collect(),
            reply: None,
        }
    }

    /// Adds the details of a model call.
    pub(super) fn with_call(mut self, call: &ModelCall) -> Self {
        self.model.clone_from(&call.model);
        let end = call.prompt.floor_char_boundary(PROMPT_BYTES);
        call.prompt[..end].clone_into(&mut self.prompt);
        self.wants_stream = call.wants_stream;
        self
    }

    /// Adds the body.
    pub(super) fn with_body(mut self, body: &Bytes) -> Self {
        self.body_sha256 = super::echo::sha256(body);
        self.body = body.slice(..body.len().min(BODY_BYTES));
        self
    }

    /// Returns the value of a header; the name must be in lower case.
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
    fn only_the_last_thousand_requests_are_kept_and_long_prompts_are_truncated() {
        let mut seen = RequestLog::new(None).unwrap();
        for number in 1..=1005 {
            let at = Timestamp::from_seconds(number);
            let call = ModelCall {
                prompt: "ü".repeat(40_000),
                ..ModelCall::default()
            };
            let uri = Uri::from_static("/v1/messages");
            let request =
                FaultServerRequestRecord::new(at, "POST", &uri, &HeaderMap::new()).with_call(&call);
            seen.record(request);
        }
        let kept = seen.all();
        assert_eq!((kept.len(), kept[0].at), (1000, Timestamp::from_seconds(6)));
        assert_eq!(kept[0].prompt.len(), 64 * 1024);
    }
}

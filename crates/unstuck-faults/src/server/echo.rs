//! Echoes a request back to its client.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::http::request::Parts;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Returns the request as received: headers in their original order and case if the head was kept, else as HTTP/2 gave
/// them.
pub(super) fn echo(head: &Parts, raw_head: Option<&[u8]>, body: &[u8]) -> Value {
    json!({
        "method": head.method.as_str(), "path": head.uri.path(), "query": head.uri.query(),
        "version": format!("{:?}", head.version),
        "headers": raw_head.map_or_else(|| parsed_headers(head), raw_headers),
        "body": {"bytes": body.len(), "sha256": sha256(body), "base64": STANDARD.encode(body)},
    })
}

/// Returns the SHA-256 in hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parsed_headers(head: &Parts) -> Vec<[String; 2]> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    head.headers
        .iter()
        .map(|(name, value)| [name.as_str().to_owned(), text(value.as_bytes())])
        .collect()
}

fn raw_headers(head: &[u8]) -> Vec<[String; 2]> {
    let text = String::from_utf8_lossy(head);
    let lines = text.split("\r\n").skip(1);
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| [name.to_owned(), value.trim().to_owned()])
        .collect()
}

//! Redacts secrets before anything is stored or shown.
//!
//! A secret is a value that the caller [knows](secret_values) to be one, or a match of a pattern in
//! `data/secrets.toml`: provider keys, bearer tokens, passwords in URLs and arguments, private keys. Each is replaced
//! by `[redacted:<pattern>]`, even if encoded in base64, wrapped over several lines, or arriving in pieces. Redaction
//! is idempotent, and JSON stays JSON. A text without secrets is returned unchanged.
//!
//! ```
//! use unstuck_core::redact::{Redactor, secret_values};
//!
//! let environment = [("DEPLOY_TOKEN".to_owned(), "q7h2k9zt4m".to_owned())];
//! let redactor = Redactor::new(secret_values(environment.into_iter()));
//! assert_eq!(redactor.redact("pushed with q7h2k9zt4m"), "pushed with [redacted:environment]");
//! assert_eq!(redactor.redact("redis://app:s3same@cache:6379"), "redis://app:[redacted:url_password]@cache:6379");
//! assert_eq!(redactor.redact("max_tokens: 4096"), "max_tokens: 4096");
//! ```

mod base64;
mod built_in_secret_patterns;
mod escape_boundaries;
mod json;
mod key_names;
mod known_secrets;
mod marker;
mod patterns;
mod pem;
mod secret_or_harmless;
mod stream_redactor;
mod wrapped_secrets;

use std::borrow::Cow;
use std::ops::Range;

use built_in_secret_patterns::SecretPatternFile;
pub use key_names::secret_values;
use known_secrets::KnownSecrets;
use patterns::SecretPatterns;
use pem::PemTracker;
pub use stream_redactor::StreamRedactor;
use wrapped_secrets::JoinedLines;

/// The marker name of secrets known to the caller.
const KNOWN_SECRET_NAME: &str = "environment";

/// Redacts secrets in texts.
#[derive(Debug)]
pub struct Redactor {
    known: KnownSecrets,
}

/// The range of a secret, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SecretSpan {
    range: Range<usize>,
    /// The lowest rank of overlapping secrets determines the name.
    rank: usize,
}

impl Redactor {
    /// Creates a redactor for the built-in patterns and these values; values shorter than four bytes are ignored.
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        Self {
            known: KnownSecrets::new(known),
        }
    }

    /// Redacts a text; borrowed if it contains no secret.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
        }
    }

    /// Redacts bytes, which need not be UTF-8; borrowed if they contain no secret.
    pub fn redact_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        self.redact_continued(bytes, &mut PemTracker::default())
    }

    /// Returns true if the text contains a secret.
    pub fn contains_secret(&self, text: &str) -> bool {
        !self
            .find_secrets(text.as_bytes(), &mut PemTracker::default())
            .is_empty()
    }

    /// Returns a redactor for a text that arrives in pieces.
    pub fn stream(&self) -> StreamRedactor<'_> {
        StreamRedactor::new(self)
    }

    /// Redacts text whose preceding lines may have begun a private key.
    fn redact_continued<'t>(&self, bytes: &'t [u8], pem: &mut PemTracker) -> Cow<'t, [u8]> {
        let before = pem.clone();
        let found = self.find_secrets(bytes, pem);
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut bytes = insert_markers(bytes, &found);
        // Text next to a redacted secret may now look like one. Each round redacts more bytes, so this terminates.
        loop {
            let found = self.find_secrets(&bytes, &mut before.clone());
            if found.is_empty() {
                return Cow::Owned(bytes);
            }
            bytes = insert_markers(&bytes, &found);
        }
    }

    /// Adds the secrets that continue on the next line.
    fn find_wrapped(&self, text: &[u8], found: &mut Vec<SecretSpan>) {
        let joined = JoinedLines::from_text(text);
        if joined.text.is_empty() {
            return;
        }
        let mut wrapped = Vec::new();
        self.known.find(&joined.text, &mut wrapped);
        SecretPatterns::built_in().find_unnamed(&joined.text, &mut wrapped);
        for secret in &wrapped {
            joined.add_to(secret, text, found);
        }
    }

    /// Returns all secrets, in order, without overlaps.
    fn find_secrets(&self, text: &[u8], pem: &mut PemTracker) -> Vec<SecretSpan> {
        let mut found = Vec::new();
        self.known.find(text, &mut found);
        SecretPatterns::built_in().find(text, pem, &mut found);
        self.find_wrapped(text, &mut found);
        if found.is_empty() {
            return found;
        }
        let markers = marker::find_markers(text);
        let whole = |secret: SecretSpan| SecretSpan {
            range: escape_boundaries::widen_to_escapes(text, secret.range),
            rank: secret.rank,
        };
        let clear = found.into_iter().map(whole).filter_map(|secret| {
            let range = marker::before_first_marker(&markers, secret.range)?;
            Some(SecretSpan { range, ..secret })
        });
        merge_overlapping(clear.collect())
    }
}

fn merge_overlapping(mut secrets: Vec<SecretSpan>) -> Vec<SecretSpan> {
    secrets.sort_unstable_by_key(|secret| (secret.range.start, secret.range.end));
    let mut merged: Vec<SecretSpan> = Vec::with_capacity(secrets.len());
    for secret in secrets {
        match merged.last_mut() {
            Some(last) if secret.range.start < last.range.end => {
                last.range.end = last.range.end.max(secret.range.end);
                last.rank = last.rank.min(secret.rank);
            }
            _ => merged.push(secret),
        }
    }
    merged
}

/// Replaces the secrets by markers.
fn insert_markers(text: &[u8], secrets: &[SecretSpan]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for secret in secrets {
        out.extend_from_slice(&text[at..secret.range.start]);
        out.extend_from_slice(marker::marker_for(rank_name(secret.rank)).as_bytes());
        at = secret.range.end;
    }
    out.extend_from_slice(&text[at..]);
    out
}

/// Returns the name of a rank: known values come first, then the patterns in order.
fn rank_name(rank: usize) -> &'static str {
    match rank.checked_sub(1) {
        None => KNOWN_SECRET_NAME,
        Some(pattern) => SecretPatternFile::built_in().id(pattern),
    }
}

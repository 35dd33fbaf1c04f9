//! Takes secrets out of texts before anything is stored or shown.
//!
//! A secret is a value that the caller [knows](secret_values) to be one, or what one of the patterns in `data/secrets.toml` describes:
//! provider keys, bearer tokens, passwords in addresses and arguments, private keys. Each is replaced by `[redacted:<pattern>]`,
//! also where it is written in base64, wrapped over several lines, or comes in pieces.
//! Redacting twice changes nothing, and JSON text stays JSON. A text without secrets is handed back as it is.
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
mod escapes;
mod json;
mod known;
mod looks;
mod marker;
mod names;
mod patterns;
mod pem;
mod secrets_file;
mod stream;
mod wrapped;

use std::borrow::Cow;
use std::ops::Range;

use known::Known;
pub use names::secret_values;
use patterns::Patterns;
use pem::Pem;
use secrets_file::SecretsFile;
pub use stream::Stream;
use wrapped::Joined;

/// The name under which values that the caller knows are hidden.
const KNOWN: &str = "environment";

/// Takes secrets out of texts.
#[derive(Debug)]
pub struct Redactor {
    known: Known,
}

/// A place that must not be shown, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Secret {
    range: Range<usize>,
    /// Of several that overlap the lowest gives the name.
    rank: usize,
}

impl Redactor {
    /// Hides what looks like a secret, and these values wherever they are; shorter ones than four bytes are ignored.
    pub fn new(known: impl IntoIterator<Item = String>) -> Self {
        Self {
            known: Known::new(known),
        }
    }

    /// The text without secrets; borrowed where there is none.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
        }
    }

    /// The bytes without secrets; borrowed where there is none. They need not be text.
    pub fn redact_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        self.redact_after(bytes, &mut Pem::default())
    }

    /// Whether there is a secret in the text.
    pub fn finds(&self, text: &str) -> bool {
        !self
            .secrets(text.as_bytes(), &mut Pem::default())
            .is_empty()
    }

    /// A text that comes in pieces.
    pub fn stream(&self) -> Stream<'_> {
        Stream::new(self)
    }

    /// Redacts what follows on lines that may have begun a private key.
    fn redact_after<'t>(&self, bytes: &'t [u8], pem: &mut Pem) -> Cow<'t, [u8]> {
        let before = pem.clone();
        let found = self.secrets(bytes, pem);
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut bytes = masked(bytes, &found);
        // What stood beside a secret may only now begin like one. Each round hides some bytes more, so this ends.
        loop {
            let found = self.secrets(&bytes, &mut before.clone());
            if found.is_empty() {
                return Cow::Owned(bytes);
            }
            bytes = masked(&bytes, &found);
        }
    }

    /// Adds the secrets that go on on the next line.
    fn find_wrapped(&self, text: &[u8], found: &mut Vec<Secret>) {
        let joined = Joined::of(text);
        if joined.text.is_empty() {
            return;
        }
        let mut wrapped = Vec::new();
        self.known.find(&joined.text, &mut wrapped);
        Patterns::built_in().find_unnamed(&joined.text, &mut wrapped);
        for secret in &wrapped {
            joined.add_to(secret, text, found);
        }
    }

    /// All secrets, in order, none overlapping another.
    fn secrets(&self, text: &[u8], pem: &mut Pem) -> Vec<Secret> {
        let mut found = Vec::new();
        self.known.find(text, &mut found);
        Patterns::built_in().find(text, pem, &mut found);
        self.find_wrapped(text, &mut found);
        if found.is_empty() {
            return found;
        }
        let markers = marker::places(text);
        let whole = |secret: Secret| Secret {
            range: escapes::whole(text, secret.range),
            rank: secret.rank,
        };
        let clear = found.into_iter().map(whole).filter_map(|secret| {
            let range = marker::before(&markers, secret.range)?;
            Some(Secret { range, ..secret })
        });
        merged(clear.collect())
    }
}

fn merged(mut secrets: Vec<Secret>) -> Vec<Secret> {
    secrets.sort_unstable_by_key(|secret| (secret.range.start, secret.range.end));
    let mut merged: Vec<Secret> = Vec::with_capacity(secrets.len());
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

/// The text with markers in place of secrets.
fn masked(text: &[u8], secrets: &[Secret]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for secret in secrets {
        out.extend_from_slice(&text[at..secret.range.start]);
        out.extend_from_slice(marker::text(name(secret.rank)).as_bytes());
        at = secret.range.end;
    }
    out.extend_from_slice(&text[at..]);
    out
}

/// The name of a rank: known values come first, then the patterns in their order.
fn name(rank: usize) -> &'static str {
    match rank.checked_sub(1) {
        None => KNOWN,
        Some(pattern) => SecretsFile::built_in().id(pattern),
    }
}

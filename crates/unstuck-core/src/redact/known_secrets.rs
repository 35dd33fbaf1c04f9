//! Secrets known to the caller, in all their encodings.

use super::SecretSpan;
use super::base64;
use super::secret_or_harmless::SecretValueCheck;
use crate::literal_index::LiteralIndex;

/// Minimum length; shorter values would match everywhere.
const MIN_LEN: usize = 4;

/// Secrets known to the caller.
#[derive(Debug)]
pub(super) struct KnownSecrets {
    values: Vec<String>,
    index: LiteralIndex,
}

impl KnownSecrets {
    pub(super) fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values
            .into_iter()
            .flat_map(|value| encodings_of(&value))
            .collect();
        values.retain(|value| value.len() >= MIN_LEN);
        values.sort_unstable();
        values.dedup();
        let index = LiteralIndex::new(values.iter().map(String::as_str));
        Self { values, index }
    }

    pub(super) fn find(&self, text: &[u8], found: &mut Vec<SecretSpan>) {
        if self.values.is_empty() {
            return;
        }
        self.index.for_each_match(text, |place| {
            let range = place.start..place.end;
            // The search is case-insensitive, a secret is not.
            if text[range.clone()] == *self.values[place.literal].as_bytes() {
                found.push(SecretSpan { range, rank: 0 });
            }
        });
    }
}

/// Minimum length for base64; shorter values would match everywhere.
const SHORTEST_IN_BASE64: usize = 8;

/// Returns a value verbatim, in JSON, in a URL, in base64, and line by line.
fn encodings_of(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut written = vec![value.to_owned(), json_escaped(value), url_encoded(value)];
    if value.len() >= SHORTEST_IN_BASE64 {
        written.extend(base64::encodings_inside(value));
    }
    if value.contains('\n') {
        let lines = value.lines().map(str::trim);
        let secret = |line: &&str| line.len() >= 16 && SecretValueCheck::built_in().is_random(line);
        written.extend(lines.filter(secret).map(str::to_owned));
    }
    written
}

fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn url_encoded(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let mut address = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            plain if is_plain(plain) => address.push(char::from(plain)),
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address
}

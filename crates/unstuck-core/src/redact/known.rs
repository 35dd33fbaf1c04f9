//! Values that the caller knows to be secret, in every way in which they may be written.

use super::Secret;
use super::base64;
use super::looks::Looks;
use crate::needles::Needles;

/// Shorter values would be found everywhere.
const SHORTEST: usize = 4;

/// Values that the caller knows to be secret.
#[derive(Debug)]
pub(super) struct Known {
    values: Vec<String>,
    needles: Needles,
}

impl Known {
    pub(super) fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> = values
            .into_iter()
            .flat_map(|value| written(&value))
            .collect();
        values.retain(|value| value.len() >= SHORTEST);
        values.sort_unstable();
        values.dedup();
        let needles = Needles::new(values.iter().map(String::as_str));
        Self { values, needles }
    }

    pub(super) fn find(&self, text: &[u8], found: &mut Vec<Secret>) {
        if self.values.is_empty() {
            return;
        }
        self.needles.each(text, |place| {
            let range = place.start..place.end;
            // The search ignores letter case, a secret does not.
            if text[range.clone()] == *self.values[place.needle].as_bytes() {
                found.push(Secret { range, rank: 0 });
            }
        });
    }
}

/// Shorter values would be found everywhere in base64.
const SHORTEST_IN_BASE64: usize = 8;

/// A value as it is, in JSON, in an address, in base64, and line by line.
fn written(value: &str) -> Vec<String> {
    let value = value.trim();
    let mut written = vec![value.to_owned(), in_json(value), in_address(value)];
    if value.len() >= SHORTEST_IN_BASE64 {
        written.extend(base64::inside(value));
    }
    if value.contains('\n') {
        let lines = value.lines().map(str::trim);
        let secret = |line: &&str| line.len() >= 16 && Looks::built_in().random(line);
        written.extend(lines.filter(secret).map(str::to_owned));
    }
    written
}

fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn in_address(value: &str) -> String {
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

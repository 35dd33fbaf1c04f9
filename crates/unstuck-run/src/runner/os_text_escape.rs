//! Escapes arguments that are not UTF-8, so that they can be stored, shown and passed to the child unchanged.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Writes bytes as text: those that are not UTF-8 as `\xHH`, and `\` as `\\`.
///
/// ```
/// use std::ffi::OsStr;
/// use std::os::unix::ffi::OsStrExt;
/// use unstuck_run::runner::{escape, unescape};
///
/// let word = OsStr::from_bytes(b"caf\xe9");
/// assert_eq!(escape(word), r"caf\xe9");
/// assert_eq!(unescape(r"caf\xe9"), word);
/// ```
pub fn escape(word: &OsStr) -> String {
    let mut text = String::new();
    for chunk in word.as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            text.push_str(&format!(r"\x{byte:02x}"));
        }
    }
    text
}

/// Returns the bytes that [`escape`] wrote as text.
pub fn unescape(text: &str) -> OsString {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => (b'\\', after),
            (b'\\', [b'x', high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => (b'\\', &rest[1..]),
            },
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    OsString::from_vec(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn escape_round_trips_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let word = OsString::from_vec(bytes);
            prop_assert_eq!(unescape(&escape(&word)), word);
        }
    }
}

//! Text as received: any bytes.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Timestamp;

/// Bytes that are most probably text; invalid UTF-8 is replaced when read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LossyText {
    bytes: Vec<u8>,
    /// Print times of its parts: each from a byte offset on, in order.
    printed: Vec<(usize, Timestamp)>,
}

impl LossyText {
    /// The bytes as received.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the same text with the print times of its parts: each from a byte offset on, in order.
    #[must_use]
    pub fn with_print_times(self, printed: Vec<(usize, Timestamp)>) -> Self {
        Self { printed, ..self }
    }

    /// Returns the parts with known print times, in order.
    pub(crate) fn timed_parts(&self) -> impl Iterator<Item = (&[u8], Timestamp)> {
        let ends = self.printed.iter().skip(1).map(|(at, _)| *at);
        let ends = ends.chain([self.bytes.len()]);
        let parts = self.printed.iter().zip(ends);
        parts.filter_map(|((from, at), to)| Some((self.bytes.get(*from..to)?, *at)))
    }

    /// Returns the text, with U+FFFD in place of invalid UTF-8.
    pub fn to_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Returns true if it contains only white space.
    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }
}

impl From<&str> for LossyText {
    fn from(text: &str) -> Self {
        text.as_bytes().to_vec().into()
    }
}

impl From<String> for LossyText {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<Vec<u8>> for LossyText {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            printed: Vec::new(),
        }
    }
}

impl Serialize for LossyText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_str())
    }
}

impl<'de> Deserialize<'de> for LossyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

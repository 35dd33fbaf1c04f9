//! Text as it came: any bytes.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Timestamp;

/// Bytes that are most probably text; what is not UTF-8 is replaced when it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LossyText {
    bytes: Vec<u8>,
    /// When its parts were printed: each from a byte on, in order.
    printed: Vec<(usize, Timestamp)>,
}

impl LossyText {
    /// The bytes as they came.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same text, and when its parts were printed: each from a byte on, in order.
    #[must_use]
    pub fn with_print_times(self, printed: Vec<(usize, Timestamp)>) -> Self {
        Self { printed, ..self }
    }

    /// The parts of which it is known when they were printed, in order.
    pub(crate) fn timed_parts(&self) -> impl Iterator<Item = (&[u8], Timestamp)> {
        let ends = self.printed.iter().skip(1).map(|(at, _)| *at);
        let ends = ends.chain([self.bytes.len()]);
        let parts = self.printed.iter().zip(ends);
        parts.filter_map(|((from, at), to)| Some((self.bytes.get(*from..to)?, *at)))
    }

    /// The text, with U+FFFD for what is not UTF-8.
    pub fn to_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Whether there is nothing but white space in it.
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

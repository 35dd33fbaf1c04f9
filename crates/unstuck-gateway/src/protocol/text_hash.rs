//! Hashes that identify equal texts, however they were split. Not for secrets, and not collision-resistant against
//! attackers.

/// The hash of a text in pieces (FNV-1a, 64 bits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextHash(u64);

impl TextHash {
    pub(super) const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    pub(super) fn of(bytes: &[u8]) -> u64 {
        let mut hash = Self::EMPTY;
        hash.add(bytes);
        hash.value()
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.add_byte(byte);
        }
    }

    pub(super) fn add_number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }

    fn add_byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }
}

/// The hash of a JSON text in pieces; whitespace between tokens is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JsonHash {
    hash: TextHash,
    at: JsonPosition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonPosition {
    Structure,
    String,
    Escape,
}

impl JsonHash {
    pub(super) const EMPTY: Self = Self {
        hash: TextHash::EMPTY,
        at: JsonPosition::Structure,
    };

    pub(super) fn of(json: &[u8]) -> u64 {
        let mut hash = Self::EMPTY;
        hash.add(json);
        hash.value()
    }

    pub(super) fn add(&mut self, json: &[u8]) {
        for &byte in json {
            if self.at == JsonPosition::Structure && byte.is_ascii_whitespace() {
                continue;
            }
            self.hash.add_byte(byte);
            self.at = match (self.at, byte) {
                (JsonPosition::Structure, b'"') | (JsonPosition::Escape, _) => JsonPosition::String,
                (JsonPosition::String, b'"') => JsonPosition::Structure,
                (JsonPosition::String, b'\\') => JsonPosition::Escape,
                (at, _) => at,
            };
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    pub(super) fn value(self) -> u64 {
        self.hash.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_matters_only_inside_strings() {
        let tight = JsonHash::of(br#"{"a":"x y","b":["\" "]}"#);
        assert_eq!(
            tight,
            JsonHash::of(b"{ \"a\" : \"x y\",\n\"b\": [\"\\\" \"] }")
        );
        assert_ne!(tight, JsonHash::of(br#"{"a":"xy","b":["\" "]}"#));
        assert_ne!(tight, JsonHash::of(br#"{"a":"x y","b":["\""]}"#));
    }

    #[test]
    fn pieces_hash_like_the_whole_text() {
        let text = br#"{"a": "x \" y", "b": 1}"#;
        let mut whole = TextHash::EMPTY;
        whole.add(text);
        for cut in 0..=text.len() {
            let (mut hash, mut json) = (TextHash::EMPTY, JsonHash::EMPTY);
            for piece in [&text[..cut], &text[cut..]] {
                hash.add(piece);
                json.add(piece);
            }
            assert_eq!(hash, whole);
            assert_eq!(json.value(), JsonHash::of(text));
        }
    }
}

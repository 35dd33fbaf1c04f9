//! Splits a text into chunks for streaming.

/// The number and size of the chunks of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextChunkSpec {
    /// Number of chunks; up to 4 if absent.
    pub(crate) count: Option<usize>,
    /// Bytes per chunk.
    pub(crate) bytes: Option<usize>,
}

/// Maximum size of a chunk and of a stream, so that a typo in a script does not exhaust the memory.
const MAX_BYTES: usize = 64 * 1024 * 1024;

impl TextChunkSpec {
    /// Returns the text repeated or cut to the requested length; unchanged unless both numbers are set.
    pub(crate) fn resize(self, text: String) -> String {
        let (Some(count), Some(bytes)) = (self.count, self.bytes) else {
            return text;
        };
        let wanted = count.saturating_mul(bytes).min(MAX_BYTES);
        let source = if text.is_empty() {
            "word".to_owned()
        } else {
            text
        };
        let source = source + " ";
        let mut stretched = source.repeat(wanted.div_ceil(source.len()));
        stretched.truncate(stretched.floor_char_boundary(wanted));
        stretched
    }

    /// Returns the chunks; joined they are the text.
    pub(super) fn split(self, text: &str) -> Vec<&str> {
        match (self.count, self.bytes) {
            (_, Some(bytes)) => split_bytes(text, bytes),
            (Some(count), None) => split_bytes(text, text.len().div_ceil(count.max(1))),
            (None, None) => split_words(text),
        }
    }
}

/// Placeholder of a chunk in a frame template.
const PLACEHOLDER: &str = "@piece@";

/// Returns the frames of many chunks from one template: far faster than serializing each.
pub(super) fn frames(pieces: &[&str], frame: impl Fn(&str) -> String) -> Vec<String> {
    let pattern = frame(PLACEHOLDER);
    let Some((before, after)) = pattern.split_once(&format!("\"{PLACEHOLDER}\"")) else {
        return pieces.iter().map(|piece| frame(piece)).collect();
    };
    let quoted = |piece: &&str| {
        // A text can always be serialized as JSON.
        let quoted = serde_json::to_string(piece).unwrap_or_default();
        [before, &quoted, after].concat()
    };
    pieces.iter().map(quoted).collect()
}

fn split_bytes(text: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::with_capacity(text.len() / bytes.max(1) + 1);
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.floor_char_boundary(bytes.max(1));
        if end == 0 {
            end = rest.ceil_char_boundary(1);
        }
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Returns up to four chunks of whole words.
fn split_words(text: &str) -> Vec<&str> {
    let words: Vec<_> = text.split_inclusive(char::is_whitespace).collect();
    let mut rest = text;
    words
        .chunks(words.len().div_ceil(4).max(1))
        .map(|chunk| {
            let (piece, after) = rest.split_at(chunk.iter().map(|word| word.len()).sum());
            rest = after;
            piece
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 6] = [
        "",
        "one",
        "a b",
        "one two  three\nfour fünf six ",
        " \n",
        "üüü",
    ];

    #[test]
    fn joined_chunks_are_the_whole_text() {
        for text in TEXTS {
            assert!(split_words(text).len() <= 4);
            for count in [None, Some(0), Some(1), Some(3), Some(100)] {
                for bytes in [None, Some(0), Some(1), Some(5)] {
                    let pieces = TextChunkSpec { count, bytes };
                    assert_eq!(pieces.split(text).concat(), text, "{pieces:?}");
                }
            }
        }
    }

    #[test]
    fn frames_from_a_template_equal_separately_serialized_ones() {
        let frame =
            |piece: &str| format!("data: {}\n\n", serde_json::json!({"a": [piece], "b": 1}));
        let pieces = ["one", "", "\"quoted\"\n", "@piece@"];
        let one_by_one: Vec<_> = pieces.iter().map(|piece| frame(piece)).collect();
        assert_eq!(frames(&pieces, frame), one_by_one);
    }

    #[test]
    fn a_resized_text_has_the_requested_number_of_chunks() {
        let pieces = TextChunkSpec {
            count: Some(100),
            bytes: Some(40),
        };
        for text in ["", "All twelve tests pass."] {
            let stretched = pieces.resize(text.to_owned());
            assert_eq!(stretched.len(), 4000);
            assert_eq!(pieces.split(&stretched).len(), 100);
        }
    }
}

//! Splits a stream into lines with bounded memory, independent of how it is chunked.

/// Longer lines are cut at the end of the next sentence, so that text without line ends has lines too.
const SENTENCE_CUT_LEN: usize = 160;
/// Longer lines are cut at the next blank.
const BLANK_CUT_LEN: usize = 512;
/// Lines are cut at this length in any case.
const MAX_LINE: usize = 4096;
/// Longer JSON objects are skipped.
const MAX_RECORD: usize = 1 << 20;

/// How lines that start like a JSON object are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonLineHandling {
    Whole,
    Cut,
}

/// Splits a stream into lines.
#[derive(Debug)]
pub(super) struct LineSplitter {
    records: JsonLineHandling,
    /// An unfinished line.
    partial: Vec<u8>,
    /// If set, everything up to the next line end is skipped.
    is_skipping: bool,
}

impl LineSplitter {
    pub(super) const fn new(records: JsonLineHandling) -> Self {
        Self {
            records,
            partial: Vec::new(),
            is_skipping: false,
        }
    }

    /// Processes written bytes and calls back for each complete line.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut call: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            if self.is_skipping {
                let Some(end) = memchr::memchr(b'\n', bytes) else {
                    return;
                };
                self.is_skipping = false;
                bytes = &bytes[end + 1..];
                continue;
            }
            let Some((len, taken)) = self.find_line_end(bytes) else {
                self.partial.extend_from_slice(bytes);
                return;
            };
            if self.is_skipping {
                // An oversized record is skipped silently.
            } else if self.partial.is_empty() {
                call(&bytes[..len]);
            } else {
                self.partial.extend_from_slice(&bytes[..len]);
                call(&self.partial);
            }
            self.partial.clear();
            bytes = &bytes[taken..];
        }
    }

    /// Calls back for the last, unterminated line.
    pub(super) fn finish(&mut self, call: impl FnOnce(&[u8])) {
        if !self.partial.is_empty() {
            call(&self.partial);
        }
        self.partial.clear();
    }

    /// Returns the length of the line and the bytes consumed including its end; none if it is incomplete.
    fn find_line_end(&mut self, bytes: &[u8]) -> Option<(usize, usize)> {
        let first = self.partial.first().or(bytes.first());
        let is_record = self.records == JsonLineHandling::Whole && first == Some(&b'{');
        let longest = if is_record { MAX_RECORD } else { MAX_LINE };
        let room = longest - self.partial.len();
        let near = &bytes[..bytes.len().min(room)];
        let line_end = memchr::memchr(b'\n', near);
        let to = line_end.unwrap_or(near.len());
        let cut = if is_record {
            None
        } else {
            self.find_blank(&near[..to])
        };
        if let Some(blank) = cut {
            return Some((blank, blank + 1));
        }
        if let Some(end) = line_end {
            return Some((end, end + 1));
        }
        if near.len() < room {
            return None;
        }
        self.is_skipping = is_record;
        Some((room, room))
    }

    /// Returns the blank at which a long line is cut.
    fn find_blank(&self, near: &[u8]) -> Option<usize> {
        let before = self.partial.len();
        let from = SENTENCE_CUT_LEN.saturating_sub(before);
        let blanks = memchr::memchr_iter(b' ', near.get(from..)?).map(|blank| from + blank);
        let ends_sentence = |blank: usize| {
            let last = match blank.checked_sub(1) {
                Some(at) => near.get(at),
                None => self.partial.last(),
            };
            matches!(last, Some(b'.' | b'!' | b'?'))
        };
        blanks
            .into_iter()
            .find(|blank| before + blank >= BLANK_CUT_LEN || ends_sentence(*blank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(records: JsonLineHandling, pieces: &[&[u8]]) -> Vec<usize> {
        let mut lines = LineSplitter::new(records);
        let mut found = Vec::new();
        for piece in pieces {
            lines.feed(piece, |line| found.push(line.len()));
        }
        lines.finish(|line| found.push(line.len()));
        found
    }

    #[test]
    fn lines_are_cut_at_their_ends_and_long_ones_at_blanks() {
        assert_eq!(
            lines(JsonLineHandling::Cut, &[b"a\nbc\n", b"d", b"ef\n\ng"]),
            [1, 2, 3, 0, 1]
        );
        let long = [b"x".repeat(600), b" yy".to_vec()].concat();
        assert_eq!(lines(JsonLineHandling::Cut, &[&long]), [600, 2]);
        let sentences = b"This is a sentence. ".repeat(20);
        let (one, other) = sentences.split_at(179);
        assert_eq!(lines(JsonLineHandling::Cut, &[one, other]), [179, 179, 40]);
        assert_eq!(
            lines(JsonLineHandling::Cut, &[&b"x".repeat(9000)]),
            [4096, 4096, 808]
        );
    }

    #[test]
    fn record_is_kept_whole_unless_it_is_enormous() {
        let record = |len: usize| [b"{ ".repeat(len / 2), b"\nab\n".to_vec()].concat();
        assert_eq!(lines(JsonLineHandling::Whole, &[&record(9000)]), [9000, 2]);
        let enormous = record(MAX_RECORD + 10);
        let (one, other) = enormous.split_at(777);
        assert_eq!(lines(JsonLineHandling::Whole, &[&enormous]), [2]);
        assert_eq!(lines(JsonLineHandling::Whole, &[one, other]), [2]);
    }
}

//! Cuts a stream into lines as it comes, with bounded memory. How it came in pieces makes no difference.

/// A line that is longer than this is cut at the end of its next sentence, so that text without line ends has lines too.
const SENTENCE_CUT_LEN: usize = 160;
/// A line that is longer than this is cut at its next blank.
const BLANK_CUT_LEN: usize = 512;
/// A line is cut here in any case.
const MAX_LINE: usize = 4096;
/// A longer JSON object is left out.
const MAX_RECORD: usize = 1 << 20;

/// Whether lines that begin like a JSON object are kept whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonRecords {
    Whole,
    Cut,
}

/// Cuts a stream into lines.
#[derive(Debug)]
pub(super) struct LineSplitter {
    records: JsonRecords,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    /// Whether what comes up to the next line end is left out.
    is_skipping: bool,
}

impl LineSplitter {
    pub(super) const fn new(records: JsonRecords) -> Self {
        Self {
            records,
            partial: Vec::new(),
            is_skipping: false,
        }
    }

    /// Takes in what was written and calls for each line that is complete.
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
                // Of a record that is too long nothing is told.
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

    /// Calls for the last line, which nothing ended.
    pub(super) fn finish(&mut self, call: impl FnOnce(&[u8])) {
        if !self.partial.is_empty() {
            call(&self.partial);
        }
        self.partial.clear();
    }

    /// How many bytes belong to the line, and how many are taken with its end; none if more is to come.
    fn find_line_end(&mut self, bytes: &[u8]) -> Option<(usize, usize)> {
        let first = self.partial.first().or(bytes.first());
        let is_record = self.records == JsonRecords::Whole && first == Some(&b'{');
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

    /// The blank at which a long line is cut.
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

    fn lines(records: JsonRecords, pieces: &[&[u8]]) -> Vec<usize> {
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
            lines(JsonRecords::Cut, &[b"a\nbc\n", b"d", b"ef\n\ng"]),
            [1, 2, 3, 0, 1]
        );
        let long = [b"x".repeat(600), b" yy".to_vec()].concat();
        assert_eq!(lines(JsonRecords::Cut, &[&long]), [600, 2]);
        let sentences = b"This is a sentence. ".repeat(20);
        let (one, other) = sentences.split_at(179);
        assert_eq!(lines(JsonRecords::Cut, &[one, other]), [179, 179, 40]);
        assert_eq!(
            lines(JsonRecords::Cut, &[&b"x".repeat(9000)]),
            [4096, 4096, 808]
        );
    }

    #[test]
    fn a_record_is_kept_whole_unless_it_is_enormous() {
        let record = |len: usize| [b"{ ".repeat(len / 2), b"\nab\n".to_vec()].concat();
        assert_eq!(lines(JsonRecords::Whole, &[&record(9000)]), [9000, 2]);
        let enormous = record(MAX_RECORD + 10);
        let (one, other) = enormous.split_at(777);
        assert_eq!(lines(JsonRecords::Whole, &[&enormous]), [2]);
        assert_eq!(lines(JsonRecords::Whole, &[one, other]), [2]);
    }
}

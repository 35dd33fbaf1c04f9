//! The beginning and the end of a child's output, in memory of bounded size.

use std::collections::VecDeque;

/// Size of the kept beginning: 64 KiB.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Size of the kept end: 256 KiB.
pub const MAX_TAIL_BYTES: usize = 256 * 1024;

/// The kept part of a stream.
///
/// ```
/// use unstuck_run::process::CapturedOutput;
///
/// let mut captured = CapturedOutput::default();
/// captured.push(b"hello");
/// assert_eq!(captured.text(), "hello");
/// assert_eq!(captured.omitted(), 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct CapturedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl CapturedOutput {
    /// Appends output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(MAX_HEAD_BYTES - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(MAX_TAIL_BYTES)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(MAX_TAIL_BYTES);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Returns the total number of bytes of the stream.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of omitted bytes in the middle.
    pub fn omitted(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Returns the first bytes of the stream.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the offset of a byte of the stream in [`text`](Self::text); for an omitted byte, the offset behind the
    /// gap.
    pub fn text_offset(&self, at: u64) -> usize {
        let head = self.head.len();
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        if self.omitted() == 0 || at < head as u64 {
            return place(at);
        }
        let before = head as u64 + self.omitted();
        head + self.gap_marker().len() + place(at.saturating_sub(before))
    }

    /// Returns the marker in the text for the omitted part.
    fn gap_marker(&self) -> String {
        format!("\n[{} bytes omitted]\n", self.omitted())
    }

    /// Returns all kept bytes in order, without a marker for the omitted part.
    pub fn bytes(&self) -> Vec<u8> {
        let (front, back) = self.tail.as_slices();
        [self.head.as_slice(), front, back].concat()
    }

    /// Returns the kept bytes as text; invalid UTF-8 is replaced, and a line states the size of the omitted part.
    pub fn text(&self) -> String {
        if self.omitted() == 0 {
            return String::from_utf8_lossy(&self.bytes()).into_owned();
        }
        let (front, back) = self.tail.as_slices();
        format!(
            "{}{}{}",
            String::from_utf8_lossy(&self.head),
            self.gap_marker(),
            String::from_utf8_lossy(&[front, back].concat()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn head_and_tail_match_the_whole_stream(
            sizes in prop::collection::vec(0usize..90_000, 0..12)
        ) {
            let whole: Vec<u8> = (0..sizes.iter().sum::<usize>()).map(|at| (at % 251) as u8).collect();
            let mut captured = CapturedOutput::default();
            let mut rest = whole.as_slice();
            for size in sizes {
                let (piece, after) = rest.split_at(size);
                captured.push(piece);
                rest = after;
            }
            let kept = captured.bytes();
            let head = whole.len().min(MAX_HEAD_BYTES);
            let tail = (whole.len() - head).min(MAX_TAIL_BYTES);
            prop_assert_eq!(&kept[..head], &whole[..head]);
            prop_assert_eq!(&kept[head..], &whole[whole.len() - tail..]);
            prop_assert_eq!(captured.omitted(), (whole.len() - head - tail) as u64);
        }
    }

    #[test]
    fn gap_is_shown_in_the_text() {
        let mut captured = CapturedOutput::default();
        captured.push(&vec![b'a'; MAX_HEAD_BYTES + 7]);
        captured.push(&vec![b'b'; MAX_TAIL_BYTES]);
        assert!(captured.text().contains("a\n[7 bytes omitted]\nb"));
    }
}

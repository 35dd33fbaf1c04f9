//! Server-sent events: a frame ends with a blank line, for any line ending.

use memchr::memchr2;

/// The state of scanning an event stream.
#[derive(Debug, Default)]
pub(super) struct SseScanner {
    line: LineState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LineState {
    /// At the start of a line. A frame may consist of blank lines only.
    #[default]
    Start,
    Inside,
    /// A line ended with `\r`; a following `
    /// ` belongs to it.
    Ended,
    /// A blank line ended with `\r`; a following `
    /// ` belongs to it.
    FrameEnded,
}

impl SseScanner {
    /// Returns the position in the chunk where the current frame ends. A `\r` that may be half of `\r
    /// ` ends it only when the next byte is known.
    pub(super) fn end_in(&mut self, chunk: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            match (self.line, byte) {
                (LineState::FrameEnded, b'\n') | (LineState::Start, b'\n') => {
                    self.line = LineState::Start;
                    return Some(at + 1);
                }
                (LineState::FrameEnded, _) => {
                    self.line = LineState::Start;
                    return Some(at);
                }
                (LineState::Ended | LineState::Inside, b'\n') => self.line = LineState::Start,
                (LineState::Inside, b'\r') => self.line = LineState::Ended,
                (LineState::Start | LineState::Ended, b'\r') => self.line = LineState::FrameEnded,
                (LineState::Start | LineState::Ended | LineState::Inside, _) => {
                    self.line = LineState::Inside;
                    let rest = chunk.get(at..).unwrap_or_default();
                    at += memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                    continue;
                }
            }
            at += 1;
        }
        None
    }
}

//! Server-sent events: a frame ends with a blank line, whatever ends its lines.

use memchr::memchr2;

/// Where in an event stream the scan stands.
#[derive(Debug, Default)]
pub(super) struct Sse {
    line: Line,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    /// Nothing of the line has come. A frame of blank lines alone is one too.
    #[default]
    Start,
    Inside,
    /// A line ended with `\r`; a `\n` that follows belongs to it.
    Ended,
    /// A blank line ended with `\r`; a `\n` that follows belongs to it.
    FrameEnded,
}

impl Sse {
    /// Where in the chunk the present frame ends. A `\r` that may be half of `\r\n` ends it only when the next byte is seen.
    pub(super) fn end_in(&mut self, chunk: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            match (self.line, byte) {
                (Line::FrameEnded, b'\n') | (Line::Start, b'\n') => {
                    self.line = Line::Start;
                    return Some(at + 1);
                }
                (Line::FrameEnded, _) => {
                    self.line = Line::Start;
                    return Some(at);
                }
                (Line::Ended | Line::Inside, b'\n') => self.line = Line::Start,
                (Line::Inside, b'\r') => self.line = Line::Ended,
                (Line::Start | Line::Ended, b'\r') => self.line = Line::FrameEnded,
                (Line::Start | Line::Ended | Line::Inside, _) => {
                    self.line = Line::Inside;
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

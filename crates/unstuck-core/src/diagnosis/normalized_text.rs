//! Normalizes text to what appears on a screen, for matching.
//!
//! Removes terminal colors and window titles, turns box-drawing characters into blanks, runs of blanks into one space,
//! every kind of line end (including the `\r` of a progress bar) into `\n`, and typographic quotes into plain ones.
//! Invalid UTF-8 is replaced.

use std::borrow::Cow;
use std::ops::Range;

/// Maximum size of a text; beyond it the middle is removed, since failures are at the start or the end.
const MAX_BYTES: usize = 4 << 20;

/// A text normalized for matching.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NormalizedText {
    /// The lines, each ended by `\n`.
    lines: String,
    /// The same bytes with blanks for line ends, so that a wrapped phrase is still found.
    flat: String,
    /// The ends of the lines.
    ends: Vec<usize>,
}

impl NormalizedText {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let lines = normalize(&cut_middle_bytes(bytes));
        let flat = lines.replace('\n', " ");
        let ends = lines.bytes().enumerate();
        let ends = ends.filter_map(|(at, byte)| (byte == b'\n').then_some(at));
        Self {
            ends: ends.collect(),
            lines,
            flat,
        }
    }

    /// The lines, each ended by `\n`.
    pub(crate) fn lines(&self) -> &str {
        &self.lines
    }

    /// The same bytes with blanks for line ends.
    pub(crate) fn flat(&self) -> &[u8] {
        self.flat.as_bytes()
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.lines.trim().is_empty()
    }

    /// Returns the lines that overlap a byte range.
    pub(crate) fn line_range(&self, range: &Range<usize>) -> Range<usize> {
        let start = match self.line_number(range.start) {
            0 => 0,
            before => self.ends[before - 1] + 1,
        };
        let len = self.lines.len();
        let last = range.end.max(range.start + 1).min(len) - 1;
        let end = self.ends.get(self.line_number(last)).copied();
        start..end.unwrap_or(len).max(range.end)
    }

    /// Returns true if a range is inside a path or URL, but is not a whole one.
    pub(crate) fn is_inside_a_path(&self, range: &Range<usize>) -> bool {
        let ends_word =
            |byte: &u8| byte.is_ascii_whitespace() || b"\"'`,;(){}[]<>=|".contains(byte);
        let bytes = self.lines.as_bytes();
        let inner = &bytes[range.clone()];
        if inner
            .iter()
            .any(|byte| ends_word(byte) || matches!(byte, b'/' | b'\\'))
        {
            return false;
        }
        let before = bytes[..range.start]
            .iter()
            .rev()
            .take_while(|byte| !ends_word(byte));
        let after = bytes[range.end..]
            .iter()
            .take_while(|byte| !ends_word(byte));
        before.chain(after).any(|byte| matches!(byte, b'/' | b'\\'))
    }

    /// Returns the number of lines before this byte.
    pub(crate) fn line_number(&self, at: usize) -> usize {
        self.ends.partition_point(|end| *end < at)
    }
}

fn cut_middle_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.len() <= MAX_BYTES {
        return Cow::Borrowed(bytes);
    }
    let (head, tail) = (
        &bytes[..MAX_BYTES / 4],
        &bytes[bytes.len() - MAX_BYTES * 3 / 4..],
    );
    Cow::Owned([head, b"\n", tail].concat())
}

fn normalize(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len() + 1);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match skip_escape(&mut chars) {
                CursorMove::Along => push_blank(&mut out),
                CursorMove::Elsewhere if !(out.is_empty() || out.ends_with('\n')) => {
                    end_line(&mut out)
                }
                CursorMove::Elsewhere | CursorMove::Nowhere => {}
            },
            '\n' => end_line(&mut out),
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    end_line(&mut out);
                }
            }
            _ if is_blank(c) => push_blank(&mut out),
            '‘' | '’' | '‛' | '′' => out.push('\''),
            '“' | '”' | '″' => out.push('"'),
            _ if c.is_control() => {}
            _ => out.push(c),
        }
    }
    end_line(&mut out);
    out
}

fn push_blank(out: &mut String) {
    if !out.is_empty() && !out.ends_with([' ', '\n']) {
        out.push(' ');
    }
}

fn end_line(out: &mut String) {
    if out.ends_with(' ') {
        out.pop();
    }
    out.push('\n');
}

/// Returns true for white space and the box-drawing characters of terminal programs.
fn is_blank(c: char) -> bool {
    c == ' '
        || c == '\t'
        || c.is_whitespace()
        || ('\u{2500}'..='\u{259f}').contains(&c)
        || c == '\u{feff}'
}

/// Returns the text without terminal control sequences.
pub(crate) fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match skip_escape(&mut chars) {
                CursorMove::Along => out.push(' '),
                CursorMove::Elsewhere => out.push('\n'),
                CursorMove::Nowhere => {}
            },
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The effect of a terminal control sequence on the cursor.
enum CursorMove {
    /// It does not move.
    Nowhere,
    /// It moves along the line: some programs do so instead of writing blanks.
    Along,
    /// It moves to another line, or to the start of this one.
    Elsewhere,
}

/// Skips a terminal control sequence after its escape character.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> CursorMove {
    match chars.next() {
        Some('[') => {
            let mut numbers = String::new();
            for c in chars.by_ref() {
                if ('@'..='~').contains(&c) {
                    return cursor_move(c, &numbers);
                }
                numbers.push(c);
            }
            CursorMove::Nowhere
        }
        Some(']') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
            CursorMove::Nowhere
        }
        _ => CursorMove::Nowhere,
    }
}

fn cursor_move(command: char, numbers: &str) -> CursorMove {
    match command {
        'C' => CursorMove::Along,
        'G' if !matches!(numbers, "" | "0" | "1") => CursorMove::Along,
        'A' | 'B' | 'E' | 'F' | 'G' | 'H' | 'f' => CursorMove::Elsewhere,
        _ => CursorMove::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> String {
        NormalizedText::new(text.as_bytes()).lines
    }

    #[test]
    fn colors_box_drawing_and_line_ends_are_normalized() {
        assert_eq!(
            seen("\u{1b}[91m\u{1b}[1mError: \u{1b}[0mno  key\r\n"),
            "Error: no key\n\n"
        );
        assert_eq!(seen("│ ✖  it\tfailed      │"), "✖ it failed\n");
        assert_eq!(seen("10%\r20%\rfailed"), "10%\n20%\nfailed\n");
        assert_eq!(
            seen("\u{1b}]0;title\u{7}You’ve hit “it”"),
            "You've hit \"it\"\n"
        );
    }

    #[test]
    fn cursor_movements_separate_words_and_lines() {
        assert_eq!(
            seen("Failed\u{1b}[1Cto\u{1b}[11Gconnect:\u{1b}[CENOTFOUND\u{1b}[2B\u{1b}[1Gbye"),
            "Failed to connect: ENOTFOUND\nbye\n"
        );
        assert_eq!(seen("\u{1b}[2K\u{1b}[1Ga\u{1b}[2K\u{1b}[1Gb"), "a\nb\n");
        assert_eq!(seen("\u{1b}[31mno\u{1b}[0mthing"), "nothing\n");
        assert_eq!(seen("\u{0}"), "\n");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(NormalizedText::new(b"a\xff\x00b").lines, "a\u{fffd}b\n");
    }

    #[test]
    fn start_and_end_of_a_huge_text_are_kept() {
        let huge = format!("first\n{}\nlast", "x".repeat(6 << 20));
        let screen = NormalizedText::new(huge.as_bytes());
        assert!(screen.lines.len() <= MAX_BYTES + 10);
        assert!(screen.lines.starts_with("first\n") && screen.lines.ends_with("\nlast\n"));
    }

    #[test]
    fn words_inside_a_path_or_url_are_distinguished() {
        let text =
            "cat: src/timeout.rs: gone, see https://x.org/rate-limits, timeout after \"dist/x.js\"";
        let screen = NormalizedText::new(text.as_bytes());
        let inside = |word: &str, from: usize| {
            let start = text[from..].find(word).unwrap() + from;
            screen.is_inside_a_path(&(start..start + word.len()))
        };
        assert!(inside("timeout", 0) && inside("rate-limit", 0));
        assert!(!inside("timeout", 30) && !inside("dist/", 0));
    }

    #[test]
    fn line_range_covers_whole_lines() {
        let screen = NormalizedText::new(b"one\ntwo three\nfour");
        assert_eq!(screen.line_range(&(4..7)), 4..13);
        assert_eq!(screen.line_range(&(8..16)), 4..18);
        assert_eq!(screen.line_number(15), 2);
    }
}

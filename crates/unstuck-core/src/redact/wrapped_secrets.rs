//! Secrets wrapped over several lines by a terminal, a mail or a log.
//!
//! The end of a long line and the beginning of the next are joined if no blank separates them, and searched as one.

use std::ops::Range;

use super::SecretSpan;

/// Minimum length of a line that may be wrapped.
const LONG_LINE: usize = 60;
/// Minimum number of secret characters at the end of a shorter line that may be wrapped.
const LONG_END: usize = 16;
/// Minimum number of characters on both sides of a secret.
const SHORTEST: usize = 16;
/// Minimum number of characters without a digit that are not two words.
const NO_WORDS: usize = 24;
/// Maximum number of characters examined.
const LONGEST: usize = 16 << 10;
/// Maximum indentation of a continuation line.
const DEEPEST: usize = 40;

/// Possible wrapped secrets, each on its own line.
#[derive(Debug, Default)]
pub(super) struct JoinedLines {
    pub(super) text: Vec<u8>,
    /// The start of each part, and its range in the original.
    parts: Vec<(usize, Range<usize>)>,
}

impl JoinedLines {
    /// Collects all possibly wrapped parts of a text.
    pub(super) fn from_text(text: &[u8]) -> Self {
        let mut joined = Self::default();
        for_each_chain(text, |chain| joined.add(text, chain));
        joined
    }

    fn add(&mut self, text: &[u8], chain: &[Range<usize>]) {
        let length: usize = chain.iter().map(Range::len).sum();
        if chain.len() < 2 || !(SHORTEST..=LONGEST).contains(&length) {
            return;
        }
        // Most adjacent line ends and beginnings are two words of wrapped prose.
        let has_digit = |part: &Range<usize>| text[part.clone()].iter().any(u8::is_ascii_digit);
        if length < NO_WORDS && !chain.iter().any(has_digit) {
            return;
        }
        for part in chain {
            self.parts.push((self.text.len(), part.clone()));
            self.text.extend_from_slice(&text[part.clone()]);
        }
        self.text.push(b'\n');
    }

    /// Adds a secret found in the joined text, if it was wrapped. The continuation of a secret that is also found
    /// without it is included only if it looks like a secret.
    pub(super) fn add_to(&self, secret: &SecretSpan, text: &[u8], found: &mut Vec<SecretSpan>) {
        let first = self
            .parts
            .partition_point(|(start, part)| start + part.len() <= secret.range.start);
        let touched = self.parts[first..]
            .iter()
            .take_while(|(start, _)| *start < secret.range.end);
        let ranges: Vec<Range<usize>> = touched
            .map(|(start, part)| {
                let from = secret.range.start.max(*start) - start;
                let to = secret.range.end.min(start + part.len()) - start;
                part.start + from..part.start + to
            })
            .collect();
        let [head, rest @ ..] = ranges.as_slice() else {
            return;
        };
        if rest.is_empty() {
            return;
        }
        let is_whole = found
            .iter()
            .any(|one| one.range.start <= head.start && one.range.end >= head.end);
        for range in &ranges {
            let goes_on = range == head || !is_whole || is_random(&text[range.clone()]);
            if !goes_on {
                return;
            }
            let (range, rank) = (range.clone(), secret.rank);
            found.push(SecretSpan { range, rank });
        }
    }
}

/// The end of a text that may be the first part of a wrapped secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PossiblyWrappedTail {
    /// The start of its first line.
    pub(super) line: usize,
    /// Its start within that line.
    pub(super) start: usize,
}

/// Returns the end of a text that may be wrapped; none if what follows does not matter.
pub(super) fn find_open_tail(text: &[u8]) -> Option<PossiblyWrappedTail> {
    for_each_chain(text, |_| {})
}

/// Calls back for each chain of adjacent line ends and beginnings. Returns the last one, if the following text may
/// belong to it.
fn for_each_chain(
    text: &[u8],
    mut call: impl FnMut(&[Range<usize>]),
) -> Option<PossiblyWrappedTail> {
    let mut chain: Vec<Range<usize>> = Vec::new();
    let (mut chain_from, mut start) = (0, 0);
    while start < text.len() {
        let rest = &text[start..];
        let length = memchr::memchr2(b'\n', b'\r', rest);
        let end = start + length.unwrap_or(rest.len());
        // Most lines of most outputs: too short to be wrapped, and not a continuation.
        if chain.is_empty() && end - start < LONG_END {
            start = end + 1;
            continue;
        }
        let tail = line_tail(text, start..end);
        let is_open = length.is_some() && is_open(start..end, &tail);
        let mut goes_on = false;
        if !chain.is_empty() {
            let head = line_head(text, start..end);
            if !head.is_empty() {
                goes_on = is_open && head.end == end;
                chain.push(head);
            }
            if !goes_on {
                call(&chain);
                chain.clear();
            }
        }
        if is_open && !goes_on {
            chain.push(tail);
            chain_from = start;
        }
        let is_pair = text.get(end..end + 2) == Some(b"\r\n");
        start = end + 1 + usize::from(is_pair);
    }
    if chain.len() > 1 {
        call(&chain);
    }
    chain.first().map(|first| PossiblyWrappedTail {
        line: chain_from,
        start: first.start,
    })
}

fn is_open(line: Range<usize>, tail: &Range<usize>) -> bool {
    tail.len() >= LONG_END || line.len() >= LONG_LINE && !tail.is_empty()
}

/// Returns the characters of a secret at the end of a line.
fn line_tail(text: &[u8], line: Range<usize>) -> Range<usize> {
    let bytes = text[line.clone()].iter().rev();
    let length = bytes.take_while(|byte| is_secret_byte(**byte)).count();
    line.end - length..line.end
}

/// Returns the characters of a secret at the beginning of a possibly indented line.
fn line_head(text: &[u8], line: Range<usize>) -> Range<usize> {
    let blanks = text[line.clone()].iter();
    let depth = blanks
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    if depth > DEEPEST {
        return line.start..line.start;
    }
    let start = line.start + depth;
    let bytes = text[start..line.end].iter();
    let length = bytes.take_while(|byte| is_secret_byte(**byte)).count();
    start..start + length
}

fn is_secret_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.=+/~:%$".contains(&byte)
}

/// Returns true if a text is not like a word: letters with digits, or capitals after lower case.
fn is_random(text: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let is_humped = text
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit) || is_humped || text.len() >= 24
}

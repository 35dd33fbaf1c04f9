//! Fast signatures of lines that ignore random differences (times, durations, ids, colors, spinners). Plain numbers are
//! significant, because a changing number shows progress.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

/// The construct a byte may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Nothing,
    Number,
    /// Purely visual: colors, box drawing, rewritten lines.
    Show,
}

const BEGINS: [ByteClass; 256] = {
    let mut table = [ByteClass::Nothing; 256];
    let mut digit = b'0';
    while digit <= b'9' {
        table[digit as usize] = ByteClass::Number;
        digit += 1;
    }
    table[ESCAPE as usize] = ByteClass::Show;
    table[b'\r' as usize] = ByteClass::Show;
    table[DRAWING as usize] = ByteClass::Show;
    table
};
const ESCAPE: u8 = 0x1b;
/// First byte of box-drawing characters, bars and spinners, which are three bytes long.
const DRAWING: u8 = 0xe2;

/// Minimum number of digits of a number too long to be a count.
const LONG_NUMBER: usize = 9;
/// Minimum length of an abbreviated commit hash.
const SHORT_HASH: usize = 7;
const LONG_ID: usize = 12;
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// Replaces a masked part in the hash.
const MASKED: u64 = 0x6d61_736b;

/// Additional masking for one kind of text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MaskingMode {
    /// Output of an agent: a growing percentage or size does not make a new line.
    Output,
    /// Result of a tool: a growing percentage or size is progress, and a word that follows an id label is an id,
    /// however short.
    Result,
}

/// Returns the signature of a line; 0 if it is blank.
pub(super) fn line_signature(line: &[u8]) -> u64 {
    masked_signature(line, MaskingMode::Output)
}

/// Markers around notes to the model that agents add to tool results.
const NOTE: (&[u8], &[u8]) = (b"<system-reminder>", b"</system-reminder>");

/// Returns the signature of a tool result: equal for two results that differ only in ids, times, durations, trailing
/// white space, and notes that an agent added for the model.
///
/// ```
/// use unstuck_core::loop_detection::result_signature;
///
/// let one = result_signature(b"Chunk ID: 27c99a\nWall time: 0.05 seconds\n2 tests failed");
/// assert_eq!(one, result_signature(b"Chunk ID: b04e17\nWall time: 1.31 seconds\n2 tests failed"));
/// assert_ne!(one, result_signature(b"Chunk ID: 27c99a\nWall time: 0.05 seconds\n1 test failed"));
/// ```
pub fn result_signature(text: &[u8]) -> u64 {
    let text = without_notes(text);
    let lines = text.split(|byte| *byte == b'\n');
    lines.fold(1, |hash, line| {
        match masked_signature(line, MaskingMode::Result) {
            0 => hash,
            line => hash.rotate_left(7) ^ line,
        }
    })
}

/// Returns a result without the agent's own notes; an unterminated note extends to the end.
fn without_notes(text: &[u8]) -> Cow<'_, [u8]> {
    let (open, close) = NOTE;
    let Some(mut at) = memmem::find(text, open) else {
        return Cow::Borrowed(text);
    };
    let (mut own, mut rest) = (Vec::with_capacity(text.len()), text);
    loop {
        own.extend_from_slice(&rest[..at]);
        let note = &rest[at..];
        rest = match memmem::find(note, close) {
            Some(end) => &note[end + close.len()..],
            None => &[],
        };
        match memmem::find(rest, open) {
            Some(next) => at = next,
            None => break,
        }
    }
    own.extend_from_slice(rest);
    Cow::Owned(own)
}

fn masked_signature(line: &[u8], of: MaskingMode) -> u64 {
    let line = line.strip_suffix(b"\r").unwrap_or(line).trim_ascii();
    plain_signature(line, of)
        .unwrap_or_else(|| plain_signature(&without_escapes(line), of).unwrap_or_default())
}

/// Returns the signature of a line, unless escapes must be removed first.
fn plain_signature(line: &[u8], of: MaskingMode) -> Option<u64> {
    let mut hash = LineHash::default();
    let mut from = 0;
    let mut at = 0;
    while let Some(step) = line[at..]
        .iter()
        .position(|byte| BEGINS[usize::from(*byte)] != ByteClass::Nothing)
    {
        at += step;
        if BEGINS[usize::from(line[at])] == ByteClass::Show {
            if line[at] != DRAWING || is_drawing(&line[at..]) {
                return None;
            }
            at += 1;
            continue;
        }
        match masked_range(line, from, at, of) {
            Ok(range) => {
                hash.text(&line[from..range.start]);
                hash.mix(MASKED);
                (from, at) = (range.end, range.end);
            }
            Err(end) => at = end,
        }
    }
    hash.text(&line[from..]);
    Some(hash.0)
}

/// Returns the range to mask around a digit, or where to continue if the number is significant.
fn masked_range(
    line: &[u8],
    from: usize,
    at: usize,
    of: MaskingMode,
) -> Result<Range<usize>, usize> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let start = at
        - line[from..at]
            .iter()
            .rev()
            .take_while(|b| is_word(b))
            .count();
    let end = at + line[at..].iter().take_while(|b| is_word(b)).count();
    if let Some(end) = uuid_end(line, start) {
        return Ok(start..end);
    }
    if of == MaskingMode::Result && is_after_id(&line[from..start]) {
        return Ok(start..end);
    }
    let word = &line[start..end];
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits < word.len() {
        return if is_id(word) || is_amount(word, digits, of) {
            Ok(start..end)
        } else {
            Err(end)
        };
    }
    let compound = line[end..]
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b":.,-+".contains(byte))
        .count();
    let joined = &line[end..end + compound];
    if joined.first().is_some_and(|byte| b":.,-".contains(byte))
        && joined.get(1).is_some_and(u8::is_ascii_digit)
    {
        let tail = joined
            .iter()
            .rev()
            .take_while(|byte| !byte.is_ascii_alphanumeric());
        return Ok(start..end + compound - tail.count());
    }
    let rest = &line[end..];
    let is_share = of == MaskingMode::Output && rest.first() == Some(&b'%');
    if digits >= LONG_NUMBER || is_share || follows_unit(rest, of) {
        Ok(start..end)
    } else {
        Err(end)
    }
}

/// Returns true if the text before a word labels it as an id: `Chunk ID: `, `<shellId: `, `session_id="`, `pid `.
fn is_after_id(before: &[u8]) -> bool {
    let parts = |byte: &u8| b" :=#\"'".contains(byte);
    let between = before.iter().rev().take_while(|byte| parts(byte)).count();
    if !(1..=4).contains(&between) {
        return false;
    }
    let before = &before[..before.len() - between];
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
    let word = before.iter().rev().take_while(is_letter).count();
    let word = &before[before.len() - word..];
    let is_own_word = ["id", "uuid", "guid", "pid"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    // The last part of a name such as `shellId`, but not that of `valid`.
    is_own_word || word.ends_with(b"Id") || word.ends_with(b"ID") || word.ends_with(b"Uuid")
}

fn follows_unit(rest: &[u8], of: MaskingMode) -> bool {
    let Some((b' ', rest)) = rest.split_first() else {
        return false;
    };
    let len = rest
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    is_unit(&rest[..len], of)
}

/// Returns true if a number before this word is a duration, or a size if sizes are masked too.
fn is_unit(word: &[u8], of: MaskingMode) -> bool {
    let mut lower = [0; 8];
    let Some(lower) = lower.get_mut(..word.len()) else {
        return false;
    };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    matches!(
        &*lower,
        b"ns"
            | b"us"
            | b"ms"
            | b"s"
            | b"sec"
            | b"secs"
            | b"second"
            | b"seconds"
            | b"m"
            | b"min"
            | b"mins"
            | b"minute"
            | b"minutes"
            | b"h"
            | b"hr"
            | b"hour"
            | b"hours"
    ) || of == MaskingMode::Output && is_size(lower)
}

fn is_size(word: &[u8]) -> bool {
    matches!(
        word,
        b"b" | b"kb" | b"mb" | b"gb" | b"kib" | b"mib" | b"gib" | b"k" | b"bytes"
    )
}

/// Returns true if a word that begins with digits is a duration, a size or a time: `3s`, `1h5m`, `12kB`, `15T10`.
fn is_amount(word: &[u8], digits: usize, of: MaskingMode) -> bool {
    if digits == 0 {
        return false;
    }
    let mut rest = word;
    while !rest.is_empty() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let after = &rest[digits..];
        let unit = after
            .iter()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        if digits == 0
            || !(is_unit(&after[..unit], of) || matches!(&after[..unit], b"T" | b"Z" | b""))
        {
            return false;
        }
        rest = &after[unit..];
    }
    true
}

/// Returns true if a word with digits is an id: a hash, an address, a random name.
fn is_id(word: &[u8]) -> bool {
    if let Some(hex) = word.strip_prefix(b"0x") {
        return hex.iter().all(u8::is_ascii_hexdigit);
    }
    let changes = word
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
        .count();
    (word.len() >= SHORT_HASH && word.iter().all(u8::is_ascii_hexdigit))
        || (word.len() >= LONG_ID && changes >= 3)
}

fn uuid_end(line: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    for (number, len) in UUID.iter().enumerate() {
        if number > 0 {
            if line.get(at) != Some(&b'-') {
                return None;
            }
            at += 1;
        }
        let group = line.get(at..at + len)?;
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        at += len;
    }
    Some(at)
}

/// Returns true for box-drawing characters, blocks and braille dots: U+2500 to U+25FF and U+2800 to U+28FF.
fn is_drawing(text: &[u8]) -> bool {
    matches!(text, [0xe2, 0x94..=0x97 | 0xa0..=0xa3, _, ..])
}

/// Returns the length of a terminal escape sequence.
fn escape_len(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'[') => {
            let inner = text[2..]
                .iter()
                .take_while(|byte| (0x20..0x40).contains(*byte));
            2 + inner.count() + 1
        }
        Some(_) => 2,
        None => 1,
    }
}

/// Returns a line without escape sequences and drawings; of a rewritten line only the final text.
fn without_escapes(line: &[u8]) -> Vec<u8> {
    let line = line
        .rsplit(|byte| *byte == b'\r')
        .next()
        .unwrap_or_default();
    let mut plain = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        at += match *byte {
            ESCAPE => escape_len(&line[at..]),
            DRAWING if is_drawing(&line[at..]) => 3,
            byte => {
                plain.push(byte);
                1
            }
        };
    }
    plain.trim_ascii().to_vec()
}

/// Returns a line as it appears on a screen.
pub(super) fn visible_text(line: &[u8]) -> String {
    let plain = without_escapes(line.strip_suffix(b"\r").unwrap_or(line));
    let text = String::from_utf8_lossy(&plain);
    text.chars().filter(|c| !c.is_control()).collect()
}

/// A fast hash, eight bytes at a time; never leaves the process. Leading and trailing blanks are ignored.
#[derive(Default)]
struct LineHash(u64);

impl LineHash {
    fn text(&mut self, text: &[u8]) {
        let text = text.trim_ascii();
        if text.is_empty() {
            return;
        }
        let (words, rest) = text.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last) ^ (text.len() as u64) << 56);
    }

    fn mix(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95) | 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_random_differences_have_the_same_signature() {
        for (one, other) in [
            ("done in 312 ms", "done in 4 ms"),
            ("done in 0.31s", "done in 12.7s"),
            ("[10:02:45] go", "[23:59:01] go"),
            ("2026-11-15T10:02:45.123Z go", "2027-01-01T00:00:00.000Z go"),
            ("took 1m30s", "took 2m5s"),
            (
                "id 550e8400-e29b-41d4-a716-446655440000 x",
                "id 123e4567-e89b-12d3-a456-426614174000 x",
            ),
            ("commit 6dcddb9 x", "commit 0a1b2c3 x"),
            ("at 0x7f1c x", "at 0x88ff01 x"),
            (
                "request req_011CSNw2abc failed",
                "request req_099ZZa8b7c6 failed",
            ),
            ("45% of all", "46% of all"),
            ("\u{1b}[31merror\u{1b}[0m: no", "error: no"),
            ("⠋ thinking", "⠙ thinking"),
            ("10%\r20%\rdone", "done"),
            ("text\r", "text"),
        ] {
            assert_eq!(
                line_signature(one.as_bytes()),
                line_signature(other.as_bytes()),
                "{one} / {other}"
            );
        }
    }

    #[test]
    fn progress_changes_the_signature() {
        for (one, other) in [
            ("ok 1", "ok 2"),
            ("ok 1 - adds", "ok 2 - adds"),
            ("test_12 passed", "test_13 passed"),
            ("Compiling serde v1.0.1", "Compiling toml v1.0.1"),
            ("3 failed", "2 failed"),
            ("a b", "ab"),
            ("abcdefgh", "abcdefgi"),
            ("file10.rs", "file11.rs"),
        ] {
            assert_ne!(
                line_signature(one.as_bytes()),
                line_signature(other.as_bytes()),
                "{one} / {other}"
            );
        }
        assert_eq!(line_signature(b"  \t "), 0);
    }

    #[test]
    fn results_that_differ_in_ids_only_have_the_same_signature() {
        for (one, other) in [
            ("Chunk ID: 27c99a\nok", "Chunk ID: b04e17\nok"),
            (
                "done\n<shellId: 17 completed>",
                "done\n<shellId: 18 completed>",
            ),
            (
                "running with session ID 4711",
                "running with session ID 4712",
            ),
            ("{\"request_id\": \"1a\"}", "{\"request_id\": \"2b\"}"),
            ("[pid 311] x", "[pid 9] x"),
            ("took 3 s", "took 45 s"),
            (
                "green\n\n<system-reminder>\n<total_tokens>14980322 tokens left</total_tokens>\n</system-reminder>",
                "green\n\n<system-reminder>\n<total_tokens>14980289 tokens left</total_tokens>\n</system-reminder>",
            ),
            ("<system-reminder>1</system-reminder>ok", "ok"),
        ] {
            let (one_is, other_is) = (
                result_signature(one.as_bytes()),
                result_signature(other.as_bytes()),
            );
            assert_eq!(one_is, other_is, "{one} / {other}");
        }
        for (one, other) in [
            ("ok 1", "ok 2"),
            ("45% of all", "46% of all"),
            ("12 kB sent", "13 kB sent"),
            ("valid: 3", "valid: 4"),
            ("2 failed", "1 failed"),
            ("a\nb", "b\na"),
            (
                "<system-reminder>x</system-reminder>1 failed",
                "<system-reminder>x</system-reminder>2 failed",
            ),
        ] {
            let (one_is, other_is) = (
                result_signature(one.as_bytes()),
                result_signature(other.as_bytes()),
            );
            assert_ne!(one_is, other_is, "{one} / {other}");
        }
    }

    #[test]
    fn visible_text_is_what_appears_on_the_screen() {
        assert_eq!(
            visible_text(b"\x1b[1m? \x1b[0mOverwrite\x1b[K \r"),
            "? Overwrite"
        );
        assert_eq!(visible_text(b"10%\r20%"), "20%");
    }
}

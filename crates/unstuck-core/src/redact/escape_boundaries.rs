//! Widens a range so that it does not split a character or an escape such as `\n` or `\u00e9`.
//!
//! Serialized JSON must still be JSON after part of a string was replaced. In other texts, at most a backslash or the
//! character after it is replaced as well.

use std::ops::Range;

/// Returns the range, widened where it would split something.
pub(super) fn widen_to_escapes(text: &[u8], range: Range<usize>) -> Range<usize> {
    let start = escape_start(text, range.start).unwrap_or(range.start);
    let mut start = start.min(range.start);
    while is_continuation(text, start) && start > 0 {
        start -= 1;
    }
    let mut end = escape_end(text, range.end).unwrap_or(range.end);
    while is_continuation(text, end) {
        end += 1;
    }
    start..end
}

fn is_continuation(text: &[u8], at: usize) -> bool {
    text.get(at)
        .is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
}

/// Returns the start of the escape around a position.
fn escape_start(text: &[u8], at: usize) -> Option<usize> {
    let nearest = at.saturating_sub(5)..at;
    let start = nearest.rev().find(|start| text[*start] == b'\\')?;
    let escapes = backslashes_up_to(text, start) % 2 == 1;
    (escapes && start + escape_len(&text[start..]) > at).then_some(start)
}

/// Returns the end of the escape around a position.
fn escape_end(text: &[u8], at: usize) -> Option<usize> {
    let start = escape_start(text, at)?;
    Some((start + escape_len(&text[start..])).min(text.len()))
}

/// Returns the number of consecutive backslashes up to this one.
fn backslashes_up_to(text: &[u8], at: usize) -> usize {
    let run = text[..=at].iter().rev();
    run.take_while(|byte| **byte == b'\\').count()
}

fn escape_len(escape: &[u8]) -> usize {
    let digits = escape.iter().skip(2).take(4);
    match escape.get(1) {
        Some(b'u') => 2 + digits.take_while(|byte| byte.is_ascii_hexdigit()).count(),
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widened(text: &str, part: &str) -> String {
        let start = text.find(part).unwrap();
        let range = widen_to_escapes(text.as_bytes(), start..start + part.len());
        text[range].to_owned()
    }

    #[test]
    fn escape_is_redacted_as_a_whole() {
        assert_eq!(widened(r#"{"a":"x\nabc"}"#, "nabc"), r"\nabc");
        assert_eq!(widened(r#"{"a":"x\\nabc"}"#, "nabc"), "nabc");
        assert_eq!(widened(r#"{"a":"x\u00e9bc"}"#, "e9b"), r"\u00e9b");
        assert_eq!(widened(r#"{"a":"abc\"d"}"#, r"abc\"), r#"abc\""#);
        assert_eq!(widened(r#"{"a":"abc\u12"}"#, r"abc\u1"), r"abc\u12");
        assert_eq!(widened("plain abc here", "abc"), "abc");
    }

    #[test]
    fn character_is_redacted_as_a_whole() {
        let text = "aé€b".as_bytes();
        assert_eq!(widen_to_escapes(text, 2..4), 1..6);
    }
}

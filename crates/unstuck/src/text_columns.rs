//! Texts in terminal columns: measured by display width, not by the number of characters.

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthChar;

/// Returns the display width of a character; control characters must be removed before.
fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Returns the display width of a text; styles have no width.
pub(crate) fn width(text: &str) -> usize {
    let parts = strip_str(text);
    parts.flat_map(str::chars).map(char_width).sum()
}

/// Truncates a text to `columns`, with an ellipsis if something is omitted.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (kept, _) = split_at_width(text, columns.saturating_sub(1));
    match columns {
        0 => String::new(),
        _ => format!("{}…", kept.trim_end()),
    }
}

/// Fits a text and the facts after it into `room` columns: the text is truncated first, but not below `least` columns;
/// then facts are dropped from the end.
pub(crate) fn fit_with_facts(
    text: &str,
    facts: &[String],
    least: usize,
    room: Option<usize>,
) -> (String, String) {
    let behind = facts.concat();
    let Some(room) = room else {
        return (text.to_owned(), behind);
    };
    let left = room.saturating_sub(width(&behind));
    match facts.split_last() {
        Some((_, fewer)) if left < width(text).min(least) => {
            fit_with_facts(text, fewer, least, Some(room))
        }
        _ => (truncate(text, left), behind),
    }
}

/// Truncates the beginning of a text to fit `columns`, with an ellipsis if something is omitted.
pub(crate) fn truncate_start(text: &str, columns: usize) -> String {
    let mut rest = text;
    while width(rest) > columns.saturating_sub(1) {
        let mut characters = rest.chars();
        characters.next();
        rest = characters.as_str();
    }
    if rest.len() == text.len() {
        rest.to_owned()
    } else {
        format!("…{rest}")
    }
}

/// Pads or truncates a text to exactly `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let mut text = truncate(text, columns);
    let missing = columns.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// Wraps a text at spaces into lines of at most `columns`; longer words are split.
pub(crate) fn wrap_words(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for (at, word) in text.split(' ').enumerate() {
        let wide = width(word);
        let line = lines.last_mut().filter(|_| at > 0);
        match line {
            Some(line) if used + 1 + wide <= columns => {
                line.push(' ');
                used += 1;
            }
            Some(_) => {
                lines.push(String::new());
                used = 0;
            }
            None => {}
        }
        let mut pieces = wrap_anywhere(word, columns).into_iter();
        if let (Some(line), Some(first)) = (lines.last_mut(), pieces.next()) {
            line.push_str(&first);
            used += width(&first);
        }
        for piece in pieces {
            used = width(&piece);
            lines.push(piece);
        }
    }
    lines
}

/// Wraps a text at exactly `columns` without losing characters.
pub(crate) fn wrap_anywhere(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let (line, more) = split_at_width(rest, columns.max(2));
        lines.push(line.to_owned());
        rest = more;
        if rest.is_empty() {
            return lines;
        }
    }
}

/// Splits a text at the given display width.
fn split_at_width(text: &str, columns: usize) -> (&str, &str) {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += char_width(*c);
        used > columns
    });
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_the_display_width() {
        assert_eq!(width("日本 a"), 6);
        assert_eq!(truncate("日本語テキスト", 7), "日本語…");
        assert_eq!(truncate("abc", 3), "abc");
        assert_eq!(truncate("abcd", 3), "ab…");
        assert_eq!(pad("日本", 6), "日本  ");
        assert_eq!(truncate_start("abcdef", 4), "…def");
        assert_eq!(truncate_start("abc", 4), "abc");
    }

    #[test]
    fn facts_are_dropped_before_the_text_gets_too_short() {
        const COMMAND: &str = "claude -p 'fix the failing tests'";
        let fit = |room: Option<usize>| {
            let facts = [" timeout".to_owned(), "  ~/shop".to_owned()];
            let (command, facts) = fit_with_facts(COMMAND, &facts, 16, room);
            command + &facts
        };
        let whole = format!("{COMMAND} timeout  ~/shop");
        assert_eq!((fit(None), fit(Some(49))), (whole.clone(), whole));
        assert_eq!(fit(Some(36)), "claude -p 'fix the… timeout  ~/shop");
        assert_eq!(fit(Some(30)), "claude -p 'fix the fa… timeout");
        assert_eq!(fit(Some(20)), "claude -p 'fix the…");
        assert!((1..60).all(|room| width(&fit(Some(room))) <= room));
    }

    #[test]
    fn lines_wrap_at_spaces_and_long_words_are_split() {
        assert_eq!(wrap_words("one two three", 8), ["one two", "three"]);
        assert_eq!(
            wrap_words("a abcdefghij b", 4),
            ["a", "abcd", "efgh", "ij b"]
        );
        assert_eq!(wrap_words("日本語 日本", 5), ["日本", "語", "日本"]);
        assert_eq!(wrap_words("", 5), [""]);
    }

    #[test]
    fn wrapped_command_loses_no_characters() {
        let command = "rm -rf  node_modules && npm ci";
        let lines = wrap_anywhere(command, 7);
        assert!(lines.iter().all(|line| width(line) <= 7));
        assert_eq!(lines.concat(), command);
    }
}

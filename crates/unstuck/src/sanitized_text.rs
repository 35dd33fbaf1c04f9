//! Displays texts of agents and tools: on one line, truncated, and without control characters.

use anstream::adapter::strip_str;
use unstuck_core::recovery_plan::shell_quote;

/// Returns a text on one line of at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let plain = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c });
    let mut line = String::new();
    for c in plain {
        if c == ' ' && (line.is_empty() || line.ends_with(' ')) {
            continue;
        }
        push_printable(&mut line, c);
    }
    truncate(line.trim_end(), most)
}

/// Returns a command as a shell line of at most `most` characters.
pub(crate) fn command_line(words: &[String], most: usize) -> String {
    let words: Vec<_> = words.iter().map(|word| shell_quote(word)).collect();
    one_line(&words.join(" "), most)
}

/// Returns the last lines of a text, without trailing empty ones.
pub(crate) fn last_lines(text: &str, most: usize) -> Vec<String> {
    let lines: Vec<_> = text.trim_end().lines().collect();
    let from = lines.len().saturating_sub(most);
    let lines = lines.into_iter().skip(from);
    lines.map(plain_line).collect()
}

/// Returns a line without control characters.
pub(crate) fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => line.push(c),
            c => push_printable(&mut line, c),
        }
    }
    line
}

/// Wraps a text at spaces into lines of at most `columns`; all lines but the first are indented.
///
/// Styles have no width. A word that is too long for a line is not split, so that it can be copied.
pub(crate) fn wrap_words(text: &str, columns: usize, indent: usize) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut used = 0;
    for (at, word) in text.split(' ').enumerate() {
        let width = visible_width(word);
        if at > 0 && used > indent && used + 1 + width > columns {
            lines.push('\n');
            lines.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        } else if at > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += width;
    }
    lines
}

/// Returns the number of visible characters; styles have no width.
pub(crate) fn visible_width(text: &str) -> usize {
    strip_str(text).map(|part| part.chars().count()).sum()
}

/// Returns one line of agent output without control characters.
pub(crate) fn plain_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for c in strip_str(line).to_string().chars() {
        push_printable(&mut shown, if c.is_whitespace() { ' ' } else { c });
    }
    shown
}

/// Formats an amount of money with its sign, such as `+$0.14`.
pub(crate) fn signed_usd(usd: f64) -> String {
    let sign = if usd < 0.0 { '-' } else { '+' };
    format!("{sign}${:.2}", usd.abs())
}

fn push_printable(line: &mut String, c: char) {
    // Bidirectional and zero-width characters can disguise the text of a line.
    let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if c.is_control() || hidden {
        line.extend(c.escape_unicode());
    } else {
        line.push(c);
    }
}

/// Truncates a text to `most` characters, with an ellipsis if something is omitted.
pub(crate) fn truncate(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(one_line("a\x1b[2Jb\n\n  c", 80), "a\\u{1b}[2Jb c");
        assert_eq!(one_line("a\u{202e}b", 80), "a\\u{202e}b");
    }

    #[test]
    fn text_wraps_at_spaces_and_styles_have_no_width() {
        let text = "unstuck: \u{1b}[1mone\u{1b}[0m two three";
        assert_eq!(
            wrap_words(text, 16, 2),
            "unstuck: \u{1b}[1mone\u{1b}[0m two\n  three"
        );
        assert_eq!(
            wrap_words("  a muchtoolong b", 6, 2),
            "  a\n  muchtoolong\n  b"
        );
        assert_eq!(wrap_words(text, 80, 2), text);
    }

    #[test]
    fn command_can_be_copied_into_a_shell() {
        let words = ["claude", "-p", "fix it", ""].map(str::to_owned);
        assert_eq!(command_line(&words, 80), "claude -p 'fix it' ''");
        assert_eq!(command_line(&words, 13), "claude -p 'f…");
    }

    #[test]
    fn output_excerpt_keeps_indentation_without_control_characters() {
        let text = "one\n\n  \u{1b}[31mtwo\u{1b}[0m\n\tthree\u{202e}\n\n";
        assert_eq!(last_lines(text, 2), ["  two", " three\\u{202e}"]);
        assert_eq!(last_lines("", 2), [""; 0]);
    }

    #[test]
    fn money_has_its_sign_in_front() {
        assert_eq!(
            (signed_usd(0.142), signed_usd(-1.5)),
            ("+$0.14".into(), "-$1.50".into())
        );
    }

    #[test]
    fn long_line_is_truncated_with_an_ellipsis() {
        assert_eq!(one_line("abcdefgh", 5), "abcd…");
        assert_eq!(one_line("abcde", 5), "abcde");
    }
}

//! How texts of agents and tools are shown: on one line, cut, and without anything that a terminal would obey.

use anstream::adapter::strip_str;
use unstuck_core::planner::shell_quote;

/// A text on one line of at most so many characters.
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

/// A command as it could be typed into a shell, on one line of at most so many characters.
pub(crate) fn command_line(words: &[String], most: usize) -> String {
    let words: Vec<_> = words.iter().map(|word| shell_quote(word)).collect();
    one_line(&words.join(" "), most)
}

/// The last lines of a text, without the empty ones at its end.
pub(crate) fn last_lines(text: &str, most: usize) -> Vec<String> {
    let lines: Vec<_> = text.trim_end().lines().collect();
    let from = lines.len().saturating_sub(most);
    let lines = lines.into_iter().skip(from);
    lines.map(plain_line).collect()
}

/// A line as it is, without anything that a terminal would obey.
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

/// A text in lines of at most so many columns, broken at blanks; all lines but the first are indented.
///
/// Styles take up no columns. A word that is too long for a line stays in one piece, so that it can be copied.
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

/// How many characters of a text are seen: styles take up none.
pub(crate) fn visible_width(text: &str) -> usize {
    strip_str(text).map(|part| part.chars().count()).sum()
}

/// One line of what an agent wrote, as it is, without anything that a terminal would obey.
pub(crate) fn plain_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for c in strip_str(line).to_string().chars() {
        push_printable(&mut shown, if c.is_whitespace() { ' ' } else { c });
    }
    shown
}

/// An amount of money that is added or saved, such as `+$0.14`.
pub(crate) fn signed_usd(usd: f64) -> String {
    let sign = if usd < 0.0 { '-' } else { '+' };
    format!("{sign}${:.2}", usd.abs())
}

fn push_printable(line: &mut String, c: char) {
    // Marks of direction and width can make a line read as something else.
    let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if c.is_control() || hidden {
        line.extend(c.escape_unicode());
    } else {
        line.push(c);
    }
}

/// A text of at most so many characters, with a mark where something is missing.
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
    fn a_terminal_obeys_nothing_that_is_shown() {
        assert_eq!(one_line("a\x1b[2Jb\n\n  c", 80), "a\\u{1b}[2Jb c");
        assert_eq!(one_line("a\u{202e}b", 80), "a\\u{202e}b");
    }

    #[test]
    fn a_text_is_broken_at_blanks_and_styles_take_no_columns() {
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
    fn a_command_can_be_copied_into_a_shell() {
        let words = ["claude", "-p", "fix it", ""].map(str::to_owned);
        assert_eq!(command_line(&words, 80), "claude -p 'fix it' ''");
        assert_eq!(command_line(&words, 13), "claude -p 'f…");
    }

    #[test]
    fn the_end_of_an_output_keeps_its_indentation_and_commands_nothing() {
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
    fn a_long_line_is_cut_with_a_mark() {
        assert_eq!(one_line("abcdefgh", 5), "abcd…");
        assert_eq!(one_line("abcde", 5), "abcde");
    }
}

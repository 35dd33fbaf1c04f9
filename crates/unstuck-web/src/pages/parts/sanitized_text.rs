//! Displays texts of agents and tools: sanitized and truncated.
//!
//! HTML is escaped where texts are rendered. This module handles the rest: terminal escape sequences, bidirectional
//! control characters and endless lines.

use anstream::adapter::strip_str;
use maud::{Markup, html};
use unstuck_core::recovery_plan::shell_quote;

/// Maximum length of a line.
const MAX_LINE: usize = 2_000;

/// Maximum length of a text.
const MAX_TEXT: usize = 40_000;

/// Formats a text on one line of limited length.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    // Slightly more than is shown suffices to detect truncation.
    for c in byte_prefix(text, most.saturating_mul(4)).chars() {
        match c.is_whitespace() {
            true if line.is_empty() || line.ends_with(' ') => {}
            true => line.push(' '),
            false => push_visible(&mut line, c),
        }
    }
    truncated(line.trim_end(), most)
}

/// Formats a command with shell quoting, on one line of limited length.
pub(crate) fn command_line(words: &[String], most: usize) -> String {
    let quoted: Vec<_> = words
        .iter()
        .map(|word| shell_quote(byte_prefix(word, most * 4)))
        .collect();
    one_line(&quoted.join(" "), most)
}

/// Formats a text in lines; truncation is indicated with the number of missing characters.
pub(crate) fn lines(text: &str) -> String {
    let kept = byte_prefix(text, MAX_TEXT);
    let mut shown = String::with_capacity(kept.len());
    for line in strip_str(kept).to_string().lines() {
        let mut plain = String::new();
        for c in byte_prefix(line, MAX_LINE).chars() {
            match c {
                '\t' => plain.push(c),
                c => push_visible(&mut plain, c),
            }
        }
        shown.push_str(&plain);
        if line.len() > MAX_LINE {
            shown.push_str(&format!("… ({} characters)", line.chars().count()));
        }
        shown.push('\n');
    }
    if kept.len() < text.len() {
        shown.push_str(&format!("… ({} more bytes)\n", text.len() - kept.len()));
    }
    shown
}

/// Renders output in a box that can be scrolled with the keyboard.
pub(crate) fn output(label: &str, key: &str, text: &str) -> Markup {
    html! {
        pre class="output" tabindex="0" role="region" aria-label=(label) data-scroll=(key) { (lines(text)) }
    }
}

/// Returns the last part of a path.
pub(crate) fn directory_name(path: &str) -> &str {
    let name = path.trim_end_matches('/').rsplit('/').next();
    match name {
        Some(name) if !name.is_empty() => name,
        _ if path.is_empty() => "(no project)",
        _ => path,
    }
}

/// Percent-encodes a text for a URL.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut address = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                address.push(char::from(byte));
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address
}

/// Truncates a text to a number of characters, with an ellipsis.
pub(crate) fn truncated(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Returns a prefix of about this many bytes that ends at a character boundary.
fn byte_prefix(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn push_visible(line: &mut String, c: char) {
    // Characters that change direction or width can make a line read as something else.
    let hidden = matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if c.is_control() || hidden {
        line.extend(c.escape_unicode())
    } else {
        line.push(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misleading_characters_are_made_visible() {
        assert_eq!(one_line("a\u{202e}b\n\n c\0", 80), "a\\u{202e}b c\\u{0}");
        assert_eq!(
            lines("\u{1b}[31mred\u{1b}[0m\r\n\tb\u{2066}"),
            "red\n\tb\\u{2066}\n"
        );
    }

    #[test]
    fn endless_lines_are_truncated_with_a_note() {
        let long = "x".repeat(1_000_000);
        let shown = lines(&long);
        assert!(shown.len() < 3_000, "{}", shown.len());
        assert!(shown.contains("… ("), "{}", &shown[shown.len() - 60..]);
        assert_eq!(one_line(&long, 10), "xxxxxxxxx…");
    }

    #[test]
    fn truncation_keeps_characters_whole() {
        let text = "ä".repeat(MAX_TEXT);
        assert!(lines(&text).contains("more bytes"));
        assert_eq!(one_line("äöü", 2), "ä…");
    }

    #[test]
    fn project_is_named_after_its_directory() {
        assert_eq!(
            ["/home/me/shop/", "/", ""].map(directory_name),
            ["shop", "/", "(no project)"]
        );
    }

    #[test]
    fn url_parts_are_percent_encoded() {
        assert_eq!(percent_encoded("a b&c=\"/"), "a%20b%26c%3D%22%2F");
    }

    #[test]
    fn command_can_be_copied_into_a_shell() {
        let words = ["claude", "-p", "fix it", ""].map(str::to_owned);
        assert_eq!(command_line(&words, 80), "claude -p 'fix it' ''");
    }
}

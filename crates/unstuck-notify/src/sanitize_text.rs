//! Sanitizes foreign text for messages: shortened, and without terminal control characters.

/// Returns the text without control characters, shortened to a maximum number of characters.
pub(crate) fn sanitize(text: &str, most: usize) -> String {
    let kept = |c: &char| !c.is_control() || *c == '\n';
    let text: String = text.trim().chars().filter(kept).collect();
    truncate(&text, most)
}

/// Returns the first non-blank line.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    sanitize(line.unwrap_or_default(), most)
}

/// Shortens a text to a maximum number of characters, ending with `…` if anything was cut.
pub(crate) fn truncate(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated_and_control_characters_removed() {
        assert_eq!(sanitize("a\u{1b}[31mb\r\nc", 99), "a[31mb\nc");
        assert_eq!(sanitize("äöüß", 3), "äö…");
        assert_eq!(sanitize("äöüß", 4), "äöüß");
        assert_eq!(first_line("\n\n  first \nsecond", 9), "first");
    }
}

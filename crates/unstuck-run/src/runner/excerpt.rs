//! Excerpts of an output: its end, which usually has the cause.

/// Largest excerpt of each stream that an event keeps.
pub(super) const MAX_EXCERPT_BYTES: usize = 4000;

/// Returns the end of a text, cut at a line if there is one.
pub(super) fn tail_excerpt(text: &str, most: usize) -> String {
    let text = text.trim_end();
    let Some(from) = text.len().checked_sub(most) else {
        return text.to_owned();
    };
    let from = text.ceil_char_boundary(from);
    let cut = text[from..].find('\n').map_or(from, |line| from + line + 1);
    text[cut..].to_owned()
}

//! Warnings about questionable entries of `auto_approve`.

use super::hidden_characters::{find_hidden_in_command, trim_ascii_whitespace};
use super::safe_display::contains_secret;

/// Returns a warning about an entry, as the end of a sentence; none if there is no problem.
pub fn lint_entry(entry: &str) -> Option<&'static str> {
    if find_hidden_in_command(trim_ascii_whitespace(entry)).is_some() {
        return Some(
            "approves nothing: it contains an invisible character, which is never allowed in a proposal",
        );
    }
    contains_secret(entry).then_some(
        "contains what looks like a secret: move it to an environment variable and list that in env_keep",
    )
}

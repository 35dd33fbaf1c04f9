//! Warnings about questionable entries of `auto_approve`.

use super::charset::{find_hidden_in_command, trim_ascii_whitespace};
use super::sanitize::contains_secret;

/// Returns a warning about an entry, as the end of a sentence; none if there is no problem.
pub fn lint_entry(entry: &str) -> Option<&'static str> {
    if find_hidden_in_command(trim_ascii_whitespace(entry)).is_some() {
        return Some(
            "approves nothing: it contains a character that cannot be seen, and no proposal may",
        );
    }
    contains_secret(entry).then_some(
        "holds what looks like a secret: put it into the environment and name it in env_keep",
    )
}

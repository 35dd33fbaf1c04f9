//! What is wrong with an entry of `auto_approve` although it is one.

use super::charset::{find_hidden_in_command, trim_ascii_whitespace};
use super::sanitize::contains_secret;

/// What an owner should be told about an entry, as the end of a sentence; nothing where nothing is.
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

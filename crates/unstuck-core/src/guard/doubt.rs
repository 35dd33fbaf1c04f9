//! What is wrong with an entry of `auto_approve` although it is one.

use super::characters::{hidden_in_command, trimmed};
use super::show::holds_secret;

/// What an owner should be told about an entry, as the end of a sentence; nothing where nothing is.
pub fn doubt(entry: &str) -> Option<&'static str> {
    if hidden_in_command(trimmed(entry)).is_some() {
        return Some(
            "approves nothing: it contains a character that cannot be seen, and no proposal may",
        );
    }
    holds_secret(entry).then_some(
        "holds what looks like a secret: put it into the environment and name it in env_keep",
    )
}

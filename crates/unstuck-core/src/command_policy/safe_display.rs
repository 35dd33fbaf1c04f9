//! Makes texts of a proposal safe to display: nothing in them can mislead a terminal, a log or a reader.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use super::hidden_characters::is_hidden;
use crate::redact::Redactor;

/// Maximum number of characters displayed.
const MAX_CHARS: usize = 2000;

/// Returns a text on one line without secrets; invisible characters are escaped, such as `\n` and `\u{202e}`.
///
/// Output for HTML or tables must still be escaped for that format.
///
/// ```
/// use unstuck_core::command_policy::sanitize;
///
/// assert_eq!(sanitize("Größe\n\u{1b}[2J"), r"Größe\n\u{1b}[2J");
/// ```
pub fn sanitize(text: &str) -> String {
    let text = without_secrets(text);
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars();
    for c in characters.by_ref().take(MAX_CHARS) {
        push_escaped(&mut shown, c);
    }
    let more = characters.count();
    if more > 0 {
        // Writing to a string cannot fail.
        let _ = write!(shown, "… ({more} more characters)");
    }
    shown
}

/// Returns a command on one line, complete and without secrets; all non-ASCII characters are escaped, so that no letter
/// passes for another.
///
/// ```
/// use unstuck_core::command_policy::sanitize_command;
///
/// assert_eq!(sanitize_command("n\u{440}m install"), r"n\u{440}m install");
/// ```
pub fn sanitize_command(command: &str) -> String {
    let command = without_secrets(command);
    let mut shown = String::with_capacity(command.len());
    for c in command.chars() {
        if c.is_ascii() {
            push_escaped(&mut shown, c);
        } else {
            shown.extend(c.escape_unicode());
        }
    }
    shown
}

fn push_escaped(shown: &mut String, c: char) {
    match c {
        '\n' | '\t' | '\r' => shown.extend(c.escape_default()),
        c if is_hidden(c) => shown.extend(c.escape_unicode()),
        c => shown.push(c),
    }
}

static SECRETS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([]));

fn without_secrets(text: &str) -> Cow<'_, str> {
    SECRETS.redact(text)
}

/// Returns true if a text contains something that looks like a secret.
pub(super) fn contains_secret(text: &str) -> bool {
    SECRETS.contains_secret(text)
}

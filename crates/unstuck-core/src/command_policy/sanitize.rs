//! Texts of a proposal as they may be shown: nothing in them that a terminal, a log or an eye would take for something else.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use super::charset::is_hidden;
use crate::redact::Redactor;

/// More characters of one text than this are not shown.
const MAX_CHARS: usize = 2000;

/// A text on one line without secrets; what cannot be seen is spelled out, such as `\n` and `\u{202e}`.
///
/// Whoever puts it into a page or a table still has to escape it for that.
///
/// ```
/// use unstuck_core::command_policy::show;
///
/// assert_eq!(show("Größe\n\u{1b}[2J"), r"Größe\n\u{1b}[2J");
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

/// A command on one line, whole and without secrets; everything beyond ASCII is spelled out, so that no letter passes for another.
///
/// ```
/// use unstuck_core::command_policy::show_command;
///
/// assert_eq!(show_command("n\u{440}m install"), r"n\u{440}m install");
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

/// Whether there is something in a text that looks like a secret.
pub(super) fn contains_secret(text: &str) -> bool {
    SECRETS.contains_secret(text)
}

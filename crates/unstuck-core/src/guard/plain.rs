//! Plain commands: those that may run under `on_unknown = "allow"` although nobody listed them.

/// What keeps a command from being plain; nothing if it is.
pub(super) fn why_not_plain(command: &str) -> Option<String> {
    Some(format!("`{command}` is not known to be plain"))
}

//! The ids of conversations that an agent, or a request of it, reports. They become words of command lines and parts of
//! paths, and everything that an agent runs may print one.

/// The longest id.
const MAX_LEN: usize = 200;

/// Returns true if a reported text can be used as the id of a conversation: it is neither an option, nor a path, nor a
/// pattern.
///
/// ```
/// use unstuck_core::agent::is_conversation_id;
///
/// assert!(is_conversation_id("0b5a1f7e-1111-4222-8333-444455556666"));
/// assert!(!is_conversation_id("--dangerously-bypass-approvals-and-sandbox"));
/// assert!(!is_conversation_id("../../.ssh/id"));
/// ```
pub fn is_conversation_id(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=MAX_LEN).contains(&text.len())
        && text.bytes().all(is_allowed)
        && !text.starts_with(['-', '.'])
        && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_all_known_agents_are_accepted() {
        for id in [
            "11-22",
            "0b5a1f7e-1111-4222-8333-444455556666",
            "ses_4f3b2a1cffeXyZ",
            "20261115_3",
            "T-5a75057a-a40c-435f-bb7f-8483204bf648",
            "latest",
            "a:b.c",
            &"x".repeat(MAX_LEN),
        ] {
            assert!(is_conversation_id(id), "{id}");
        }
    }

    #[test]
    fn options_paths_and_patterns_are_no_ids() {
        for text in [
            "",
            "-",
            "--yolo",
            "-c",
            ".",
            ".ssh",
            "a..b",
            "../x",
            "a/b",
            "*",
            "a?",
            "[a]",
            "a b",
            "a\nb",
            "a\0",
            "$(id)",
            "a;b",
            "{id}",
            "ä",
            &"x".repeat(MAX_LEN + 1),
        ] {
            assert!(!is_conversation_id(text), "{text:?}");
        }
    }
}

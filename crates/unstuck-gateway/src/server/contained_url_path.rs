//! Ensures that the path of a request stays below the base URL of an upstream.

use std::borrow::Cow;

/// The number of nested encodings that are decoded; deeper ones are rejected.
const MAX_ENCODINGS: usize = 4;

/// Returns the path with single slashes; `None` if it could lead above its base, however a server on the way decodes
/// it: `..`, `.`, `%2e`, backslashes, parameters behind dots, control characters, also encoded more than once.
pub(crate) fn contained_path(path: &str) -> Option<Cow<'_, str>> {
    let mut plain = path.as_bytes().to_vec();
    for layer in 0.. {
        if !is_contained(&plain) {
            return None;
        }
        let decoded = percent_decode(&plain);
        if decoded == plain {
            break;
        }
        if layer == MAX_ENCODINGS {
            return None;
        }
        plain = decoded;
    }
    Some(single_slashes(path))
}

fn is_contained(path: &[u8]) -> bool {
    let is_step = |segment: &[u8]| {
        let name = segment.split(|byte| *byte == b';').next();
        matches!(name, Some(b"." | b".."))
    };
    let is_odd = |byte: &u8| *byte == b'\\' || byte.is_ascii_control();
    !path.iter().any(is_odd) && !path.split(|byte| *byte == b'/').any(is_step)
}

/// Removes one layer of percent-encoding.
fn percent_decode(path: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*path.get(at)?).to_digit(16);
    let mut plain = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = path.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    plain
}

/// Merges repeated slashes: base URLs often end with a slash that clients repeat.
fn single_slashes(path: &str) -> Cow<'_, str> {
    if !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let mut single = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter != '/' || !single.ends_with('/') {
            single.push(letter);
        }
    }
    Cow::Owned(single)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escaping_paths_are_rejected_in_every_encoding() {
        for path in [
            "/openai/v1/../../admin",
            "/openai/v1/..",
            "/openai/v1/./x",
            "/openai/v1/%2e%2e/%2E%2e/admin",
            "/openai/v1/.%2e/x",
            "/openai/v1/%252e%252e/x",
            "/openai/v1/%25252e%25252e/x",
            "/openai/v1/..%2fadmin",
            "/openai/v1/x%2f..%2fadmin",
            "/openai/v1/..\\admin",
            "/openai/v1/..%5cadmin",
            "/openai/v1/x%5c",
            "/openai/v1/..;a=b/admin",
            "/openai/v1/%00",
            "/openai/v1/x%0d%0ahost:evil",
            "/openai/v1/%2525252525252525252e",
        ] {
            assert_eq!(contained_path(path), None, "{path}");
        }
    }

    #[test]
    fn ordinary_paths_are_unchanged() {
        for path in [
            "/openai/v1/chat/completions",
            "/gemini/v1beta/models/gemini-2.5-pro:generateContent",
            "/openai/v1/models/ft%3Agpt-4o%3Aorg%3A%3Aabc",
            "/openai/v1/models/org%2Fname",
            "/openai/v1/files/...",
            "/openai/v1/files/..a",
            "/openai/v1/files/100%",
            "/openai/v1/files/%zz",
            "/anthropic/",
            "/",
            "",
        ] {
            assert_eq!(contained_path(path).as_deref(), Some(path));
        }
        let single = contained_path("//openai//v1///chat/completions//");
        assert_eq!(single.as_deref(), Some("/openai/v1/chat/completions/"));
    }

    proptest! {
        /// However a server decodes or joins it, the path never leads above its base.
        #[test]
        fn accepted_paths_never_escape(parts in prop::collection::vec("(\\.|%2e|%2E|%252e|/|%2f|%5c|%25|2e|a|;|\\\\){0,3}", 0..8)) {
            let path = format!("/{}", parts.concat());
            if let Some(passed) = contained_path(&path) {
                let mut plain = passed.as_bytes().to_vec();
                for _ in 0..8 {
                    let text = String::from_utf8_lossy(&plain).replace('\\', "/");
                    let mut depth = 0_i32;
                    for segment in text.split('/') {
                        match segment.split(';').next().unwrap() {
                            ".." => depth -= 1,
                            "" | "." => {}
                            _ => depth += 1,
                        }
                        prop_assert!(depth >= 0, "{path}: {text}");
                    }
                    plain = percent_decode(&plain);
                }
            }
        }
    }
}

//! Paths in a project: bytes that may not be text, and are escaped for display.

use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unstuck_core::command_policy::sanitize;

/// Maximum number of displayed characters of a line.
const MAX_SHOWN_CHARS: usize = 160;

/// A path relative to the root of a project; empty for the root itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct TreePath(Vec<u8>);

impl TreePath {
    pub(super) fn from_path(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }

    pub(super) fn from_bytes(path: &[u8]) -> Self {
        Self(path.to_vec())
    }

    pub(super) fn join(&self, name: &[u8]) -> Self {
        if self.0.is_empty() {
            return Self(name.to_vec());
        }
        Self([&self.0, b"/".as_slice(), name].concat())
    }

    /// Returns the parent directory and the name, or `None` for the root.
    pub(super) fn split(&self) -> Option<(Self, &[u8])> {
        if self.0.is_empty() {
            return None;
        }
        let slash = self.0.iter().rposition(|byte| *byte == b'/');
        Some(match slash {
            Some(at) => (Self(self.0[..at].to_vec()), &self.0[at + 1..]),
            None => (Self::default(), &self.0),
        })
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let parts = self.0.split(|byte| *byte == b'/');
        parts.filter(|part| !part.is_empty())
    }

    /// True if it is that path, or below it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(other.0.as_slice());
        other.0.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// Returns the path relative to an ancestor.
    pub(super) fn strip_ancestor(&self, other: &Self) -> Self {
        let rest = self.0.strip_prefix(other.0.as_slice()).unwrap_or(&self.0);
        Self(rest.strip_prefix(b"/").unwrap_or(rest).to_vec())
    }

    /// Returns the path for display: one line, no terminal control characters, and unambiguous.
    pub(super) fn display(&self) -> String {
        if self.0.is_empty() {
            return ".".to_owned();
        }
        display_bytes(&self.0)
    }
}

/// Returns a line of an agent for display: redacted, without terminal control characters, and truncated.
pub(super) fn display_line(line: &str) -> String {
    let begin: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    let mut shown = sanitize(&begin.replace('\t', "    "));
    if begin.len() < line.len() {
        shown.push('…');
    }
    shown
}

/// Returns bytes of an agent for display, escaped unless they are plain text.
fn display_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(&sanitize(&chunk.valid().replace('\\', "\\\\")));
        escape(chunk.invalid(), &mut text);
    }
    text
}

fn escape(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

impl Serialize for TreePath {
    /// Serializes readably where plain, and losslessly in any case.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(self.0.len());
        for byte in &self.0 {
            match byte {
                b'%' | 0..=0x1f | 0x7f.. => {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "%{byte:02x}");
                }
                byte => text.push(char::from(*byte)),
            }
        }
        to.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let broken = || serde::de::Error::custom(InvalidTreePath);
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes().iter().copied();
        while let Some(byte) = rest.next() {
            if byte != b'%' {
                bytes.push(byte);
                continue;
            }
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next()), digit(rest.next()));
            let (high, low) = (high.ok_or_else(broken)?, low.ok_or_else(broken)?);
            bytes.push(u8::try_from(high * 16 + low).map_err(|_| broken())?);
        }
        Ok(Self(bytes))
    }
}

/// A path that is not in our escaped form.
#[derive(Debug)]
struct InvalidTreePath;

impl fmt::Display for InvalidTreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a valid escaped path")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bytes: &[u8]) -> TreePath {
        TreePath(bytes.to_vec())
    }

    #[test]
    fn odd_paths_are_displayed_unambiguously_and_escaped() {
        assert_eq!(path("src/Grüße.rs".as_bytes()).display(), "src/Grüße.rs");
        assert_eq!(path(b"a\nb").display(), "a\\nb");
        assert_eq!(path(b"a\\nb").display(), "a\\\\nb");
        assert_eq!(path(b"a\xffb/c").display(), "a\\xffb/c");
        assert_eq!(path("x\u{202e}gpj".as_bytes()).display(), "x\\u{202e}gpj");
        assert_eq!(path(b"\x1b[2J").display(), "\\u{1b}[2J");
        assert_eq!(path(b"").display(), ".");
    }

    #[test]
    fn a_serialized_path_is_lossless() {
        for bytes in [b"a/b c".as_slice(), b"50%\n\xff\x7f", "ü".as_bytes(), b""] {
            let text = serde_json::to_string(&path(bytes)).unwrap();
            assert!(text.is_ascii(), "{text}");
            let read: TreePath = serde_json::from_str(&text).unwrap();
            assert_eq!(read, path(bytes));
        }
        assert!(serde_json::from_str::<TreePath>("\"%f\"").is_err());
    }

    #[test]
    fn a_path_is_within_its_ancestors_only() {
        assert!(path(b"a/b").is_within(&path(b"a")) && path(b"a").is_within(&path(b"a")));
        assert!(!path(b"ab").is_within(&path(b"a")) && path(b"ab").is_within(&path(b"")));
        assert_eq!(path(b"a/b/c").strip_ancestor(&path(b"a")), path(b"b/c"));
        assert_eq!(path(b"a/b").split(), Some((path(b"a"), b"b".as_slice())));
        assert_eq!(path(b"a").split(), Some((path(b""), b"a".as_slice())));
        assert_eq!(path(b"").split(), None);
    }
}

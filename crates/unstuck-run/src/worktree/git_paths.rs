//! Paths as git gives and takes them: bytes that need not be text.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The path that these bytes are.
pub(super) fn path_from_bytes(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A path for people and for JSON. What is not printable is escaped, so that two paths never look alike.
pub(super) fn display_path(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                letter if letter.is_control() => {
                    let mut utf8 = [0; 4];
                    escape(letter.encode_utf8(&mut utf8).as_bytes(), &mut text);
                }
                letter => text.push(letter),
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

fn escape(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        // Writing to a text cannot fail.
        let _ = write!(text, "\\{byte:03o}");
    }
}

/// A path on a line of its own, as git reads it: quoted if it has to be.
pub(super) fn quote_path(bytes: &[u8]) -> Vec<u8> {
    let odd = |byte: &u8| *byte < b' ' || matches!(byte, 0x7f | b'"' | b'\\');
    if !bytes.iter().any(odd) {
        return bytes.to_vec();
    }
    let mut line = vec![b'"'];
    for byte in bytes {
        if odd(byte) {
            line.extend(format!("\\{byte:03o}").bytes())
        } else {
            line.push(*byte)
        }
    }
    line.push(b'"');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_are_told_apart() {
        assert_eq!(display_path("src/Grüße.rs".as_bytes()), "src/Grüße.rs");
        assert_eq!(display_path(b"a\nb"), "a\\012b");
        assert_eq!(display_path(b"a\\012b"), "a\\\\012b");
        assert_eq!(display_path(b"a\xffb/c"), "a\\377b/c");
        assert_eq!(quote_path(b"a b"), b"a b");
        assert_eq!(quote_path(b"a\r"), b"\"a\\015\"");
        assert_eq!(quote_path(b"\"x\\"), b"\"\\042x\\134\"");
    }
}

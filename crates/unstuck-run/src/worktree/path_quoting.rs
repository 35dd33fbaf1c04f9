//! Paths as git reads and writes them: bytes that may not be UTF-8.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Converts bytes to a path.
pub(super) fn path_from_bytes(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Formats a path for humans and for JSON. Unprintable bytes are escaped, so that two paths never look the same.
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
        // Writing to a string cannot fail.
        let _ = write!(text, "\\{byte:03o}");
    }
}

/// Formats a path on its own line, as git reads it: quoted if necessary.
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
    fn unusual_paths_are_distinct() {
        assert_eq!(display_path("src/Grüße.rs".as_bytes()), "src/Grüße.rs");
        assert_eq!(display_path(b"a\nb"), "a\\012b");
        assert_eq!(display_path(b"a\\012b"), "a\\\\012b");
        assert_eq!(display_path(b"a\xffb/c"), "a\\377b/c");
        assert_eq!(quote_path(b"a b"), b"a b");
        assert_eq!(quote_path(b"a\r"), b"\"a\\015\"");
        assert_eq!(quote_path(b"\"x\\"), b"\"\\042x\\134\"");
    }
}

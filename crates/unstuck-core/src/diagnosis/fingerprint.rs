//! Recognizes repeated failures by masking the variable parts of their lines.

use std::borrow::Cow;
use std::hash::Hasher;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

use crate::failure::FailureKind;

/// Maximum length of a masked line.
const MAX_MASKED_LEN: usize = 300;
/// Maximum number of bytes of a line that are masked.
const MAX_MASKED_BYTES: usize = 4096;

/// A mask for one kind of variable text.
struct Mask {
    regex: &'static str,
    /// A match contains one of these bytes; empty means no restriction.
    required_bytes: &'static [u8],
    replacement: &'static str,
}

const fn mask(stands_in: &'static str, needs: &'static [u8], regex: &'static str) -> Mask {
    Mask {
        regex,
        required_bytes: needs,
        replacement: stands_in,
    }
}

/// The masks and their placeholders; the order matters, wider ones come first.
static MASKS: [Mask; 9] = [
    mask("<url>", b"/", r"https?://[^\s\x22'<>)]+"),
    mask(
        "<id>",
        b"-",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    mask(
        "<time>",
        b"-",
        r"\b\d{4}-\d\d-\d\d(?:[T _]\d\d[:_]\d\d(?:[:_]\d\d)?(?:[.,_]\d+)?(?:z\b|[+-]\d\d:?\d\d)?)?",
    ),
    mask(
        "<id>",
        b"_-",
        r"\b(?:req|msg|org|resp|toolu|call|run|proj|user|sess|gen|chatcmpl)[_-][a-z0-9_-]{3,}",
    ),
    mask("<id>", b"", r"\b(?:sha\d+[:-])?[0-9a-f]{12,}\b"),
    mask("<id>", b"x", r"\b0x[0-9a-f]+"),
    mask(
        "<path>",
        b"/\\",
        r"(?:[a-z]:)?[\\/][\w.@+~-]+(?:[\\/][\w.@+~-]+)*[\\/]?|(?:\.{1,2}|~|[\w.@+-]+)(?:[\\/][\w.@+~-]+)+",
    ),
    mask(
        "<name>",
        b"\"`'",
        r#""[^"]{1,200}"|`[^`]{1,200}`|'[^']{1,200}'"#,
    ),
    // Times of day, addresses with ports, lines with columns: they look alike.
    mask("<n>", b"", r"\d+(?:[.,:]\d+)*(?:\s?[ap]m\b)?"),
];

type CompiledMasks = [OnceLock<Option<Regex>>; MASKS.len()];

/// Masks for ASCII lines: nearly all lines are ASCII, and these regexes compile several times as fast.
static FOR_ASCII: CompiledMasks = [const { OnceLock::new() }; MASKS.len()];
static FOR_ALL: CompiledMasks = [const { OnceLock::new() }; MASKS.len()];

#[derive(Clone, Copy, PartialEq, Eq)]
enum RegexAlphabet {
    Ascii,
    All,
}

impl Mask {
    fn compile(&self, letters: RegexAlphabet) -> Option<Regex> {
        RegexBuilder::new(self.regex)
            .case_insensitive(true)
            .unicode(letters == RegexAlphabet::All)
            .build()
            .ok()
    }

    fn may_match(&self, text: &[u8]) -> bool {
        self.required_bytes.is_empty() || text.iter().any(|byte| self.required_bytes.contains(byte))
    }
}

/// Masks all variable parts of a text for display, truncated to this many characters.
///
/// ```
/// use unstuck_core::diagnosis::mask_text;
///
/// assert_eq!(mask_text("Fix  issue 17 in src/cart.rs", 200), "Fix issue <n> in <path>");
/// ```
pub fn mask_text(text: &str, longest: usize) -> String {
    let near = &text[..text.floor_char_boundary(MAX_MASKED_BYTES)];
    mask_all(near.to_owned()).chars().take(longest).collect()
}

/// Masks all variable parts of a line.
pub(crate) fn mask_line(line: &str) -> String {
    mask_all(line.to_lowercase())
}

fn mask_all(text: String) -> String {
    let mut text = text.into_bytes();
    let (letters, compiled) = if text.is_ascii() {
        (RegexAlphabet::Ascii, &FOR_ASCII)
    } else {
        (RegexAlphabet::All, &FOR_ALL)
    };
    for (mask, compiled) in MASKS.iter().zip(compiled) {
        if !mask.may_match(&text) {
            continue;
        }
        let regex = compiled.get_or_init(|| mask.compile(letters)).as_ref();
        let masked = regex.map(|regex| regex.replace_all(&text, mask.replacement.as_bytes()));
        if let Some(Cow::Owned(masked)) = masked {
            text = masked;
        }
    }
    let text = String::from_utf8_lossy(&text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Masks a line; of a very long one only the part after the byte offset. The cut must not depend on the length of the
/// variable parts.
fn mask_around(line: &str, at: usize) -> String {
    let near = &line[..line.floor_char_boundary(MAX_MASKED_BYTES)];
    let whole = mask_line(near);
    if near.len() == line.len() && whole.chars().count() <= MAX_MASKED_LEN {
        return whole;
    }
    let rest = &line[line.floor_char_boundary(at)..];
    let masked = mask_line(&rest[..rest.floor_char_boundary(MAX_MASKED_BYTES)]);
    masked.chars().take(MAX_MASKED_LEN).collect()
}

/// Returns the fingerprint of a failure: its kind, its reporter and the masked line around the byte offset.
pub(crate) fn fingerprint(kind: FailureKind, reporter: &str, line: &str, at: usize) -> String {
    let mut hash = FnvHasher::default();
    for part in [kind.name(), reporter, &mask_around(line, at)] {
        hash.write(part.as_bytes());
        hash.write(&[0]);
    }
    format!("{kind}:{:016x}", hash.0)
}

/// FNV-1a, because a fingerprint must be the same on every machine and in every version.
pub(crate) struct FnvHasher(u64);

impl Default for FnvHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for FnvHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_parts_are_masked() {
        for (line, masked) in [
            (
                "Rate limit reached for gpt-5.1 in organization org-AAA: Limit 30000, Used 22999. Try again in 11.054s",
                "rate limit reached for gpt-<n> in organization <id>: limit <n>, used <n>. try again in <n>s",
            ),
            (
                "open '/home/dev/p/web/config.yaml': No such file",
                "open <name>: no such file",
            ),
            (
                "cat: src/a.txt: No such file or directory",
                "cat: <path>: no such file or directory",
            ),
            (
                "2026-11-15T10:02:45Z ERROR at 0x7f: request req_011CSNw2 failed",
                "<time> error at <id>: request <id> failed",
            ),
            (
                "commit 6dcddb9f00aa1122 in C:\\src\\app",
                "commit <id> in <path>",
            ),
        ] {
            assert_eq!(mask_line(line), masked);
        }
    }

    #[test]
    fn masks_compile_and_treat_other_alphabets_alike() {
        for mask in &MASKS {
            assert!(
                mask.compile(RegexAlphabet::Ascii).is_some()
                    && mask.compile(RegexAlphabet::All).is_some()
            );
        }
        assert_eq!(
            mask_line("Datei „a/b.txt“ fehlt seit 10:30: 0x1F ≠ ٣"),
            "datei „<path>“ fehlt seit <n>: <id> ≠ <n>"
        );
    }

    #[test]
    fn repeated_failure_has_the_same_fingerprint_and_another_has_not() {
        let of = |line| fingerprint(FailureKind::FileNotFound, "cat", line, 0);
        assert_eq!(
            of("cat: a/b.txt: No such file or directory"),
            of("cat: c/d/e.txt: No such file or directory")
        );
        assert_ne!(
            of("cat: a/b.txt: No such file or directory"),
            of("cannot open a/b.txt")
        );
        // The same on every machine and in every version: stored fingerprints must still match.
        assert_eq!(of("x"), "file_not_found:0d5c4822c3be77fe");
    }
}

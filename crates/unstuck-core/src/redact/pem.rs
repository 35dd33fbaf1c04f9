//! Private keys that span many lines.

use super::SecretSpan;
use super::built_in_secret_patterns::SecretPatternFile;
use super::marker;

/// Number of lines without key material that end a key whose last line is missing.
const MAX_NON_KEY_LINES: u8 = 3;
/// Minimum length of a run of base64 digits that is part of a key.
const MIN_KEY_RUN: usize = 16;

/// Tracks whether the current line is inside a private key.
#[derive(Debug, Clone, Default)]
pub(super) struct PemTracker {
    /// Number of further lines without key material before the key ends; none outside a key.
    lines_left: Option<u8>,
}

impl PemTracker {
    pub(super) fn is_inside(&self) -> bool {
        self.lines_left.is_some()
    }

    /// Adds the lines of private keys.
    pub(super) fn find_key_lines(&mut self, text: &[u8], found: &mut Vec<SecretSpan>) {
        let rank = SecretPatternFile::built_in().rank("private_key");
        let mut start = 0;
        for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
            if let Some((from, to)) = self.key_range(line) {
                found.push(SecretSpan {
                    range: start + from..start + to,
                    rank,
                });
            }
            start += line.len() + 1;
        }
    }

    /// Returns the part of a line that belongs to a key.
    fn key_range(&mut self, line: &[u8]) -> Option<(usize, usize)> {
        if is_begin_line(line) {
            self.lines_left = Some(MAX_NON_KEY_LINES);
            return None;
        }
        let patience = self.lines_left?;
        if contains(line, b"-----END ") {
            self.lines_left = None;
            return None;
        }
        let part = longest_run(line);
        let is_body = part.is_some()
            || line.trim_ascii().is_empty()
            || !marker::find_markers(line).is_empty();
        self.lines_left = if is_body {
            Some(MAX_NON_KEY_LINES)
        } else {
            patience.checked_sub(1)
        };
        part
    }
}

/// Returns true if a private key begins on the next line.
fn is_begin_line(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    line.ends_with(b"-----") && contains(line, b"-----BEGIN ") && contains(line, b"PRIVATE KEY")
}

/// Returns the longest run of base64 in a line, if it is long, or the whole line unless it is a word.
fn longest_run(line: &[u8]) -> Option<(usize, usize)> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let (mut best, mut start) = ((0, 0), 0);
    for run in line.split(|byte| !is_digit(byte)) {
        if run.len() > best.1 - best.0 {
            best = (start, start + run.len());
        }
        start += run.len() + 1;
    }
    let run = &line[best.0..best.1];
    let is_word = run.iter().skip(1).all(u8::is_ascii_lowercase);
    let is_last = run.len() == line.trim_ascii().len() && !is_word;
    (run.len() >= MIN_KEY_RUN || is_last).then_some(best)
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

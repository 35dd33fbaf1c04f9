//! Measures how much prose a block of lines contains. Data, drawings, code and progress weigh nothing.

use std::collections::HashSet;

use super::line_signature::visible_text;
use super::loop_patterns::LoopPatterns;

/// Minimum number of words, and of different words, in a sentence.
const MIN_WORDS: usize = 4;
const MIN_DIFFERENT_WORDS: usize = 3;
/// Number of bytes that equal a word in scripts without blanks.
const BYTES_OF_A_WORD: usize = 6;

/// Returns the number of bytes in relevant sentences; 0 if a line reports progress.
pub(super) fn text_weight<'l>(lines: impl Iterator<Item = &'l [u8]>) -> usize {
    let known = &LoopPatterns::built_in().lines;
    let mut sum = 0;
    for line in lines {
        let line = visible_text(line);
        if known.progress.match_any(line.as_bytes()) {
            return 0;
        }
        if is_sentence(&line) && !known.harmless.match_any(line.as_bytes()) {
            sum += line.trim().len();
        }
    }
    sum
}

/// Returns true if a line is prose rather than data, code or a drawing.
fn is_sentence(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with(begins_data) || is_field_row(line) {
        return false;
    }
    let mut words = 0;
    let mut others = 0;
    let mut different = HashSet::new();
    let parts = |c: char| c.is_whitespace() || !c.is_ascii() && !c.is_alphanumeric() && c != '’';
    for token in line.split(parts).filter(|token| !token.is_empty()) {
        let core = token.trim_matches(|c: char| !c.is_alphanumeric());
        if core.len() >= 2
            && core
                .chars()
                .all(|c| c.is_alphabetic() || matches!(c, '\'' | '’' | '-'))
        {
            words += if core.is_ascii() {
                1
            } else {
                core.len().div_ceil(BYTES_OF_A_WORD)
            };
            different.insert(core);
        } else {
            others += 1;
        }
    }
    let many = different.len() >= MIN_DIFFERENT_WORDS || words >= 2 * MIN_WORDS;
    words >= MIN_WORDS && many && words * 2 >= others * 3
}

/// Returns true if a line is a row of fields, with nothing after the separator.
fn is_field_row(line: &str) -> bool {
    let bytes = line.as_bytes();
    let parts = bytes.windows(2).filter(|pair| {
        pair[0] == b'\t' || matches!(pair[0], b',' | b';' | b'|') && !pair[1].is_ascii_whitespace()
    });
    parts.count() >= 2
}

/// Returns true if lines that begin with this character are data, code, a diff or a table.
fn begins_data(first: char) -> bool {
    matches!(
        first,
        '"' | '\''
            | '<'
            | '>'
            | '{'
            | '}'
            | '('
            | ')'
            | '|'
            | '+'
            | '-'
            | '='
            | '#'
            | '/'
            | '\\'
            | ','
            | ';'
            | ':'
            | '@'
            | '&'
            | '~'
            | '^'
            | '$'
            | '%'
            | '*'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_weight_and_data_has_none() {
        for line in [
            "I will now try to read the file again.",
            "Error: connect ECONNREFUSED, the database cannot be reached",
            "Lass mich das noch einmal versuchen, vielleicht geht es jetzt.",
            "让我再试一次，因为上一次没有成功，所以我要重新开始",
        ] {
            assert!(is_sentence(line), "{line}");
        }
        for line in [
            "",
            "{ \"a\": \"this is some text in it\" },",
            "+----+----+",
            "| the | quick | brown | fox |",
            "-  the same line is removed here",
            "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=",
            "0 0 0 0 1 1 1 1",
            "let x = foo(a, b, c);",
            "na na na na na na",
            "1,the bill is paid,open,EUR",
        ] {
            assert!(!is_sentence(line), "{line}");
        }
    }
}

//! The patterns of `data/secrets.toml`, each compiled when one of its literals is first found.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use super::SecretSpan;
use super::base64;
use super::built_in_secret_patterns::{SecretPatternFile, SecretPatternSpec};
use super::pem::PemTracker;
use super::secret_or_harmless::SecretValueCheck;
use crate::literal_index::LiteralIndex;

/// The patterns of secrets.
#[derive(Debug)]
pub(super) struct SecretPatterns {
    patterns: Vec<SecretPattern>,
    index: LiteralIndex,
    /// The meaning of each literal.
    literals: Vec<PatternLiteral>,
}

#[derive(Debug)]
struct SecretPattern {
    spec: &'static SecretPatternSpec,
    compiled: OnceLock<Vec<Regex>>,
}

/// A literal of a pattern.
#[derive(Debug)]
struct PatternLiteral {
    pattern: usize,
    text: String,
    meaning: LiteralMeaning,
}

/// The meaning of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LiteralMeaning {
    /// The pattern may match.
    MayMatch,
    /// The pattern may match if the case is equal.
    MayMatchInThisCase,
    /// The base64 encoding of a secret may begin here.
    BeginsInBase64,
}

/// Minimum length of a prefix in base64; shorter ones occur everywhere.
const SHORTEST_IN_BASE64: usize = 4;

impl SecretPatterns {
    pub(super) fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<SecretPatterns> =
            LazyLock::new(|| SecretPatterns::new(&SecretPatternFile::built_in().pattern));
        &BUILT_IN
    }

    fn new(specs: &'static [SecretPatternSpec]) -> Self {
        let mut literals = Vec::new();
        for (pattern, spec) in specs.iter().enumerate() {
            let meaning = if spec.ignores_case() {
                LiteralMeaning::MayMatch
            } else {
                LiteralMeaning::MayMatchInThisCase
            };
            literals.extend(spec.each_literal().map(|text| PatternLiteral {
                pattern,
                text,
                meaning,
            }));
            let plain = spec.literals.iter().filter(|text| !text.contains('['));
            let begins = plain
                .filter(|_| !spec.needs_context)
                .map(|text| base64::encoded_prefix(text))
                .filter(|begin| begin.len() >= SHORTEST_IN_BASE64);
            literals.extend(begins.map(|text| PatternLiteral {
                pattern,
                text,
                meaning: LiteralMeaning::BeginsInBase64,
            }));
        }
        let patterns = specs.iter().map(|spec| SecretPattern {
            spec,
            compiled: OnceLock::new(),
        });
        Self {
            index: LiteralIndex::new(literals.iter().map(|literal| literal.text.as_str())),
            literals,
            patterns: patterns.collect(),
        }
    }

    /// Adds every match of a pattern.
    pub(super) fn find(&self, text: &[u8], pem: &mut PemTracker, found: &mut Vec<SecretSpan>) {
        let seen = self.find_if(text, found, |_| true);
        // The first pattern is for private keys, which span many lines.
        if pem.is_inside() || seen.first() == Some(&true) {
            pem.find_key_lines(text, found);
        }
    }

    /// Adds every match of a pattern that needs no context.
    pub(super) fn find_unnamed(&self, text: &[u8], found: &mut Vec<SecretSpan>) {
        self.find_if(text, found, |spec| !spec.needs_context);
    }

    /// Adds the matches of the selected patterns. Returns which patterns were found.
    fn find_if(
        &self,
        text: &[u8],
        found: &mut Vec<SecretSpan>,
        is_wanted: impl Fn(&SecretPatternSpec) -> bool,
    ) -> Vec<bool> {
        let mut seen = vec![false; self.patterns.len()];
        self.index.for_each_match(text, |place| {
            let Some(literal) = self.literals.get(place.literal) else {
                return;
            };
            // The search is case-insensitive, most secrets are not.
            let is_same_case = text[place.start..place.end] == *literal.text.as_bytes();
            match literal.meaning {
                LiteralMeaning::MayMatch => seen[literal.pattern] = true,
                _ if !is_same_case => {}
                LiteralMeaning::MayMatchInThisCase => seen[literal.pattern] = true,
                LiteralMeaning::BeginsInBase64 => self.patterns[literal.pattern].decode(
                    text,
                    place.start,
                    literal.pattern + 1,
                    found,
                ),
            }
        });
        for (at, pattern) in self.patterns.iter().enumerate().filter(|(at, _)| seen[*at]) {
            if is_wanted(pattern.spec) {
                pattern.find(text, at + 1, found);
            }
        }
        seen
    }
}

impl SecretPattern {
    fn find(&self, text: &[u8], rank: usize, found: &mut Vec<SecretSpan>) {
        found.extend(self.places(text).map(|range| SecretSpan { range, rank }));
    }

    /// Adds the base64 that begins here, if it decodes to a secret.
    fn decode(&self, text: &[u8], start: usize, rank: usize, found: &mut Vec<SecretSpan>) {
        let before = text[..start].iter().rev();
        let mut before = before.copied();
        let (last, second) = (before.next(), before.next());
        let is_begin = !last.is_some_and(|byte| byte.is_ascii_alphanumeric())
            || second == Some(b'\\') && matches!(last, Some(b'n' | b'r' | b't'));
        if !is_begin {
            return;
        }
        let digits = text[start..].iter();
        let length = digits
            .take_while(|byte| base64::is_digit(**byte) || **byte == b'=')
            .count();
        let end = start + length;
        let plain = base64::decode(&text[start..end]).unwrap_or_default();
        if self.places(&plain).any(|place| place.start == 0) {
            let range = start..end;
            found.push(SecretSpan { range, rank });
        }
    }

    fn places(&self, text: &[u8]) -> impl Iterator<Item = Range<usize>> {
        self.compiled().iter().flat_map(move |regex| {
            regex.captures_iter(text).filter_map(|captures| {
                let secret = captures.name("secret").or_else(|| captures.get(0))?;
                let is_secret =
                    SecretValueCheck::built_in().is_secret(self.spec.value, secret.as_bytes());
                is_secret.then(|| secret.range())
            })
        })
    }

    fn compiled(&self) -> &[Regex] {
        self.compiled.get_or_init(|| {
            let compile =
                |regex: &String| compile(&SecretPatternFile::built_in().expand_parts(regex)).ok();
            self.spec.regex.iter().filter_map(compile).collect()
        })
    }
}

fn compile(regex: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(regex)
        .unicode(false)
        .multi_line(true)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_regex_compiles_and_every_pattern_has_literals() {
        let file = SecretPatternFile::built_in();
        for spec in &file.pattern {
            assert!(
                !spec.literals.is_empty() && !spec.regex.is_empty(),
                "{}",
                spec.id
            );
            for regex in &spec.regex {
                compile(&file.expand_parts(regex))
                    .unwrap_or_else(|error| panic!("{}: {error}", spec.id));
            }
        }
        assert_eq!(file.pattern[0].id, "private_key");
    }
}

//! The built-in patterns: each compiles, and none matches without one of its literals.

use proptest::strategy::{Strategy, ValueTree};
use proptest::string::bytes_regex_parsed;
use proptest::test_runner::TestRunner;
use regex_syntax::hir::{Capture, Hir, HirKind, Repetition};

use super::*;
use crate::diagnosis::normalized_text::NormalizedText;

#[test]
fn every_pattern_compiles() {
    Classifier::built_in().check().unwrap();
}

/// Simplifies an expression for generating strings: without `^`, `$` and `\b`, which only narrow the matches, and with
/// few repetitions.
fn simplified(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(_) => Hir::empty(),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(simplified(&repetition.sub)),
            max: Some(repetition.max.unwrap_or(u32::MAX).min(repetition.min + 2)),
            ..repetition.clone()
        }),
        HirKind::Capture(capture) => Hir::capture(Capture {
            sub: Box::new(simplified(&capture.sub)),
            ..capture.clone()
        }),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(simplified).collect()),
        HirKind::Alternation(ways) => Hir::alternation(ways.iter().map(simplified).collect()),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
    }
}

/// Returns strings that match a regular expression; none if none can be generated.
fn matches_of(source: &str, runner: &mut TestRunner) -> Vec<Vec<u8>> {
    let hir = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .unicode(false)
        .build()
        .parse(source)
        .unwrap();
    let Ok(strategy) = bytes_regex_parsed(&simplified(&hir)) else {
        return Vec::new();
    };
    (0..12)
        .filter_map(|_| strategy.new_tree(runner).ok())
        .map(|tree| tree.current())
        .collect()
}

#[test]
fn every_regex_match_contains_one_of_its_literals() {
    let mut runner = TestRunner::deterministic();
    let patterns = Classifier::built_in().pattern_index.patterns();
    let (mut tried, mut all) = (0, 0);
    for pattern in patterns {
        let Some(source) = pattern.source() else {
            continue;
        };
        let strings = matches_of(source, &mut runner);
        all += 1;
        tried += usize::from(!strings.is_empty());
        for string in strings {
            let text = string.to_ascii_lowercase();
            let has = |literal: &String| {
                let literal = literal.to_ascii_lowercase();
                text.windows(literal.len())
                    .any(|part| part == literal.as_bytes())
            };
            assert!(
                pattern.literals().iter().any(has),
                "`{}` matches /{source}/ and has none of {:?}",
                String::from_utf8_lossy(&string),
                pattern.literals()
            );
        }
    }
    assert!(all > 1000 && tried * 100 > all * 95, "{tried} of {all}");
}

/// A literal with two consecutive blanks or a typographic quote could never match.
#[test]
fn every_literal_survives_normalization() {
    for pattern in Classifier::built_in().pattern_index.patterns() {
        for literal in pattern.literals() {
            let framed = format!("x{literal}x");
            let screen = NormalizedText::new(framed.as_bytes());
            assert_eq!(screen.lines(), format!("{framed}\n"));
        }
    }
}

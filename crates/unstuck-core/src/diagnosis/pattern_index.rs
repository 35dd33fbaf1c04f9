//! Searches for the literals of all patterns at once, then for the patterns around them.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;

use super::fingerprint::FnvHasher;
use super::normalized_text::NormalizedText;
use super::pattern::{PatternError, TextPattern};
use super::prepared_failure::PreparedFailure;
use crate::knowledge::FailureTextSource;
use crate::literal_index::LiteralIndex;

/// The index of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PatternId(u32);

/// Maximum number of hits kept: those at the start and end of a text suffice.
const MAX_HITS: usize = 20_000;
/// Maximum number of hits tried per pattern, starting from the last one.
const MAX_TRIES: usize = 16;
/// The distance around a literal in which a pattern is tried on very long lines.
const MATCH_RADIUS: usize = 2048;
/// Minimum length of a line that may have been wrapped.
const MIN_WRAPPED_LINE: usize = 56;

/// Collects patterns for an index.
#[derive(Debug, Default)]
pub(crate) struct PatternIndexBuilder {
    patterns: Vec<TextPattern>,
}

impl PatternIndexBuilder {
    pub(crate) fn add(&mut self, source: &str) -> Result<PatternId, PatternError> {
        Ok(self.add_pattern(TextPattern::parse(source)?))
    }

    pub(crate) fn add_pattern(&mut self, pattern: TextPattern) -> PatternId {
        self.patterns.push(pattern);
        PatternId(u32::try_from(self.patterns.len() - 1).unwrap_or(u32::MAX))
    }

    pub(crate) fn build(self) -> PatternIndex {
        let mut literals: Vec<&str> = Vec::new();
        let mut index: HashMap<&str, usize, BuildHasherDefault<FnvHasher>> = HashMap::default();
        let mut owners: Vec<Vec<PatternId>> = Vec::new();
        for (number, pattern) in (0_u32..).zip(&self.patterns) {
            for literal in pattern.literals() {
                let at = *index.entry(literal).or_insert_with(|| {
                    literals.push(literal);
                    owners.push(Vec::new());
                    literals.len() - 1
                });
                owners[at].push(PatternId(number));
            }
        }
        let literals = LiteralIndex::new(literals);
        PatternIndex {
            patterns: self.patterns,
            literals,
            patterns_of_literal: owners,
        }
    }
}

/// A searchable index of all patterns.
#[derive(Debug)]
pub(crate) struct PatternIndex {
    patterns: Vec<TextPattern>,
    literals: LiteralIndex,
    patterns_of_literal: Vec<Vec<PatternId>>,
}

/// The position of a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextSpan {
    pub(crate) stream: FailureTextSource,
    pub(crate) range: Range<usize>,
}

#[derive(Debug, Clone, Copy)]
struct LiteralHit {
    pattern: PatternId,
    stream: FailureTextSource,
    start: usize,
    end: usize,
}

impl PatternIndex {
    /// Searches for every literal in every relevant text.
    pub(crate) fn scan<'a>(&'a self, view: &'a PreparedFailure<'a>) -> PatternMatches<'a> {
        let mut hits = Vec::new();
        for stream in FailureTextSource::ALL
            .into_iter()
            .filter(|stream| view.may_show_failure(*stream))
        {
            let Some(screen) = view.text(stream) else {
                continue;
            };
            self.literals.for_each_match(screen.flat(), |found| {
                for pattern in &self.patterns_of_literal[found.literal] {
                    hits.push(LiteralHit {
                        pattern: *pattern,
                        stream,
                        start: found.start,
                        end: found.end,
                    });
                }
                if hits.len() > MAX_HITS {
                    hits.drain(MAX_HITS / 10..MAX_HITS / 2);
                }
            });
        }
        // Hits of one pattern are in text order.
        hits.sort_unstable_by_key(|hit| (hit.pattern, hit.stream, hit.end, hit.start));
        PatternMatches::new(self, view, hits)
    }

    #[cfg(test)]
    pub(crate) fn patterns(&self) -> &[TextPattern] {
        &self.patterns
    }

    /// Compiles every regular expression, to find errors early.
    pub(crate) fn check(&self) -> Result<(), PatternError> {
        self.patterns.iter().try_for_each(TextPattern::check)
    }
}

/// The matches of the indexed patterns in a failure's texts.
pub(crate) struct PatternMatches<'a> {
    index: &'a PatternIndex,
    failure: &'a PreparedFailure<'a>,
    hits: Vec<LiteralHit>,
    /// The range of hits per pattern, since rules ask for many patterns that were not found.
    of_pattern: Vec<Range<u32>>,
}

impl<'a> PatternMatches<'a> {
    fn new(
        index: &'a PatternIndex,
        failure: &'a PreparedFailure<'a>,
        hits: Vec<LiteralHit>,
    ) -> Self {
        let mut of_pattern = vec![0..0; index.patterns.len()];
        for (at, hit) in (0_u32..).zip(&hits) {
            let range = &mut of_pattern[hit.pattern.0 as usize];
            if range.end == 0 {
                range.start = at;
            }
            range.end = at + 1;
        }
        Self {
            index,
            failure,
            hits,
            of_pattern,
        }
    }

    /// Returns the patterns whose literal was found.
    pub(crate) fn hit_patterns(&self) -> impl Iterator<Item = PatternId> + '_ {
        self.hits
            .chunk_by(|a, b| a.pattern == b.pattern)
            .map(|hits| hits[0].pattern)
    }

    fn hits(&self, pattern: PatternId) -> &[LiteralHit] {
        let range = &self.of_pattern[pattern.0 as usize];
        &self.hits[range.start as usize..range.end as usize]
    }

    /// Returns the matches outside these lines.
    pub(crate) fn excluding_lines(self, lines: &[TextSpan]) -> Self {
        let is_inside = |hit: &LiteralHit, line: &TextSpan| {
            hit.stream == line.stream && line.range.contains(&hit.start)
        };
        let mut hits = self.hits;
        hits.retain(|hit| !lines.iter().any(|line| is_inside(hit, line)));
        Self::new(self.index, self.failure, hits)
    }

    /// Returns the last match of a pattern in one of the streams.
    pub(crate) fn find(
        &self,
        pattern: PatternId,
        streams: &[FailureTextSource],
    ) -> Option<TextSpan> {
        self.match_spans(pattern, streams).next()
    }

    /// Returns every match of a pattern in one of the streams, starting from the last one.
    pub(crate) fn match_spans<'s>(
        &'s self,
        pattern: PatternId,
        streams: &'s [FailureTextSource],
    ) -> impl Iterator<Item = TextSpan> + 's {
        let tried = self
            .hits(pattern)
            .iter()
            .rev()
            .filter(|hit| streams.is_empty() || streams.contains(&hit.stream));
        let pattern = &self.index.patterns[pattern.0 as usize];
        let mut tried_before = None;
        tried.take(MAX_TRIES).filter_map(move |hit| {
            let screen = self.failure.text(hit.stream)?;
            let range = if pattern.is_literal() {
                hit.start..hit.end
            } else {
                let windows = match_windows(screen, hit);
                // A literal often occurs twice in one line.
                let trying = Some((hit.stream, windows));
                if tried_before == trying {
                    return None;
                }
                let range = find_within(pattern, screen, &trying.as_ref()?.1);
                tried_before = trying;
                range?
            };
            Some(TextSpan {
                stream: hit.stream,
                range,
            })
        })
    }

    /// Returns every match of a pattern, starting from the last one, with the requested named groups.
    pub(crate) fn captures(
        &self,
        pattern: PatternId,
        groups: &'static [&'static str],
    ) -> impl Iterator<Item = (TextSpan, Vec<(&'static str, String)>)> {
        self.hits(pattern)
            .iter()
            .rev()
            .take(MAX_TRIES)
            .filter_map(move |hit| {
                let screen = self.failure.text(hit.stream)?;
                let regex = &self.index.patterns[pattern.0 as usize];
                let (line, wrapped) = match_windows(screen, hit);
                let (range, named) = regex
                    .captures(screen.lines().as_bytes(), line, groups)
                    .or_else(|| regex.captures(screen.flat(), wrapped?, groups))?;
                let place = TextSpan {
                    stream: hit.stream,
                    range,
                };
                Some((place, named))
            })
    }
}

fn find_within(
    pattern: &TextPattern,
    screen: &NormalizedText,
    windows: &MatchWindows,
) -> Option<Range<usize>> {
    let (line, wrapped) = windows;
    pattern
        .find(screen.lines().as_bytes(), line.clone())
        .or_else(|| pattern.find(screen.flat(), wrapped.clone()?))
}

/// The line of a hit, and that line with the one that opened it and its possible continuation lines.
type MatchWindows = (Range<usize>, Option<Range<usize>>);

fn match_windows(screen: &NormalizedText, hit: &LiteralHit) -> MatchWindows {
    let lines = screen.line_range(&(hit.start..hit.end));
    let near = |range: Range<usize>| {
        range.start.max(hit.start.saturating_sub(MATCH_RADIUS))
            ..range.end.min(hit.end + MATCH_RADIUS)
    };
    let mut wrapped = lines.clone();
    for _ in 0..2 {
        let next = wrapped.end + 1;
        if wrapped.len() < MIN_WRAPPED_LINE || next >= screen.lines().len() {
            break;
        }
        wrapped.end = screen.line_range(&(next..next)).end;
    }
    // Text after an opening brace is on the next line.
    let before = &screen.lines()[..lines.start];
    if before.ends_with("{\n") {
        wrapped.start = screen.line_range(&(lines.start - 1..lines.start)).start;
    }
    let is_wrapped = wrapped != lines;
    (near(lines), is_wrapped.then(|| near(wrapped)))
}

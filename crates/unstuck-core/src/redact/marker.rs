//! Markers that replace secrets. Markers are never redacted again.

use std::ops::Range;

use super::KNOWN_SECRET_NAME;
use super::built_in_secret_patterns::SecretPatternFile;

const OPEN: &[u8] = b"[redacted:";

/// Returns the marker for a secret of that name.
pub(super) fn marker_for(name: &str) -> String {
    format!("[redacted:{name}]")
}

/// Returns the ranges of existing markers.
pub(super) fn find_markers(text: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(open) = find(&text[at..], OPEN) {
        let start = at + open;
        let name = start + OPEN.len();
        let end = text[name..].iter().position(|byte| *byte == b']');
        at = name;
        if let Some(end) = end.filter(|end| is_name(&text[name..name + end])) {
            at = name + end + 1;
            places.push(start..at);
        }
    }
    places
}

/// Returns the part of a range before the first marker it touches; none if nothing is left.
pub(super) fn before_first_marker(
    places: &[Range<usize>],
    range: Range<usize>,
) -> Option<Range<usize>> {
    let next = places.partition_point(|place| place.end <= range.start);
    let end = places
        .get(next)
        .map_or(range.end, |place| place.start.min(range.end));
    (range.start < end).then_some(range.start..end)
}

fn is_name(name: &[u8]) -> bool {
    name == KNOWN_SECRET_NAME.as_bytes() || SecretPatternFile::built_in().has_pattern(name)
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

//! Snapshots of what the program prints, without the parts that differ between runs.
//!
//! `INSTA_UPDATE=always cargo nextest run -p unstuck` rewrites them; review the difference.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::Place;

/// Asserts that a text is equal to its snapshot, apart from ids, times and paths.
macro_rules! assert_output {
    ($place:expr, $text:expr) => {
        insta::assert_snapshot!($crate::output_snapshot::redact(&$place, &$text))
    };
}
pub(crate) use assert_output;

/// The parts that differ between runs, with their replacements.
static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
    [
        (
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?".to_owned(),
            "[date]",
        ),
        (r"\d{4}-\d\d-\d\d".to_owned(), "[date]"),
        (format!(r"\b{month} \d{{1,2}}\b"), "[day]"),
        (r"(^|[^:\w])\d\d:\d\d(?::\d\d)?\b".to_owned(), "$1[clock]"),
        (r"\bjust now\b".to_owned(), "[time] ago"),
        (
            r"\b\d+(?:\.\d+)? (?:ms|s|min|h|d|days?)\b(?: \d+ (?:s|min|h)\b)?".to_owned(),
            "[time]",
        ),
        (r"\b1[6-9]\d{8}\b".to_owned(), "[epoch]"),
        // A run whose directory is gone.
        (r"\b(run |runs/)[0-9a-z]{10}\b".to_owned(), "$1[run]"),
        (
            r"\b(127\.0\.0\.1|localhost|\[::1\]):\d+".to_owned(),
            "$1:[port]",
        ),
        (r"\b(pid|process) \d+\b".to_owned(), "$1 [pid]"),
        (r"\b[0-9a-f]{16,64}\b".to_owned(), "[hash]"),
        // The padding of a column depends on the width of its content.
        (
            r"(\[(?:time|date|day|clock)\](?: ago)?) {2,}".to_owned(),
            "$1  ",
        ),
        (r" {2,}(\[(?:time|date|day|clock)\])".to_owned(), "  $1"),
    ]
    .map(|(pattern, replacement)| (Regex::new(&pattern).unwrap(), replacement))
    .into()
});

/// Returns a text in which ids of runs, times, ports, process ids, hashes and paths are replaced.
pub(crate) fn redact(place: &Place, text: &str) -> String {
    let mut text = text.replace(&place.folder.path().display().to_string(), "~");
    for (number, run) in runs_in_order(place, &text).iter().enumerate() {
        let id = Regex::new(&format!(r"\b{}(?:{})?", &run[..6], &run[6..])).unwrap();
        let name = format!("RUN{}", number + 1);
        text = id
            .replace_all(&text, |_: &Captures| name.clone())
            .into_owned();
    }
    for (pattern, replacement) in PATTERNS.iter() {
        text = pattern.replace_all(&text, *replacement).into_owned();
    }
    let lines = text.lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the ids of the runs that a text mentions, in order of their first occurrence.
fn runs_in_order(place: &Place, text: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(place.state().join("runs")) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: Vec<_> = names
        .filter(|name| name.len() > 6)
        .filter_map(|name| Some((text.find(&name[..6])?, name)))
        .collect();
    found.sort();
    found.into_iter().map(|(_, name)| name).collect()
}

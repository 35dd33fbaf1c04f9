//! Selects and formats the line shown as evidence, and the summary sentence of a diagnosis.

use super::lenient_json;
use super::pattern_index::TextSpan;
use super::prepared_failure::PreparedFailure;
use crate::knowledge::FailureTextSource;

/// Maximum length of an evidence line, in characters.
const MAX_LINE: usize = 300;

/// Maximum number of lines between the start of a message and a line that only points to it.
const MAX_LINES_BEFORE_POINTER: usize = 30;
/// Number of final lines that are searched for a failure.
const LAST_LINES: usize = 12;
/// Words in lines that report a failure.
const FAILURE_WORDS: [&str; 14] = [
    "error",
    "fail",
    "fatal",
    "cannot",
    "can't",
    "could not",
    "couldn't",
    "unable",
    "denied",
    "refused",
    "not found",
    "invalid",
    "exception",
    "panic",
];

/// Returns the matching line and the byte offset of the match, or else the last non-blank line.
///
/// A line that only points elsewhere is replaced by the first nearby line on which the kind was recognized.
pub(crate) fn evidence_line(
    place: Option<&TextSpan>,
    others: impl Iterator<Item = TextSpan>,
    pointers: &[TextSpan],
    view: &PreparedFailure<'_>,
) -> Option<(String, usize)> {
    let shown = match place {
        Some(place) if is_pointer(place, pointers) => better_span(place, others, pointers, view)
            .or_else(|| {
                Some(place.clone()).filter(|_| last_failure_line(view, pointers).is_none())
            }),
        place => place.cloned(),
    };
    let matched = shown.and_then(|place| {
        let screen = view.text(place.stream)?;
        let lines = screen.line_range(&place.range);
        let at = place.range.start.saturating_sub(lines.start);
        let line = screen.lines()[lines].replace('\n', " ");
        Some(json_message(&line).map_or((line, at), |message| (message, 0)))
    });
    matched.or_else(|| last_failure_line(view, pointers))
}

fn is_pointer(place: &TextSpan, pointers: &[TextSpan]) -> bool {
    pointers
        .iter()
        .any(|pointer| pointer.stream == place.stream && pointer.range.contains(&place.range.start))
}

/// Returns a better match of the same kind: the start of the message that the pointer ends, else the last match in its
/// stream, else one in another stream.
fn better_span(
    place: &TextSpan,
    others: impl Iterator<Item = TextSpan>,
    pointers: &[TextSpan],
    view: &PreparedFailure<'_>,
) -> Option<TextSpan> {
    let screen = view.text(place.stream)?;
    let line = screen.line_number(place.range.start);
    let others = others.filter(|other| !is_pointer(other, pointers));
    let (mut same, mut rest): (Vec<TextSpan>, Vec<TextSpan>) =
        others.partition(|other| other.stream == place.stream);
    same.sort_by_key(|other| other.range.start);
    rest.sort_by_key(|other| other.range.start);
    let is_near = |other: &&TextSpan| {
        screen.line_number(other.range.start) + MAX_LINES_BEFORE_POINTER >= line
    };
    let found = same.iter().find(is_near).or(same.last());
    found.or(rest.first()).cloned()
}

/// Returns the message in a line that is a JSON document, so that users need not read JSON.
fn json_message(line: &str) -> Option<String> {
    const MESSAGES: [&str; 6] = [
        "/error/message",
        "/response/error/message",
        "/message",
        "/result",
        "/error",
        "/detail",
    ];
    let payload = line.strip_prefix("data: ").unwrap_or(line);
    let document = lenient_json::find_documents(payload)
        .pop()
        .filter(|_| payload.starts_with('{'))?;
    let texts = MESSAGES
        .iter()
        .filter_map(|pointer| document.pointer(pointer)?.as_str());
    texts
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .find(|text| !text.is_empty())
}

/// Returns the last non-blank line that most likely reports a failure.
pub(crate) fn last_failure_line(
    view: &PreparedFailure<'_>,
    pointers: &[TextSpan],
) -> Option<(String, usize)> {
    let line = |stream| {
        let text = view.text(stream)?.lines();
        let mut end = text.len();
        let mut lines = Vec::new();
        for line in text.lines().rev() {
            let start = end.saturating_sub(line.len() + 1);
            let place = TextSpan {
                stream,
                range: start..end,
            };
            end = start;
            if !line.is_empty() && !is_pointer(&place, pointers) {
                lines.push(line);
            }
            if lines.len() == LAST_LINES {
                break;
            }
        }
        let telling = lines.iter().find(|line| mentions_failure(line));
        let line = telling.or(lines.first())?;
        Some((json_message(line).unwrap_or_else(|| (*line).to_owned()), 0))
    };
    line(FailureTextSource::Validation)
        .or_else(|| line(FailureTextSource::Stderr))
        .or_else(|| line(FailureTextSource::Body))
        .or_else(|| line(FailureTextSource::Stdout))
}

fn mentions_failure(line: &str) -> bool {
    let line = line.to_lowercase();
    FAILURE_WORDS.iter().any(|word| line.contains(word))
}

/// Returns the part of a very long line around the byte offset.
pub(crate) fn excerpt_around(line: &str, at: usize) -> String {
    if line.chars().count() <= MAX_LINE {
        return line.to_owned();
    }
    let before = line
        .char_indices()
        .map(|(index, _)| index)
        .take_while(|index| *index <= at)
        .count();
    let skip = before.saturating_sub(MAX_LINE / 3);
    let part: String = line.chars().skip(skip).take(MAX_LINE).collect();
    format!("{}{part}…", if skip > 0 { "…" } else { "" })
}

/// Returns a one-sentence summary for display.
pub(crate) fn summary_sentence(title: &str, reporter: &str, line: &str) -> String {
    let who = if reporter.is_empty() {
        String::new()
    } else {
        format!(" ({reporter})")
    };
    if line.is_empty() {
        format!("{title}{who}")
    } else {
        format!("{title}{who}: {line}")
    }
}

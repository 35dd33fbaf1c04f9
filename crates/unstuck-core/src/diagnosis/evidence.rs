//! What a diagnosis rests on, as a person reads it.

use super::automaton::Place;
use super::loose;
use super::view::View;
use crate::knowledge::Stream;

/// A line of evidence is cut to this many characters.
const MAX_LINE: usize = 300;

/// The line that matched and the byte at which it did, or else the last line that says anything.
pub(crate) fn line_at(place: Option<&Place>, view: &View<'_>) -> Option<(String, usize)> {
    let matched = place.and_then(|place| {
        let screen = view.screen(place.stream)?;
        let lines = screen.lines_of(&place.range);
        let at = place.range.start.saturating_sub(lines.start);
        let line = screen.lines()[lines].replace('\n', " ");
        Some(said_in(&line).map_or((line, at), |message| (message, 0)))
    });
    matched.or_else(|| last_line(view))
}

/// What a line says, if it is a JSON document: people should not have to read that.
fn said_in(line: &str) -> Option<String> {
    const MESSAGES: [&str; 6] = [
        "/error/message",
        "/response/error/message",
        "/message",
        "/result",
        "/error",
        "/detail",
    ];
    let payload = line.strip_prefix("data: ").unwrap_or(line);
    let document = loose::documents(payload)
        .pop()
        .filter(|_| payload.starts_with('{'))?;
    let texts = MESSAGES
        .iter()
        .filter_map(|pointer| document.pointer(pointer)?.as_str());
    texts
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .find(|text| !text.is_empty())
}

/// The last line that says anything, where it most likely tells of a failure.
pub(crate) fn last_line(view: &View<'_>) -> Option<(String, usize)> {
    let line = |stream| {
        view.screen(stream)?
            .lines()
            .lines()
            .rev()
            .find(|line| !line.is_empty())
            .map(|line| (said_in(line).unwrap_or_else(|| line.to_owned()), 0))
    };
    line(Stream::Validation)
        .or_else(|| line(Stream::Stderr))
        .or_else(|| line(Stream::Body))
        .or_else(|| line(Stream::Stdout))
}

/// The part of a very long line around the byte that matters.
pub(crate) fn around(line: &str, at: usize) -> String {
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

/// One sentence for a person.
pub(crate) fn message(title: &str, reporter: &str, line: &str) -> String {
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

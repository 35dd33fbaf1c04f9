//! What a diagnosis rests on, as a person reads it.

use super::automaton::Place;
use super::loose;
use super::view::View;
use crate::knowledge::Stream;

/// A line of evidence is cut to this many characters.
const MAX_LINE: usize = 300;

/// How far before a line that only points elsewhere the message may begin, in lines.
const NEAR: usize = 30;
/// Of how many lines at the end the one that tells of a failure is looked for.
const LAST: usize = 12;
/// What lines that tell of a failure contain.
const TELLING: [&str; 14] = [
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

/// The line that matched and the byte at which it did, or else the last line that says anything.
///
/// A line that only points elsewhere is passed over for the first of the others near it at which the kind was
/// recognised.
pub(crate) fn line_at(
    place: Option<&Place>,
    others: impl Iterator<Item = Place>,
    pointers: &[Place],
    view: &View<'_>,
) -> Option<(String, usize)> {
    let shown = match place {
        Some(place) if is_pointer(place, pointers) => better(place, others, pointers, view)
            .or_else(|| Some(place.clone()).filter(|_| last_line(view, pointers).is_none())),
        place => place.cloned(),
    };
    let matched = shown.and_then(|place| {
        let screen = view.screen(place.stream)?;
        let lines = screen.lines_of(&place.range);
        let at = place.range.start.saturating_sub(lines.start);
        let line = screen.lines()[lines].replace('\n', " ");
        Some(said_in(&line).map_or((line, at), |message| (message, 0)))
    });
    matched.or_else(|| last_line(view, pointers))
}

fn is_pointer(place: &Place, pointers: &[Place]) -> bool {
    pointers
        .iter()
        .any(|pointer| pointer.stream == place.stream && pointer.range.contains(&place.range.start))
}

/// Where else the kind was recognised: at the begin of what the pointer ends, else at the last place in its stream, else
/// in another one.
fn better(
    place: &Place,
    others: impl Iterator<Item = Place>,
    pointers: &[Place],
    view: &View<'_>,
) -> Option<Place> {
    let screen = view.screen(place.stream)?;
    let line = screen.line_number(place.range.start);
    let others = others.filter(|other| !is_pointer(other, pointers));
    let (mut same, mut rest): (Vec<Place>, Vec<Place>) =
        others.partition(|other| other.stream == place.stream);
    same.sort_by_key(|other| other.range.start);
    rest.sort_by_key(|other| other.range.start);
    let is_near = |other: &&Place| screen.line_number(other.range.start) + NEAR >= line;
    let found = same.iter().find(is_near).or(same.last());
    found.or(rest.first()).cloned()
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
pub(crate) fn last_line(view: &View<'_>, pointers: &[Place]) -> Option<(String, usize)> {
    let line = |stream| {
        let text = view.screen(stream)?.lines();
        let mut end = text.len();
        let mut lines = Vec::new();
        for line in text.lines().rev() {
            let start = end.saturating_sub(line.len() + 1);
            let place = Place {
                stream,
                range: start..end,
            };
            end = start;
            if !line.is_empty() && !is_pointer(&place, pointers) {
                lines.push(line);
            }
            if lines.len() == LAST {
                break;
            }
        }
        let telling = lines.iter().find(|line| tells_of_failure(line));
        let line = telling.or(lines.first())?;
        Some((said_in(line).unwrap_or_else(|| (*line).to_owned()), 0))
    };
    line(Stream::Validation)
        .or_else(|| line(Stream::Stderr))
        .or_else(|| line(Stream::Body))
        .or_else(|| line(Stream::Stdout))
}

fn tells_of_failure(line: &str) -> bool {
    let line = line.to_lowercase();
    TELLING.iter().any(|word| line.contains(word))
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

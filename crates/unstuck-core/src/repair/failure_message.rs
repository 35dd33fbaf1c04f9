//! The message of a failure: its text as seen on a screen, and the commands it advises.
//!
//! Messages are untrusted text. Values found here are only compared with the owner's entries and the project.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::diagnosis::NormalizedText;
use crate::failure::Failure;

/// Maximum number of bytes read from the end of each stream.
const MAX_TEXT_LEN: usize = 64 << 10;
/// Maximum number of words read of an advised command.
const MAX_COMMAND_WORDS: usize = 24;

/// The message of a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FailureMessage {
    /// The text, line by line.
    pub(super) text: String,
    /// The text after each advice to run something.
    advice: Vec<AdvisedCommand>,
}

/// A passage where a message advises a command; its first words may be the command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AdvisedCommand {
    words: Vec<String>,
    /// True if the words are the whole command, as they were quoted or on their own line.
    is_complete: bool,
}

impl FailureMessage {
    pub(super) fn from_failure(failure: &Failure) -> Self {
        let mut text = String::new();
        for stream in [&failure.stdout, &failure.stderr].into_iter().flatten() {
            let bytes = stream.bytes();
            let tail = &bytes[bytes.len().saturating_sub(MAX_TEXT_LEN)..];
            text.push_str(NormalizedText::new(tail).lines());
        }
        let advice = find_advised_commands(&text);
        Self { text, advice }
    }

    /// Returns the line that contains a position of the text.
    pub(super) fn line_at(&self, place: &Range<usize>) -> &str {
        let start = self.text[..place.start].rfind('\n').map_or(0, |at| at + 1);
        let rest = &self.text[start..];
        rest.split('\n').next().unwrap_or(rest).trim()
    }

    /// Returns true if the message advises exactly this command.
    pub(super) fn advises(&self, command: &str) -> bool {
        let words: Vec<&str> = command.split_whitespace().collect();
        self.advice.iter().any(|advice| advice.is_command(&words))
    }

    /// Returns true if the message advises removing this file.
    pub(super) fn advises_removing(&self, name: &str) -> bool {
        let mut lines = self.text.lines().filter(|line| line.contains(name));
        lines.any(|line| {
            let line = line.to_ascii_lowercase();
            ["remov", "delet"].iter().any(|word| line.contains(word))
        })
    }

    /// Returns the advised commands whose end is clear.
    pub(super) fn advised_commands(&self) -> impl Iterator<Item = String> {
        self.advice.iter().filter_map(AdvisedCommand::command)
    }
}

impl AdvisedCommand {
    /// Returns the command, up to where it clearly ends.
    fn command(&self) -> Option<String> {
        if self.is_complete {
            return Some(self.words.join(" "));
        }
        let count = self.words.len();
        let ends = |length: &usize| {
            let (first, rest) = self.words.split_at(*length);
            first
                .last()
                .is_some_and(|last| rest.is_empty() || ends_a_command(last, rest))
        };
        let length = (1..=count).find(ends)?;
        let text = self.words.get(..length)?.join(" ");
        Some(text.trim_end_matches(ENDS).to_owned())
    }

    fn is_command(&self, command: &[&str]) -> bool {
        let length = command.len();
        if length == 0 || self.words.len() < length {
            return false;
        }
        let (first, rest) = self.words.split_at(length);
        let same = |(one, other): (&String, &&str)| is_same_word(one, other);
        let ends =
            rest.is_empty() || (!self.is_complete && ends_a_command(&first[length - 1], rest));
        ends && first.iter().zip(command).all(same)
    }
}

const ENDS: [char; 7] = ['.', ',', ';', ':', ')', '!', '?'];

fn is_same_word(word: &str, wanted: &str) -> bool {
    word == wanted || word.trim_end_matches(ENDS) == wanted
}

/// Returns true if a command may end with this word, given the words that follow.
fn ends_a_command(last: &str, rest: &[String]) -> bool {
    const AFTER: [&str; 30] = [
        "to",
        "and",
        "or",
        "then",
        "before",
        "first",
        "again",
        "in",
        "if",
        "for",
        "when",
        "until",
        "manually",
        "on",
        "as",
        "so",
        "which",
        "from",
        "once",
        "after",
        "but",
        "at",
        "yourself",
        "afterwards",
        "locally",
        "instead",
        "(",
        "-",
        "#",
        "&&",
    ];
    let next = rest.first().map_or("", String::as_str);
    let next = next.trim_end_matches(ENDS);
    last.ends_with([',', ';', ')', '.', ':']) || AFTER.contains(&next) || next.starts_with('(')
}

/// Words after which a message names a command.
static VERB: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let verbs =
        r"run|running|re-?run|try|execute|executing|use|using|with|via|call|invoke|type|issue|do";
    let filler = r"(?: the following| this| the)?(?: commands?| script)?:?";
    Regex::new(&format!(r#"(?i)\b(?:{verbs})\b{filler}\s{{1,3}}"#)).ok()
});

/// Words before such a verb that make it something other than advice.
static NOT_ADVICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:\bnot|n't|\bnever|\bwithout|\bwhile|\bwhen|\bwas|\bwere|\berror|\bfail(?:ed|ure)?|\bunable|\bcannot|\bcould|\binstead of|\bafter|\bavoid|\bstop|\bexpected|\bbut|\byou)(?: to| ever)?\s*$",
    )
    .ok()
});

fn find_advised_commands(text: &str) -> Vec<AdvisedCommand> {
    let mut all = Vec::new();
    let (Some(verb), Some(not)) = (VERB.as_ref(), NOT_ADVICE.as_ref()) else {
        return all;
    };
    for found in verb.find_iter(text) {
        let line_start = text[..found.start()].rfind('\n').map_or(0, |at| at + 1);
        if !not.is_match(&text[line_start..found.start()]) {
            all.extend(command_at_start(&text[found.end()..]));
        }
    }
    all.extend(announced_commands(text));
    all
}

/// Parses the command at the start of a text: up to the closing quote, or the words of the line.
fn command_at_start(text: &str) -> Option<AdvisedCommand> {
    let quote = text.chars().next().filter(|c| "'\"`".contains(*c));
    let line = text.lines().next()?;
    let (words, whole) = match quote {
        Some(quote) => (line[1..].split(quote).next()?, true),
        None => (line, false),
    };
    let words = words.split_whitespace().take(MAX_COMMAND_WORDS);
    let words: Vec<String> = words.map(str::to_owned).collect();
    (!words.is_empty()).then_some(AdvisedCommand {
        words,
        is_complete: whole,
    })
}

/// Returns lines that are only a command, announced by a line that ends with a colon.
fn announced_commands(text: &str) -> Vec<AdvisedCommand> {
    static ANNOUNCES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:run|try|execute|use|call|command|fix|resolve|add|install|sync|update|solve)\b.*:$").ok()
    });
    let Some(announces) = ANNOUNCES.as_ref() else {
        return Vec::new();
    };
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let pairs = lines.windows(2).filter(|pair| announces.is_match(pair[0]));
    let command = |pair: &[&str]| {
        let line = pair[1].trim().trim_start_matches(['$', '>', ' ']);
        let line = line.trim_matches('`');
        let words = line.split_whitespace().take(MAX_COMMAND_WORDS);
        AdvisedCommand {
            words: words.map(str::to_owned).collect(),
            is_complete: true,
        }
    };
    pairs.map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> FailureMessage {
        FailureMessage::from_failure(&Failure::tool("bash").with_stderr(text))
    }

    #[test]
    fn advised_commands_are_found_in_any_notation() {
        for text in [
            "Please run \"npm run generate\" and try to import it again.",
            "client missing (run npm run generate first)",
            "Run `npm run generate` to create it",
            "To fix this, run:\n\n    npm run generate\n",
            "hint: try running npm run generate.",
            "did you forget to run npm run generate?",
            "you need to run 'npm run generate'",
        ] {
            assert!(said(text).advises("npm run generate"), "{text}");
        }
    }

    #[test]
    fn failed_commands_and_warnings_are_not_advice() {
        for text in [
            "error: failed to run npm run generate",
            "do not run npm run generate",
            "while running npm run generate",
            "> npm run generate\nboom",
            "run npm run generate-types to create it",
            "run `npm run generate -- --all`",
        ] {
            assert!(!said(text).advises("npm run generate"), "{text}");
        }
    }
}

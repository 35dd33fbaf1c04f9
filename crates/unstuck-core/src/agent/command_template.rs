//! Command line templates: their placeholders and filling them in.

use super::agent_file::AgentCommandTemplatePart;
use crate::did_you_mean::nearest;

/// A known placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placeholder {
    Model,
    Session,
    New,
    Resume,
    Prompt,
    PromptFile,
    Tools,
    Args,
}

impl Placeholder {
    pub(super) const ALL: [(&'static str, Self); 8] = [
        ("model", Self::Model),
        ("session", Self::Session),
        ("new", Self::New),
        ("resume", Self::Resume),
        ("prompt", Self::Prompt),
        ("prompt_file", Self::PromptFile),
        ("tools", Self::Tools),
        ("args", Self::Args),
    ];

    fn from_name(name: &str) -> Option<Self> {
        let mut known = Self::ALL.into_iter();
        known.find_map(|(known, placeholder)| (known == name).then_some(placeholder))
    }
}

/// A piece of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordPiece<'w> {
    Text(&'w str),
    Value(Placeholder),
    /// `{?name}`: inserts nothing, but requires a value.
    If(Placeholder),
}

/// Splits a word into pieces. Braces around anything else are text: `awk '{print $1}'`.
fn pieces(word: &str) -> Vec<WordPiece<'_>> {
    let mut pieces = Vec::new();
    let (mut text_from, mut at) = (0, 0);
    while let Some(open) = word[at..].find('{').map(|found| at + found) {
        at = open + 1;
        let Some(len) = word[at..].find('}') else {
            break;
        };
        let Some(piece) = piece(&word[at..at + len]) else {
            continue;
        };
        pieces.push(WordPiece::Text(&word[text_from..open]));
        pieces.push(piece);
        at += len + 1;
        text_from = at;
    }
    pieces.push(WordPiece::Text(&word[text_from..]));
    pieces.retain(|piece| *piece != WordPiece::Text(""));
    pieces
}

fn piece(name: &str) -> Option<WordPiece<'_>> {
    match name.strip_prefix('?') {
        Some(name) => Placeholder::from_name(name).map(WordPiece::If),
        None => Placeholder::from_name(name).map(WordPiece::Value),
    }
}

/// A command line with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CommandTemplate<'t> {
    parts: Vec<TemplatePart<'t>>,
}

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart<'t> {
    Word(&'t str),
    Group(&'t [String]),
}

impl<'t> CommandTemplate<'t> {
    pub(super) fn from_args(words: &'t [String]) -> Self {
        let parts = words.iter().map(|word| TemplatePart::Word(word)).collect();
        Self { parts }
    }

    pub(super) fn from_parts(parts: &'t [AgentCommandTemplatePart]) -> Self {
        let part = |part: &'t AgentCommandTemplatePart| match part {
            AgentCommandTemplatePart::Word(word) => TemplatePart::Word(word),
            AgentCommandTemplatePart::Group(words) => TemplatePart::Group(words),
        };
        Self {
            parts: parts.iter().map(part).collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &'t str> + '_ {
        self.parts.iter().flat_map(|part| match part {
            TemplatePart::Word(word) => vec![*word],
            TemplatePart::Group(words) => words.iter().map(String::as_str).collect(),
        })
    }

    /// Returns misspelled placeholders, each with the intended one.
    pub(super) fn misspelled_placeholders(
        &self,
    ) -> impl Iterator<Item = (&'t str, &'static str)> + '_ {
        self.words().filter_map(|word| {
            let name = word.strip_prefix('{')?.strip_suffix('}')?;
            let meant = nearest(name, Placeholder::ALL.map(|(name, _)| (name, name)))?;
            pieces(word)
                .contains(&WordPiece::Text(word))
                .then_some((word, meant))
        })
    }

    /// Returns true if the value is inserted.
    pub(super) fn inserts(&self, placeholder: Placeholder) -> bool {
        self.has_piece(WordPiece::Value(placeholder))
    }

    /// Returns true if the template depends on the placeholder in any way.
    pub(super) fn depends_on(&self, placeholder: Placeholder) -> bool {
        self.inserts(placeholder) || self.has_piece(WordPiece::If(placeholder))
    }

    fn has_piece(&self, piece: WordPiece<'_>) -> bool {
        self.words().any(|word| pieces(word).contains(&piece))
    }

    /// Fills in the available values.
    pub(super) fn fill<'v>(
        &self,
        value: impl Fn(Placeholder) -> Option<Vec<&'v str>>,
    ) -> Vec<String> {
        let mut out = Vec::new();
        let mut is_flag_before = false;
        for part in &self.parts {
            match part {
                TemplatePart::Word(word) => match fill_word(word, &value) {
                    Some(words) => {
                        is_flag_before = is_flag(word);
                        out.extend(words);
                    }
                    None => {
                        out.truncate(out.len() - usize::from(is_flag_before));
                        is_flag_before = false;
                    }
                },
                TemplatePart::Group(words) => {
                    let all: Option<Vec<_>> =
                        words.iter().map(|word| fill_word(word, &value)).collect();
                    out.extend(all.into_iter().flatten().flatten());
                    is_flag_before = false;
                }
            }
        }
        out
    }
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word != "--" && !word.contains('{')
}

/// Fills in one word; none if a value is missing.
fn fill_word<'v>(
    word: &str,
    value: &impl Fn(Placeholder) -> Option<Vec<&'v str>>,
) -> Option<Vec<String>> {
    match pieces(word).as_slice() {
        [WordPiece::Value(placeholder)] => {
            let words = value(*placeholder)?.into_iter();
            Some(match placeholder {
                Placeholder::Prompt => words.map(without_leading_dash).collect(),
                _ => words.map(str::to_owned).collect(),
            })
        }
        [WordPiece::If(placeholder)] => value(*placeholder).map(|_| Vec::new()),
        pieces => {
            let mut text = String::new();
            for piece in pieces {
                match piece {
                    WordPiece::Text(part) => text.push_str(part),
                    WordPiece::Value(placeholder) => text.push_str(&value(*placeholder)?.join(",")),
                    WordPiece::If(placeholder) => drop(value(*placeholder)?),
                }
            }
            Some(vec![text])
        }
    }
}

/// Protects a prompt from being parsed as a flag; a leading blank does no harm.
pub(super) fn without_leading_dash(text: &str) -> String {
    if text.starts_with('-') {
        format!(" {text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn line(template: &str, model: Option<&str>) -> String {
        let words = words(template);
        let value = |placeholder| match placeholder {
            Placeholder::Model => model.map(|model| vec![model]),
            Placeholder::Tools => Some(vec!["a", "b"]),
            Placeholder::Prompt => Some(vec!["-{model}"]),
            Placeholder::Args => Some(Vec::new()),
            _ => None,
        };
        CommandTemplate::from_args(&words).fill(value).join(" ")
    }

    #[test]
    fn missing_value_removes_its_word_and_the_preceding_flag() {
        for (template, with, without) in [
            ("x --model {model} y", "x --model m y", "x y"),
            ("x --model={model} y", "x --model=m y", "x y"),
            ("x use {model} y", "x use m y", "x use y"),
            ("x -- {model}", "x -- m", "x --"),
            ("x -p {args} -y", "x -p -y", "x -p -y"),
            ("x {?model} y", "x y", "x y"),
            ("x {session} y", "x y", "x y"),
        ] {
            assert_eq!(line(template, Some("m")), with, "{template}");
            assert_eq!(line(template, None), without, "{template}");
        }
    }

    #[test]
    fn only_known_placeholders_are_replaced_and_only_once() {
        assert_eq!(
            line("awk {print} {{model}} {model", Some("m")),
            "awk {print} {m} {model"
        );
        assert_eq!(line("x {prompt} é{model}é", Some("m")), "x  -{model} émé");
        assert_eq!(line("x {tools} --t={tools}", None), "x a b --t=a,b");
    }
}

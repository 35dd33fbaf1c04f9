//! The parts of a command line: flags with their values, and words without a flag.

use super::file::AgentFile;

/// A text in a command line: a word, or the end of one such as in `--model=opus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) word: usize,
    pub(super) from: usize,
}

impl Place {
    pub(super) fn text(self, command: &[String]) -> &str {
        command
            .get(self.word)
            .and_then(|word| word.get(self.from..))
            .unwrap_or_default()
    }
}

/// A part of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Flag(Flag),
    /// A word without a flag.
    Word {
        at: usize,
        sure: Sure,
    },
    /// `--`, after which nothing is a flag.
    End {
        at: usize,
    },
}

/// Whether a word may also be the value of the flag before it, of which nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sure {
    Yes,
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flag {
    pub(super) name: String,
    pub(super) value: Option<Place>,
    /// The first word that it takes up, and the first that it does not.
    pub(super) words: std::ops::Range<usize>,
}

impl Flag {
    pub(super) fn is_one_of(&self, names: &[String]) -> bool {
        names.contains(&self.name)
    }
}

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    One,
    Perhaps,
    Many,
    Unknown,
}

fn takes(agent: &AgentFile, name: &str) -> Takes {
    let in_one = |lists: &[&[String]]| {
        lists
            .iter()
            .any(|list| list.iter().any(|flag| flag == name))
    };
    let (flags, session, prompt) = (&agent.flags, &agent.session, &agent.prompt);
    let values = [
        &flags.model,
        &flags.format,
        &flags.value,
        &prompt.flags,
        &prompt.files,
        &session.new,
    ];
    if in_one(&[&flags.switch]) {
        Takes::Nothing
    } else if in_one(&values.map(Vec::as_slice)) {
        Takes::One
    } else if in_one(&[&flags.optional, &session.id]) {
        Takes::Perhaps
    } else if in_one(&[&flags.many]) {
        Takes::Many
    } else if in_one(&[
        &agent.run.flags,
        &agent.run.never,
        &session.latest,
        &session.fork,
    ]) {
        Takes::Nothing
    } else {
        Takes::Unknown
    }
}

/// Reads the words from `start` on.
pub(super) fn parts(agent: &AgentFile, command: &[String], start: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = start;
    let mut sure = Sure::Yes;
    while let Some(word) = command.get(at) {
        if word == "--" {
            parts.push(Part::End { at });
            let rest = at + 1..command.len();
            parts.extend(rest.map(|at| Part::Word {
                at,
                sure: Sure::Yes,
            }));
            break;
        }
        if !is_flag(word) {
            parts.push(Part::Word { at, sure });
            sure = Sure::Yes;
            at += 1;
            continue;
        }
        let (flag, known) = read_flag(agent, command, at);
        sure = known;
        at = flag.words.end;
        parts.push(Part::Flag(flag));
    }
    parts
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// A flag with its value, and whether the word after it surely is none of it.
fn read_flag(agent: &AgentFile, command: &[String], at: usize) -> (Flag, Sure) {
    let word = command[at].as_str();
    if let Some((name, from)) = inline(agent, word) {
        let value = Some(Place { word: at, from });
        let name = name.to_owned();
        return (
            Flag {
                name,
                value,
                words: at..at + 1,
            },
            Sure::Yes,
        );
    }
    let free = command[at + 1..]
        .iter()
        .take_while(|word| !is_flag(word))
        .count();
    let takes = takes(agent, word);
    let count = match takes {
        Takes::Nothing | Takes::Unknown => 0,
        Takes::One => 1.min(command.len() - at - 1),
        Takes::Perhaps => free.min(1),
        Takes::Many => free,
    };
    let flag = Flag {
        name: word.to_owned(),
        value: (count > 0).then_some(Place {
            word: at + 1,
            from: 0,
        }),
        words: at..at + 1 + count,
    };
    (
        flag,
        if takes == Takes::Unknown {
            Sure::No
        } else {
            Sure::Yes
        },
    )
}

/// The flag of `--flag=value` or `-fvalue`, and where its value begins.
fn inline<'w>(agent: &AgentFile, word: &'w str) -> Option<(&'w str, usize)> {
    if word.starts_with("--") {
        return word.split_once('=').map(|(name, _)| (name, name.len() + 1));
    }
    let name = word.get(..2).filter(|name| name.len() < word.len())?;
    let is_joined = takes(agent, word) == Takes::Unknown && takes(agent, name) == Takes::One;
    let equals = usize::from(word[2..].starts_with('='));
    is_joined.then_some((name, 2 + equals))
}

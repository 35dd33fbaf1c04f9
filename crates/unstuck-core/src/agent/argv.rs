//! The parts of a command line: flags with their values, and positional words.

use super::agent_file::AgentDefinition;

/// A text in a command line: a word, or the end of one as in `--model=opus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ArgSpan {
    pub(super) word: usize,
    pub(super) from: usize,
}

impl ArgSpan {
    pub(super) fn text(self, command: &[String]) -> &str {
        command
            .get(self.word)
            .and_then(|word| word.get(self.from..))
            .unwrap_or_default()
    }
}

/// A part of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ArgvPart {
    Flag(ArgvFlag),
    /// A positional word.
    Word {
        at: usize,
        sure: FlagValueCertainty,
    },
    /// `--`, which ends the flags.
    End {
        at: usize,
    },
}

/// Certainty about whether a word is the value of a preceding unknown flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlagValueCertainty {
    Yes,
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArgvFlag {
    pub(super) name: String,
    pub(super) value: Option<ArgSpan>,
    /// The range of its words.
    pub(super) words: std::ops::Range<usize>,
}

impl ArgvFlag {
    pub(super) fn is_one_of(&self, names: &[String]) -> bool {
        names.contains(&self.name)
    }
}

/// The values a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlagArity {
    Nothing,
    One,
    Perhaps,
    Many,
    Unknown,
}

fn flag_arity(agent: &AgentDefinition, name: &str) -> FlagArity {
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
        FlagArity::Nothing
    } else if in_one(&values.map(Vec::as_slice)) {
        FlagArity::One
    } else if in_one(&[&flags.optional, &session.id]) {
        FlagArity::Perhaps
    } else if in_one(&[&flags.many]) {
        FlagArity::Many
    } else if in_one(&[
        &agent.run.flags,
        &agent.run.excluded_flags,
        &session.latest,
        &session.fork,
    ]) {
        FlagArity::Nothing
    } else {
        FlagArity::Unknown
    }
}

/// Parses the words from `start` on.
pub(super) fn parse_argv(
    agent: &AgentDefinition,
    command: &[String],
    start: usize,
) -> Vec<ArgvPart> {
    let mut parts = Vec::new();
    let mut at = start;
    let mut sure = FlagValueCertainty::Yes;
    while let Some(word) = command.get(at) {
        if word == "--" {
            parts.push(ArgvPart::End { at });
            let rest = at + 1..command.len();
            parts.extend(rest.map(|at| ArgvPart::Word {
                at,
                sure: FlagValueCertainty::Yes,
            }));
            break;
        }
        if !is_flag(word) {
            parts.push(ArgvPart::Word { at, sure });
            sure = FlagValueCertainty::Yes;
            at += 1;
            continue;
        }
        let (flag, known) = read_flag(agent, command, at);
        sure = known;
        at = flag.words.end;
        parts.push(ArgvPart::Flag(flag));
    }
    parts
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Parses a flag with its value, and whether the next word may be part of it.
fn read_flag(
    agent: &AgentDefinition,
    command: &[String],
    at: usize,
) -> (ArgvFlag, FlagValueCertainty) {
    let word = command[at].as_str();
    if let Some((name, from)) = split_inline_value(agent, word) {
        let value = Some(ArgSpan { word: at, from });
        let name = name.to_owned();
        return (
            ArgvFlag {
                name,
                value,
                words: at..at + 1,
            },
            FlagValueCertainty::Yes,
        );
    }
    let free = command[at + 1..]
        .iter()
        .take_while(|word| !is_flag(word))
        .count();
    let takes = flag_arity(agent, word);
    let count = match takes {
        FlagArity::Nothing | FlagArity::Unknown => 0,
        FlagArity::One => 1.min(command.len() - at - 1),
        FlagArity::Perhaps => free.min(1),
        FlagArity::Many => free,
    };
    let flag = ArgvFlag {
        name: word.to_owned(),
        value: (count > 0).then_some(ArgSpan {
            word: at + 1,
            from: 0,
        }),
        words: at..at + 1 + count,
    };
    (
        flag,
        if takes == FlagArity::Unknown {
            FlagValueCertainty::No
        } else {
            FlagValueCertainty::Yes
        },
    )
}

/// Splits `--flag=value` or `-fvalue` into the flag and the start of its value.
fn split_inline_value<'w>(agent: &AgentDefinition, word: &'w str) -> Option<(&'w str, usize)> {
    if word.starts_with("--") {
        return word.split_once('=').map(|(name, _)| (name, name.len() + 1));
    }
    let name = word.get(..2).filter(|name| name.len() < word.len())?;
    let is_joined =
        flag_arity(agent, word) == FlagArity::Unknown && flag_arity(agent, name) == FlagArity::One;
    let equals = usize::from(word[2..].starts_with('='));
    is_joined.then_some((name, 2 + equals))
}

//! The arguments of a command: its options, its operands, and the matching known call of the program.

use super::repair_knowledge_file::{ProgramCallRule, ProgramSpec};

/// Shell words that may precede a program.
const PREFIX_WORDS: [&str; 14] = [
    "if", "then", "else", "elif", "do", "while", "until", "!", "{", "exec", "command", "time",
    "nohup", "builtin",
];

/// The options and operands of a command.
pub(super) struct CommandArguments<'a> {
    pub(super) operands: Vec<&'a str>,
    /// Index of each operand among the arguments.
    positions: Vec<usize>,
    options: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> CommandArguments<'a> {
    pub(super) fn parse(program: &ProgramSpec, arguments: &[&'a str]) -> Self {
        let mut words = Self {
            operands: Vec::new(),
            positions: Vec::new(),
            options: Vec::new(),
        };
        let takes_value = |option: &str| {
            let lists = [&program.value_options, &program.directory_options];
            lists
                .iter()
                .any(|list| list.iter().any(|one| one == option))
        };
        let mut at = 0;
        while let Some(word) = arguments.get(at).copied() {
            let option = word.len() > 1 && word.starts_with('-');
            match word.split_once('=') {
                _ if !option => {
                    words.operands.push(word);
                    words.positions.push(at);
                }
                Some((name, value)) => words.options.push((name, Some(value))),
                None if takes_value(word) => {
                    at += 1;
                    words.options.push((word, arguments.get(at).copied()));
                }
                None => words.options.push((word, None)),
            }
            at += 1;
        }
        words
    }

    pub(super) fn has_option(&self, option: &str) -> bool {
        self.options.iter().any(|(name, _)| *name == option)
            || self.operands.contains(&option)
            || self.has_letter(option)
    }

    /// Returns true if a short option is part of a combined word, such as the `f` in `-rf`.
    fn has_letter(&self, option: &str) -> bool {
        let letter = option.strip_prefix('-').filter(|rest| rest.len() == 1);
        let in_word = |(name, _): &(&str, _), letter: &str| {
            let letters = name.strip_prefix('-').unwrap_or_default();
            !letters.starts_with('-') && letters.len() < 5 && letters.contains(letter)
        };
        letter.is_some_and(|letter| self.options.iter().any(|one| in_word(one, letter)))
    }

    pub(super) fn has_any(&self, options: &[String]) -> bool {
        options.iter().any(|option| self.has_option(option))
    }

    /// Returns the value of the first of these options.
    pub(super) fn value(&self, options: &[String]) -> Option<&'a str> {
        self.values(options).next()
    }

    /// Returns the values of these options.
    pub(super) fn values<'s>(
        &'s self,
        options: &'s [String],
    ) -> impl Iterator<Item = &'a str> + 's {
        let named = self.options.iter();
        let named = named.filter(|(name, _)| options.iter().any(|option| option == name));
        named.filter_map(|(_, value)| *value)
    }

    /// Returns the operands after the verb.
    pub(super) fn operands_after(&self, verb: usize) -> Vec<&'a str> {
        self.operands.get(verb..).unwrap_or_default().to_vec()
    }

    /// Returns the index of an operand among the arguments.
    pub(super) fn operand_position(&self, number: usize) -> Option<usize> {
        self.positions.get(number).copied()
    }
}

/// Returns the best-matching known call of a program and the number of operands in its verb.
pub(super) fn best_call_rule<'p>(
    program: &'p ProgramSpec,
    words: &CommandArguments<'_>,
) -> Option<(&'p ProgramCallRule, usize)> {
    let fitting = program.calls.iter().filter_map(|does| {
        let verb = verb_length(&does.verb, &words.operands)?;
        let wanted = does.with.is_empty() || words.has_any(&does.with);
        let unwanted = words.has_any(&does.without);
        let weight = verb * 2 + usize::from(!does.with.is_empty());
        (wanted && !unwanted).then_some((weight, does, verb))
    });
    let best = fitting.max_by_key(|(weight, _, _)| *weight);
    best.map(|(_, does, verb)| (does, verb))
}

/// Returns the number of operands that form the verb, or none if they do not match.
fn verb_length(verbs: &str, operands: &[&str]) -> Option<usize> {
    let lengths = verbs.split('|').filter_map(|verb| {
        let words: Vec<&str> = verb.split_whitespace().collect();
        operands.starts_with(&words).then_some(words.len())
    });
    lengths.max()
}

/// Returns the words without assignments and other prefixes of the program.
pub(super) fn without_prefixes<'w, 'a>(words: &'w [&'a str]) -> &'w [&'a str] {
    let is_before =
        |word: &&&str| PREFIX_WORDS.contains(*word) || crate::recovery_plan::is_assignment(word);
    let skipped = words.iter().take_while(is_before).count();
    &words[skipped..]
}

/// Returns the arguments that are not options.
pub(super) fn plain_operands<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let all = arguments.iter().copied();
    all.filter(|word| !word.starts_with('-')).collect()
}

/// Returns true if an operand of an installer is a package name and not a directory or file.
pub(super) fn is_package(word: &str) -> bool {
    let is_path = word.starts_with(['.', '/', '~']) || word.ends_with(['/', '.']);
    let is_file = [".txt", ".whl", ".tgz", ".gz", ".toml"];
    !is_path && !is_file.iter().any(|end| word.ends_with(end))
}

/// Returns true if an operand of an installer is a directory.
pub(super) fn is_directory(word: &str) -> bool {
    let is_file = [".txt", ".whl", ".tgz", ".gz", ".zip", ".toml"];
    word.starts_with(['.', '/']) && !is_file.iter().any(|end| word.ends_with(end))
}

/// Returns a directory without the extras that may follow it, such as `.[dev]`.
pub(super) fn without_extras(word: &str) -> &str {
    word.split_once('[').map_or(word, |(folder, _)| folder)
}

/// Returns a package name without its version.
pub(super) fn package_name(word: &str) -> &str {
    let (scope, rest) = match word.strip_prefix('@') {
        Some(rest) => (1, rest),
        None => (0, word),
    };
    let end = rest
        .find(['@', '=', '<', '>', '~', '!', '[', ':'])
        .unwrap_or(rest.len());
    &word[..scope + end]
}

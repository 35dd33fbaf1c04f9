//! Matches commands against entries of `require_human`. Generously: a false match only requires approval.

use super::program_knowledge::ProgramKnowledge;
use super::split_commands::{QuotedAssignmentMode, split_commands};

/// Operators between commands; a pattern that contains one is compared with whole lines.
const OPERATORS: &[char] = &[';', '&', '|', '<', '>', '(', ')', '`', '{', '}'];
/// Words after which `find` and `fd` name a program.
const EXECS: [&str; 6] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "--exec",
    "--exec-batch",
];

/// A command line prepared for comparison.
pub(super) struct MatchableCommand {
    /// The whole line in one piece.
    whole: String,
    /// The rest of the line from each command on, without blanks around operators.
    tight: String,
    /// Each command from each word on that may be its program.
    candidates: Vec<String>,
}

impl MatchableCommand {
    pub(super) fn new(command: &str) -> Self {
        let lower = command.to_lowercase();
        let mut candidates = Vec::new();
        let both = [QuotedAssignmentMode::Split, QuotedAssignmentMode::Whole]
            .map(|values| split_commands(&lower, values));
        for one in both.into_iter().flatten() {
            let braces = |c: char| if "{},".contains(c) { ' ' } else { c };
            let expanded = one.chars().map(braces).collect::<String>();
            add_candidates(&one, &mut candidates);
            if one.contains('{') {
                add_candidates(&expanded, &mut candidates);
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        Self {
            whole: normalize(&lower),
            tight: normalize_operators(&lower),
            candidates,
        }
    }

    /// Returns true if an entry matches the line or one of its commands.
    pub(super) fn matches(&self, entry: &str) -> bool {
        let lower = entry.to_lowercase();
        let pattern = normalize(&lower);
        let candidates = || self.candidates.iter().map(String::as_str);
        if pattern_matches(&pattern, &self.whole)
            || candidates().any(|one| pattern_matches(&pattern, one))
        {
            return true;
        }
        let bare = without_directory(&pattern);
        if bare != pattern && candidates().any(|one| pattern_matches(bare, one)) {
            return true;
        }
        pattern.contains(OPERATORS) && self.matches_line(&normalize_operators(&lower))
    }

    fn matches_line(&self, pattern: &str) -> bool {
        let is_start = |at: &usize| *at == 0 || self.tight[..*at].ends_with(OPERATORS);
        let starts = self.tight.char_indices().map(|(at, _)| at);
        let mut lines = starts.filter(is_start).map(|at| &self.tight[at..]);
        lines.any(|line| pattern_matches(pattern, line))
    }
}

/// Adds the possible readings of a command: from each word on that may be its program, with and without directory.
fn add_candidates(command: &str, candidates: &mut Vec<String>) {
    let words: Vec<_> = command.split_whitespace().collect();
    for start in program_positions(&words) {
        let one = words[start..].join(" ");
        let bare = without_directory(&one);
        if bare != one {
            candidates.push(bare.to_owned());
        }
        candidates.push(one);
    }
}

/// Returns the words of a command that may be its program: the first, and those after wrappers and assignments.
fn program_positions(words: &[&str]) -> Vec<usize> {
    let mut is_start = vec![false; words.len() + 1];
    is_start[0] = true;
    for (at, word) in words.iter().enumerate() {
        is_start[at + 1] |= EXECS.contains(word);
    }
    for at in 0..words.len() {
        if !is_start[at] {
            continue;
        }
        if is_assignment(words[at]) {
            is_start[at + 1] = true;
        } else if let Some(operands) = wrapper_operands(&words[at..]) {
            for reached in wrapped_program_positions(&words[at + 1..], operands) {
                is_start[at + 1 + reached] = true;
            }
        }
    }
    let starts = is_start.iter().take(words.len()).enumerate();
    starts.filter_map(|(at, is)| is.then_some(at)).collect()
}

fn wrapper_operands(words: &[&str]) -> Option<usize> {
    let (program, arguments) = words.split_first()?;
    let second = arguments.first().copied();
    let words: Vec<_> = std::iter::once(without_directory(program))
        .chain(second)
        .collect();
    ProgramKnowledge::built_in().launcher_operands(&words)
}

/// Returns the words after a wrapper that may be the program it starts.
///
/// A word after an option may be the option's value, so the next one is included too.
fn wrapped_program_positions(words: &[&str], mut operands: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut after_option = false;
    for (at, word) in words.iter().enumerate() {
        if word.starts_with(['-', '+']) || is_assignment(word) {
            after_option = true;
            continue;
        }
        found.push(at);
        if !after_option {
            if operands == 0 {
                break;
            }
            operands -= 1;
        }
        after_option = false;
    }
    found
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    })
}

/// Returns a command without the directory of its program.
fn without_directory(command: &str) -> &str {
    let program = command.split(' ').next().unwrap_or_default();
    if program.contains('*') {
        return command;
    }
    program.rfind('/').map_or(command, |at| &command[at + 1..])
}

/// Returns a text without quotes and backslashes, with single blanks.
fn normalize(text: &str) -> String {
    let text = text.replace(['\'', '"', '\\'], "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the same without blanks around operators; a line end is an operator.
fn normalize_operators(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(normalize).collect();
    let mut text = lines.join(";");
    for operator in OPERATORS {
        text = text.replace(&format!(" {operator}"), &operator.to_string());
        text = text.replace(&format!("{operator} "), &operator.to_string());
    }
    text
}

/// Returns true if a pattern matches a text: `*` is any run of characters; without one it may also be the first words
/// of the text.
fn pattern_matches(pattern: &str, text: &str) -> bool {
    if !pattern.contains('*') {
        let rest = text.strip_prefix(pattern);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    }
    // `curl *` also covers `curl` alone.
    let alone = pattern.strip_suffix(" *");
    alone.is_some_and(|pattern| wildcard_matches(pattern, text)) || wildcard_matches(pattern, text)
}

/// Finds each part between stars after the previous one; the earliest match is always sufficient.
fn wildcard_matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        match text.find(part) {
            None => return false,
            Some(at) => text = &text[at + part.len()..],
        }
    }
    text.ends_with(last)
}

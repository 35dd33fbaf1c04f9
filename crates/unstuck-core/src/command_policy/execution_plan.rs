//! How an approved text runs: argv by argv where it is plain words joined by ` && `, else by a shell.

use super::program_knowledge::ProgramKnowledge;

/// How an approved text runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionPlan {
    /// These commands one after the other until one fails, without a shell.
    Direct(Vec<Vec<String>>),
    /// `/bin/sh -c` with this text.
    Shell(String),
}

impl ExecutionPlan {
    /// Tells how a text runs. No shell is used only where a shell would do the very same.
    ///
    /// ```
    /// use unstuck_core::command_policy::ExecutionPlan;
    ///
    /// let plain = ExecutionPlan::for_text("rm -rf dist && npm run 'build all'");
    /// let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    /// assert_eq!(plain, ExecutionPlan::Direct(vec![words(&["rm", "-rf", "dist"]), words(&["npm", "run", "build all"])]));
    /// assert_eq!(ExecutionPlan::for_text("rm -rf *"), ExecutionPlan::Shell("rm -rf *".to_owned()));
    /// ```
    pub fn for_text(text: &str) -> Self {
        simple_commands(text).map_or_else(|| Self::Shell(text.to_owned()), Self::Direct)
    }
}

/// Whether a character means nothing to a shell.
pub(super) fn is_shell_neutral(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c)
}

/// The commands of a text, if a shell takes each of their words as it stands.
fn simple_commands(text: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        let (word, after) = split_word(rest)?;
        words.push(word);
        if after.is_empty() {
            break;
        }
        rest = match after.strip_prefix(" && ") {
            None => after.strip_prefix(' ')?,
            Some(next) => {
                commands.push(std::mem::take(&mut words));
                next
            }
        };
    }
    commands.push(words);
    commands
        .iter()
        .all(|words| starts_program(words))
        .then_some(commands)
}

/// Whether words start a program: no assignment, no word of the shell's own grammar, nothing that only the shell can do.
fn starts_program(words: &[String]) -> bool {
    let is_one = |word: &String| {
        !word.is_empty()
            && !word.contains('=')
            && !ProgramKnowledge::built_in().is_shell_builtin(word)
    };
    words.first().is_some_and(is_one)
}

/// The first word and what follows it.
fn split_word(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let Some(quote) = quote else {
        let (word, rest) = text.split_at(text.find(|c| !is_shell_neutral(c)).unwrap_or(text.len()));
        return (!word.is_empty()).then(|| (word.to_owned(), rest));
    };
    let (word, rest) = text[1..].split_once(quote)?;
    let is_literal = |c: char| !c.is_control() && (quote == '\'' || !"$`\\!".contains(c));
    word.chars()
        .all(is_literal)
        .then(|| (word.to_owned(), rest))
}

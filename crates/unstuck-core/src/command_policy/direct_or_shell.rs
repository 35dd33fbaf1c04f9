//! How an approved text runs: as argument vectors if it is plain words joined by ` && `, else in a shell.

use super::program_knowledge::ProgramKnowledge;

/// How an approved text runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectOrShell {
    /// Runs these commands one after the other until one fails, without a shell.
    Direct(Vec<Vec<String>>),
    /// Runs `/bin/sh -c` with this text.
    Shell(String),
}

impl DirectOrShell {
    /// Returns how a text runs. The shell is skipped only where it would do exactly the same.
    ///
    /// ```
    /// use unstuck_core::command_policy::DirectOrShell;
    ///
    /// let plain = DirectOrShell::for_text("rm -rf dist && npm run 'build all'");
    /// let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    /// let commands = vec![words(&["rm", "-rf", "dist"]), words(&["npm", "run", "build all"])];
    /// assert_eq!(plain, DirectOrShell::Direct(commands));
    /// assert_eq!(DirectOrShell::for_text("rm -rf *"), DirectOrShell::Shell("rm -rf *".to_owned()));
    /// ```
    pub fn for_text(text: &str) -> Self {
        simple_commands(text).map_or_else(|| Self::Shell(text.to_owned()), Self::Direct)
    }
}

/// Returns true if a character has no meaning to a shell.
pub(super) fn is_shell_neutral(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c)
}

/// Returns the commands of a text, if a shell would take each of their words literally.
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

/// Returns true if words start a program: not an assignment, a keyword or a builtin.
fn starts_program(words: &[String]) -> bool {
    let is_one = |word: &String| {
        !word.is_empty()
            && !word.contains('=')
            && !ProgramKnowledge::built_in().is_shell_builtin(word)
    };
    words.first().is_some_and(is_one)
}

/// Returns the first word and the rest.
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

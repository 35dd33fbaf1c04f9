//! How an approved text runs: argv by argv where it is plain words joined by ` && `, else by a shell.

use super::programs::Programs;

/// How an approved text runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// These commands one after the other until one fails, without a shell.
    Plain(Vec<Vec<String>>),
    /// `/bin/sh -c` with this text.
    Shell(String),
}

impl Script {
    /// Tells how a text runs. No shell is used only where a shell would do the very same.
    ///
    /// ```
    /// use unstuck_core::guard::Script;
    ///
    /// let plain = Script::of("rm -rf dist && npm run 'build all'");
    /// let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    /// assert_eq!(plain, Script::Plain(vec![words(&["rm", "-rf", "dist"]), words(&["npm", "run", "build all"])]));
    /// assert_eq!(Script::of("rm -rf *"), Script::Shell("rm -rf *".to_owned()));
    /// ```
    pub fn of(text: &str) -> Self {
        commands(text).map_or_else(|| Self::Shell(text.to_owned()), Self::Plain)
    }
}

/// Whether a character means nothing to a shell.
pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c)
}

/// The commands of a text, if a shell takes each of their words as it stands.
fn commands(text: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        let (word, after) = word(rest)?;
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
        !word.is_empty() && !word.contains('=') && !Programs::built_in().is_of_shell(word)
    };
    words.first().is_some_and(is_one)
}

/// The first word and what follows it.
fn word(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let Some(quote) = quote else {
        let (word, rest) = text.split_at(text.find(|c| !is_plain(c)).unwrap_or(text.len()));
        return (!word.is_empty()).then(|| (word.to_owned(), rest));
    };
    let (word, rest) = text[1..].split_once(quote)?;
    let is_literal = |c: char| !c.is_control() && (quote == '\'' || !"$`\\!".contains(c));
    word.chars()
        .all(is_literal)
        .then(|| (word.to_owned(), rest))
}

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
        let commands = text.split(" && ").map(words).collect::<Option<Vec<_>>>();
        commands.map_or_else(|| Self::Shell(text.to_owned()), Self::Plain)
    }
}

/// Whether a character means nothing to a shell.
pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:@%+=,-".contains(c)
}

/// The words of one command, if a shell takes each as it stands.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = command;
    loop {
        let (word, after) = word(rest)?;
        words.push(word);
        if after.is_empty() {
            break;
        }
        rest = after.strip_prefix(' ')?;
    }
    // An assignment, a word of the shell's own grammar, or what only the shell itself can do.
    let program = words.first()?;
    let is_program =
        !program.is_empty() && !program.contains('=') && !Programs::built_in().is_of_shell(program);
    is_program.then_some(words)
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

//! Splits a command generously: a finding can only require approval.

use super::command_tools_and_files::ShellCommandWords;

/// Maximum nesting depth of quotes examined.
const MAX_QUOTE_DEPTH: usize = 4;

/// Returns the single commands in a text, including those in quotes and substitutions.
pub fn split_commands(text: &str) -> Vec<ShellCommandWords> {
    let mut steps = Vec::new();
    collect(text, MAX_QUOTE_DEPTH, &mut steps);
    steps
}

fn collect(text: &str, deepest: usize, steps: &mut Vec<ShellCommandWords>) {
    let mut reader = CommandSplitter::default();
    let mut quoted: Vec<String> = Vec::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                // A line continuation.
                Some('\n') | None => {}
                Some(next) => reader.word.push(next),
            },
            '\'' | '"' => {
                let mut inner = String::new();
                while let Some(next) = characters.next_if(|next| *next != c) {
                    match next {
                        '\\' if c == '"' => inner.extend(characters.next()),
                        next => inner.push(next),
                    }
                }
                characters.next();
                if inner.contains([' ', '\t', '\n', ';', '&', '|', '`', '(']) {
                    quoted.push(inner.clone());
                }
                reader.word.push_str(&inner);
                reader.has_word = true;
            }
            ';' | '&' | '|' | '\n' | '(' | ')' | '`' => reader.end_command(steps),
            '{' | '}' if reader.word.is_empty() => reader.end_command(steps),
            '<' | '>' => reader.end_word(),
            c if c.is_whitespace() => reader.end_word(),
            c => reader.word.push(c),
        }
    }
    reader.end_command(steps);
    if deepest > 0 {
        for inner in quoted {
            collect(&inner, deepest - 1, steps);
        }
    }
}

#[derive(Default)]
struct CommandSplitter {
    word: String,
    /// If set, there is a word, even if it is an empty one in quotes.
    has_word: bool,
    words: Vec<String>,
}

impl CommandSplitter {
    fn end_word(&mut self) {
        if self.has_word || !self.word.is_empty() {
            self.words.push(std::mem::take(&mut self.word));
        }
        self.has_word = false;
    }

    fn end_command(&mut self, steps: &mut Vec<ShellCommandWords>) {
        self.end_word();
        if !self.words.is_empty() {
            steps.push(ShellCommandWords::new(std::mem::take(&mut self.words)));
        }
    }
}

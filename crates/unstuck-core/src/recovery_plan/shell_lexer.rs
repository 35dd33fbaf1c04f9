//! Shell commands as words and operators: enough to parse a failed command and to write a new one.
//!
//! This module executes and approves nothing. A word keeps its raw text, so that a command can be reassembled without
//! changing its meaning for the shell.

use std::ops::Range;

/// A quote that is never closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unclosed `{quote}` at byte {at}")]
pub struct UnclosedQuote {
    /// The opening character: a quote or a bracket.
    pub quote: char,
    /// The position of the opening character.
    pub at: usize,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellTokenKind {
    /// A word of a command.
    Word,
    /// A command terminator: `;`, `&&`, `|` and similar.
    Control,
    /// A redirection: `>`, `2>&` and similar; the following word belongs to it.
    Redirect,
}

/// A word or operator of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellToken {
    /// The kind.
    pub kind: ShellTokenKind,
    /// The text without quotes.
    pub value: String,
    /// The position in the command.
    pub span: Range<usize>,
    /// True if the shell uses it literally, without variables, substitutions or patterns.
    pub literal: bool,
}

/// Quotes a value so that a POSIX shell parses it as exactly one word.
///
/// A NUL, which no word can contain, is removed.
///
/// ```
/// use unstuck_core::recovery_plan::shell_quote;
///
/// assert_eq!(shell_quote("src/main.rs"), "src/main.rs");
/// assert_eq!(shell_quote("it's $HOME"), r"'it'\''s $HOME'");
/// ```
pub fn shell_quote(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\0', "").replace('\'', r"'\''"))
}

/// Splits a command into words and operators.
///
/// ```
/// use unstuck_core::recovery_plan::shell_tokens;
///
/// let values: Vec<_> = shell_tokens("echo 'a b' && ls")?.into_iter().map(|token| token.value).collect();
/// assert_eq!(values, ["echo", "a b", "&&", "ls"]);
/// # Ok::<(), unstuck_core::recovery_plan::UnclosedQuote>(())
/// ```
pub fn shell_tokens(command: &str) -> Result<Vec<ShellToken>, UnclosedQuote> {
    let mut reader = ShellLexer {
        text: command,
        at: 0,
    };
    let mut tokens = Vec::new();
    while let Some(token) = reader.token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

const CONTROLS: [&str; 10] = [";;", "&&", "||", "|&", ";", "&", "|", "(", ")", "\n"];
const REDIRECTS: [&str; 11] = [
    "&>>", "<<<", "<<-", "&>", ">>", ">&", ">|", "<<", "<&", "<>", ">",
];

struct ShellLexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ShellLexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with("\\\n") {
                self.at += 2;
            } else if rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with([' ', '\t', '\r', '\x0c']) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn token(&mut self) -> Result<Option<ShellToken>, UnclosedQuote> {
        self.skip_blanks();
        if self.rest().is_empty() {
            return Ok(None);
        }
        let start = self.at;
        if let Some(kind) = self.operator() {
            return Ok(Some(ShellToken {
                kind,
                value: self.text[start..self.at].to_owned(),
                span: start..self.at,
                literal: true,
            }));
        }
        self.word(start).map(Some)
    }

    fn operator(&mut self) -> Option<ShellTokenKind> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let after = &rest[digits..];
        let redirect = REDIRECTS.iter().chain(&["<"]);
        if let Some(found) = redirect.copied().find(|sign| after.starts_with(sign)) {
            self.at += digits + found.len();
            return Some(ShellTokenKind::Redirect);
        }
        let found = CONTROLS.iter().find(|sign| rest.starts_with(**sign))?;
        self.at += found.len();
        Some(ShellTokenKind::Control)
    }

    fn word(&mut self, start: usize) -> Result<ShellToken, UnclosedQuote> {
        let mut word = WordBuilder::default();
        while let Some(c) = self.peek() {
            if c.is_ascii_whitespace() || ";&|()<>".contains(c) {
                break;
            }
            self.word_part(&mut word, start)?;
        }
        Ok(ShellToken {
            kind: ShellTokenKind::Word,
            value: word.value,
            span: start..self.at,
            literal: !word.expands,
        })
    }

    fn word_part(&mut self, word: &mut WordBuilder, start: usize) -> Result<(), UnclosedQuote> {
        let at = self.at;
        match self.next() {
            Some('\\') => match self.next() {
                Some('\n') | None => {}
                Some(c) => word.value.push(c),
            },
            Some('\'') => word.value.push_str(self.read_until('\'', at)?),
            Some('"') => self.double_quoted(word, at)?,
            Some('$') => self.expansion(word, at)?,
            Some('`') => {
                word.expands = true;
                self.read_until('`', at)?;
                word.value.push_str(&self.text[at..self.at]);
            }
            Some(c) => {
                word.expands |= "*?[{".contains(c) || (c == '~' && at == start);
                word.value.push(c);
            }
            None => {}
        }
        Ok(())
    }

    fn read_until(&mut self, quote: char, at: usize) -> Result<&'a str, UnclosedQuote> {
        let rest = self.rest();
        let length = rest.find(quote).ok_or(UnclosedQuote { quote, at })?;
        self.at += length + quote.len_utf8();
        Ok(&rest[..length])
    }

    fn double_quoted(&mut self, word: &mut WordBuilder, at: usize) -> Result<(), UnclosedQuote> {
        loop {
            let here = self.at;
            match self.next().ok_or(UnclosedQuote { quote: '"', at })? {
                '"' => return Ok(()),
                '$' => self.expansion(word, here)?,
                '`' => {
                    word.expands = true;
                    word.value.push('`');
                }
                '\\' => match self.next() {
                    Some(c) if "$`\"\\".contains(c) => word.value.push(c),
                    Some('\n') => {}
                    Some(c) => word.value.extend(['\\', c]),
                    None => return Err(UnclosedQuote { quote: '"', at }),
                },
                c => word.value.push(c),
            }
        }
    }

    /// Parses an expansion after a `$`; a substitution in brackets is taken as a whole.
    fn expansion(&mut self, word: &mut WordBuilder, at: usize) -> Result<(), UnclosedQuote> {
        word.expands = true;
        if let Some(open @ ('(' | '{')) = self.peek() {
            self.next();
            self.bracket(open, at)?;
        }
        word.value.push_str(&self.text[at..self.at]);
        Ok(())
    }

    fn bracket(&mut self, open: char, at: usize) -> Result<(), UnclosedQuote> {
        let close = if open == '(' { ')' } else { '}' };
        let mut depth = 1;
        while depth > 0 {
            let here = self.at;
            match self.next().ok_or(UnclosedQuote { quote: open, at })? {
                '\\' => {
                    self.next();
                }
                '\'' => {
                    self.read_until('\'', here)?;
                }
                c if c == open => depth += 1,
                c if c == close => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct WordBuilder {
    value: String,
    expands: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(command: &str) -> Vec<String> {
        let tokens = shell_tokens(command).unwrap();
        tokens.into_iter().map(|token| token.value).collect()
    }

    #[test]
    fn words_quotes_and_operators_are_distinguished() {
        assert_eq!(
            values(r#"FOO=1 rg "a b" 'c d' e\ f|wc -l;x 2>/dev/null"#),
            [
                "FOO=1",
                "rg",
                "a b",
                "c d",
                "e f",
                "|",
                "wc",
                "-l",
                ";",
                "x",
                "2>",
                "/dev/null"
            ]
        );
        assert_eq!(values("a # rest\nb"), ["a", "\n", "b"]);
        assert_eq!(
            values("echo $(ls | wc) done"),
            ["echo", "$(ls | wc)", "done"]
        );
    }

    #[test]
    fn text_that_the_shell_would_expand_is_not_literal() {
        let literal = |command: &str| shell_tokens(command).unwrap()[0].literal;
        assert!(literal("plain") && literal("'*.rs'") && literal("\"a b\""));
        assert!(!literal("*.rs") && !literal("\"$HOME\"") && !literal("~/x") && !literal("`id`"));
    }

    #[test]
    fn an_unclosed_quote_is_reported() {
        let open = |command: &str| shell_tokens(command).unwrap_err();
        assert_eq!(open("echo 'a"), UnclosedQuote { quote: '\'', at: 5 });
        assert_eq!(open("echo \"a").to_string(), "unclosed `\"` at byte 5");
        assert_eq!(open("echo $(ls").quote, '(');
    }

    proptest! {
        /// A quoted value is always exactly one literal word with the same value.
        #[test]
        fn quoting_round_trips(value in "[^\0]{0,40}") {
            let tokens = shell_tokens(&shell_quote(&value)).unwrap();
            prop_assert_eq!(tokens.len(), 1);
            prop_assert_eq!(&tokens[0].value, &value);
            prop_assert!(tokens[0].literal);
        }

        #[test]
        fn any_text_is_parsed_without_panic(command in "\\PC{0,60}") {
            if let Ok(tokens) = shell_tokens(&command) {
                for token in tokens {
                    prop_assert!(command.get(token.span).is_some());
                }
            }
        }
    }
}

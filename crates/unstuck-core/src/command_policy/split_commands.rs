//! Splits a command line into its commands, as generously as possible: for `require_human`, where a match only requires
//! approval.
//!
//! Quotes and backslashes are dropped, so quoted text is treated as unquoted. Nothing here recurses, so no nesting is
//! too deep, and every character is read once.

/// How quoted text in an assignment is read, such as `A='x y'`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotedAssignmentMode {
    /// As words and commands like everything else: the safe reading, since it is unclear which quote opens and which
    /// closes.
    Split,
    /// As one word, so that the program after it is found.
    Whole,
}

/// Returns the commands of a line, including those in substitutions and subshells. The line must be in lower case.
pub(super) fn split_commands(line: &str, values: QuotedAssignmentMode) -> Vec<String> {
    let mut splitter = CommandLineSplitter {
        rest: line,
        values,
        current: String::new(),
        open: Vec::new(),
        value: None,
        done: Vec::new(),
    };
    while let Some(c) = splitter.next() {
        splitter.push_char(c);
    }
    splitter.end_command();
    while let Some((_, before)) = splitter.open.pop() {
        splitter.current = before;
        splitter.end_command();
    }
    splitter.done
}

struct CommandLineSplitter<'l> {
    rest: &'l str,
    values: QuotedAssignmentMode,
    /// The current command.
    current: String,
    /// The open constructs, and the command that continues after each.
    open: Vec<(SubstitutionKind, String)>,
    /// The quote that ends the value of an assignment, and the number of constructs open before it.
    value: Option<(char, usize)>,
    done: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SubstitutionKind {
    Round,
    Tick,
}

impl CommandLineSplitter<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Skips a prefix, if present.
    fn skip_prefix(&mut self, start: &str) -> bool {
        let found = self.rest.strip_prefix(start);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn skip_while(&mut self, is_one: impl Fn(char) -> bool) -> &str {
        let end = self.rest.find(|c| !is_one(c)).unwrap_or(self.rest.len());
        let (passed, rest) = self.rest.split_at(end);
        self.rest = rest;
        passed
    }

    /// Ends a command.
    fn end_command(&mut self) {
        let command = std::mem::take(&mut self.current);
        if !command.trim().is_empty() {
            self.done.push(command);
        }
    }

    fn push_char(&mut self, c: char) {
        match c {
            // In this notation, a substitution in backticks contains another one.
            '\\' if self.skip_prefix("`") => self.end_command(),
            '\\' => {
                self.skip_prefix("\n");
            }
            c if self.is_in_value() && (c.is_whitespace() || ";|&<>()".contains(c)) => {
                self.current.push('_');
            }
            '\'' | '"' => self.quote(c),
            '$' => self.expansion(),
            '`' if self.is_in(SubstitutionKind::Tick) => self.close(),
            '`' => self.substitution(SubstitutionKind::Tick),
            '<' | '>' if self.skip_prefix("(") => self.substitution(SubstitutionKind::Round),
            '<' | '>' => self.redirection(c),
            '&' if self.rest.starts_with('>') => {}
            '(' => {
                self.end_command();
                self.substitution(SubstitutionKind::Round);
            }
            ')' if self.is_in(SubstitutionKind::Round) => self.close(),
            ')' | ';' | '|' | '&' | '\n' => self.end_command(),
            c => self.current.push(c),
        }
    }

    /// Drops a quote; quoted text of an assignment stays one word.
    fn quote(&mut self, quote: char) {
        match self.value {
            Some((open, _)) if open == quote => self.value = None,
            None if self.values == QuotedAssignmentMode::Whole && self.current.ends_with('=') => {
                self.value = Some((quote, self.open.len()));
            }
            _ => {}
        }
    }

    fn is_in(&self, bracket: SubstitutionKind) -> bool {
        self.open.last().is_some_and(|(open, _)| *open == bracket)
    }

    fn is_in_value(&self) -> bool {
        self.value.is_some_and(|(_, open)| open == self.open.len())
    }

    fn substitution(&mut self, bracket: SubstitutionKind) {
        self.open.push((bracket, std::mem::take(&mut self.current)));
    }

    fn close(&mut self) {
        self.end_command();
        if let Some((_, before)) = self.open.pop() {
            self.current = before;
        }
    }

    /// Handles the text after a `$`: a substitution is a command, and a variable is empty, or a blank if it is IFS.
    fn expansion(&mut self) {
        if self.skip_prefix("(") {
            self.substitution(SubstitutionKind::Round);
        } else if self.skip_prefix("'") {
            self.escapes();
        } else {
            let in_brackets = self.skip_prefix("{");
            let before = self.rest;
            let name = self.skip_while(|c| c.is_alphanumeric() || c == '_');
            if name.starts_with(|c: char| c.is_ascii_digit()) && !in_brackets {
                // `$12` is `$1` and a 2.
                self.rest = &before[1..];
            } else if name == "ifs" {
                self.current.push(' ');
            } else if name.is_empty() {
                self.skip_while(|c| "@*#?!$-".contains(c));
            }
            if in_brackets {
                self.skip_prefix("}");
            }
        }
    }

    /// Handles text in `$'…'`, which may contain character escapes.
    fn escapes(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\\' => {
                    let written = self.escape();
                    self.current
                        .extend(written.into_iter().flat_map(char::to_lowercase));
                }
                c => self.current.push(c),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let (radix, most) = match self.next()? {
            'x' => (16, 2),
            'u' => (16, 8),
            c @ '0'..='7' => {
                let more = self.digits(8, 2);
                return number(&format!("{c}{more}"), 8);
            }
            'n' | 't' | 'r' | 'v' | 'f' => return Some(' '),
            c => return Some(c),
        };
        let digits = self.digits(radix, most);
        number(digits, radix)
    }

    fn digits(&mut self, radix: u32, most: usize) -> &str {
        let is_digit = |c: &char| c.is_digit(radix);
        let count = self.rest.chars().take(most).take_while(is_digit).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits
    }

    /// Skips a redirection and its target; a text after `<<<` is a command.
    fn redirection(&mut self, first: char) {
        let words = self.current.trim_end_matches(|c: char| c.is_ascii_digit());
        if words.is_empty() || words.ends_with(char::is_whitespace) {
            self.current.truncate(words.len());
        }
        if first == '<' && self.skip_prefix("<<") {
            return self.end_command();
        }
        self.skip_while(|c| "<>&|-".contains(c));
        self.skip_while(|c| matches!(c, ' ' | '\t'));
        self.skip_while(|c| !c.is_whitespace() && !"<>&|;()`$".contains(c));
        self.current.push(' ');
    }
}

fn number(digits: &str, radix: u32) -> Option<char> {
    u32::from_str_radix(digits, radix)
        .ok()
        .and_then(char::from_u32)
}

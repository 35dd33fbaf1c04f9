//! Finds literals of which every match of a regular expression must contain at least one.
//!
//! It reads the source by itself, because a full parse of several hundred expressions would be most of
//! the time that a cold start takes. It only has to be right, not complete: where it is in doubt it finds
//! nothing, and the pattern is refused. A test compares it with strings made from every expression.

use std::iter::Peekable;
use std::str::Chars;

/// Literals of which every match contains one; `None` if there are no good ones.
pub(crate) fn required(regex: &str) -> Option<Vec<String>> {
    let mut reader = Reader {
        chars: regex.chars().peekable(),
    };
    let found = reader.choice().filter(|set| weight(set) >= 2);
    // What is left over was not understood.
    if reader.chars.peek().is_some() {
        None
    } else {
        found
    }
}

/// Several sets of literals: every match contains one of each set. Found later and used to rule a pattern out
/// before its expression is compiled.
pub(crate) fn all_required(regex: &str) -> Vec<Vec<String>> {
    let mut reader = Reader {
        chars: regex.chars().peekable(),
    };
    let mut found = Sequence {
        others: Some(Vec::new()),
        ..Sequence::default()
    };
    reader.sequence_into(&mut found);
    // With a choice at the top, or with what was not understood, nothing more is known for sure.
    if reader.chars.peek().is_some() {
        return Vec::new();
    }
    let sets = found.others.unwrap_or_default().into_iter();
    sets.filter(|set| weight(set) >= 2).collect()
}

/// The best literals are long, even the shortest of them.
fn weight(set: &[String]) -> usize {
    set.iter()
        .map(|literal| literal.trim().len())
        .min()
        .unwrap_or(0)
}

struct Reader<'r> {
    chars: Peekable<Chars<'r>>,
}

/// The literals of a sequence, as they are collected.
#[derive(Default)]
struct Sequence {
    run: String,
    best: Option<Vec<String>>,
    /// All sets that were offered, where they are wanted.
    others: Option<Vec<Vec<String>>>,
}

impl Sequence {
    fn offer(&mut self, set: Vec<String>) {
        let is_better = match &self.best {
            None => !set.is_empty(),
            Some(best) => {
                (weight(&set), std::cmp::Reverse(set.len()))
                    > (weight(best), std::cmp::Reverse(best.len()))
            }
        };
        if let Some(others) = &mut self.others {
            others.push(set.clone());
        }
        if is_better {
            self.best = Some(set);
        }
    }

    fn end_run(&mut self) {
        if !self.run.is_empty() {
            let run = std::mem::take(&mut self.run);
            self.offer(vec![run]);
        }
    }

    /// The last character may be absent.
    fn drop_last(&mut self) {
        self.run.pop();
        self.end_run();
    }
}

impl Reader<'_> {
    /// Alternatives up to a closing parenthesis or the end: each must have its literals.
    fn choice(&mut self) -> Option<Vec<String>> {
        let mut all = Some(Vec::new());
        loop {
            let one = self.sequence();
            all = all.zip(one).map(|(mut all, one)| {
                all.extend(one);
                all
            });
            if self.chars.next_if_eq(&'|').is_none() {
                return all;
            }
        }
    }

    fn sequence(&mut self) -> Option<Vec<String>> {
        let mut found = Sequence::default();
        self.sequence_into(&mut found);
        found.best
    }

    fn sequence_into(&mut self, found: &mut Sequence) {
        while let Some(c) = self.chars.next_if(|c| *c != '|' && *c != ')') {
            match c {
                '(' => {
                    found.end_run();
                    let inner = self.group();
                    if let (false, Some(set)) = (self.may_be_absent(), inner) {
                        found.offer(set);
                    }
                }
                '[' => {
                    found.end_run();
                    self.class();
                    self.may_be_absent();
                }
                '\\' => self.escape(found),
                '.' | '^' | '$' => {
                    found.end_run();
                    self.may_be_absent();
                }
                plain => self.plain(plain, found),
            }
        }
        found.end_run();
    }

    fn plain(&mut self, c: char, found: &mut Sequence) {
        found.run.push(c);
        match self.chars.peek() {
            Some('?' | '*' | '{') => {
                found.drop_last();
                self.may_be_absent();
            }
            Some('+') => {
                found.end_run();
                self.may_be_absent();
            }
            _ => {}
        }
    }

    fn escape(&mut self, found: &mut Sequence) {
        match self.chars.next() {
            Some(c) if c.is_ascii_punctuation() => self.plain(c, found),
            _ => {
                found.end_run();
                self.may_be_absent();
            }
        }
    }

    /// The inside of a group, up to and with its closing parenthesis.
    fn group(&mut self) -> Option<Vec<String>> {
        if self.chars.next_if_eq(&'?').is_some() {
            // A name, or flags: neither is part of what matches.
            let _ = self.chars.next_if_eq(&'P');
            if self.chars.next_if_eq(&'<').is_some() {
                self.chars.by_ref().find(|c| *c == '>');
            } else {
                self.chars.by_ref().find(|c| *c == ':');
            }
        }
        let inner = self.choice();
        self.chars.next_if_eq(&')');
        inner
    }

    fn class(&mut self) {
        self.chars.next_if_eq(&'^');
        // A bracket that comes first in a class stands for itself.
        self.chars.next_if_eq(&']');
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => {
                    self.chars.next();
                }
                ']' => return,
                _ => {}
            }
        }
    }

    /// Reads a quantifier, if one follows, and tells whether it allows for nothing.
    fn may_be_absent(&mut self) -> bool {
        let absent = match self.chars.peek() {
            Some('?' | '*') => {
                self.chars.next();
                true
            }
            Some('+') => {
                self.chars.next();
                false
            }
            Some('{') => {
                self.chars.next();
                let least = self.chars.peek() == Some(&'0');
                self.chars.by_ref().find(|c| *c == '}');
                least
            }
            _ => return false,
        };
        // The lazy form.
        self.chars.next_if_eq(&'?');
        absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(regex: &str) -> Vec<String> {
        required(regex).unwrap_or_default()
    }

    #[test]
    fn the_longest_plain_run_is_taken() {
        assert_eq!(found(r"tokens? per minute"), [" per minute"]);
        assert_eq!(found(r"^npm (ERR!|error) code E404"), [" code E404"]);
        assert_eq!(found(r"limit reached\|\d+"), ["limit reached|"]);
        assert_eq!(found(r"colou?r"), ["colo"]);
        assert_eq!(found(r"a{2,}bc"), ["bc"]);
        assert_eq!(found(r"[)(x]+ failed"), [" failed"]);
        assert_eq!(found(r"(?P<wait>\d+)s left"), ["s left"]);
    }

    #[test]
    fn of_a_choice_every_branch_counts() {
        assert_eq!(found(r"(invalid|missing) \w+"), ["invalid", "missing"]);
        assert_eq!(found(r"one|two|three"), ["one", "two", "three"]);
        assert_eq!(
            found(r"(is |was )?(flagged|blocked) by"),
            ["flagged", "blocked"]
        );
    }

    #[test]
    fn every_part_of_a_sequence_is_required() {
        assert_eq!(
            all_required(r"command .{0,40}(not found|missing)"),
            [vec!["command "], vec!["not found", "missing"]]
        );
        assert_eq!(all_required(r"one two|three"), Vec::<Vec<String>>::new());
        assert_eq!(all_required(r"(maybe)? surely"), [vec![" surely"]]);
    }

    #[test]
    fn what_may_be_absent_does_not_count() {
        assert_eq!(required(r"(one|two)?"), None);
        assert_eq!(required(r"(one|\d+)"), None);
        assert_eq!(required(r"\d+"), None);
        assert_eq!(required(r"(abc)*x"), None);
    }
}

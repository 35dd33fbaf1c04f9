//! Extracts literals from a regular expression of which every match must contain at least one.
//!
//! It scans the source itself, because fully parsing several hundred expressions would take most of a cold start. It
//! must be correct, but not complete: in doubt it finds nothing, and the pattern is rejected. A test compares it with
//! strings generated from every expression.

use std::iter::Peekable;
use std::str::Chars;

/// Returns lower-case literals of which every match contains one; `None` if there are no useful ones.
pub(crate) fn required_literals(regex: &str) -> Option<Vec<String>> {
    if !is_plain(regex) {
        return None;
    }
    if let Some(run) = long_run(regex) {
        return Some(vec![run.to_ascii_lowercase()]);
    }
    let mut reader = LiteralExtractor {
        chars: regex.chars().peekable(),
    };
    let found = reader.choice().filter(|set| literal_set_weight(set) >= 2);
    // The rest was not understood.
    if reader.chars.peek().is_some() {
        None
    } else {
        found
    }
}

/// Returns true if an expression contains nothing unsupported: characters by code or class, and flags.
fn is_plain(regex: &str) -> bool {
    let is_odd = |(at, pair): (usize, &[u8])| match pair {
        [b'\\', escaped] => b"xuUpP".contains(escaped),
        b"(?" => has_flags_only(&regex[at + 2..]),
        _ => false,
    };
    !regex.as_bytes().windows(2).enumerate().any(is_odd)
}

/// Returns true if a group that began with `(?` only sets flags or enables extended mode.
fn has_flags_only(rest: &str) -> bool {
    let after = rest.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '-');
    after.starts_with(')') || rest[..rest.len() - after.len()].contains('x')
}

/// Returns a run of plain characters outside groups that is long enough to skip the search for better literals.
///
/// Most expressions have one, and it is found without allocating.
fn long_run(regex: &str) -> Option<&str> {
    const LONG_ENOUGH: usize = 6;
    let bytes = regex.as_bytes();
    let (mut best, mut start, mut depth, mut at) = (0..0, 0, 0_usize, 0);
    while at <= bytes.len() {
        let byte = bytes.get(at).copied().unwrap_or(b'$');
        let special = b"()[]{}|?*+.^$\\".contains(&byte);
        if special {
            // An optional quantifier removes the preceding character; a byte of a multi-byte character is not a whole
            // one.
            let end = if matches!(byte, b'?' | b'*' | b'{') {
                at.saturating_sub(1)
            } else {
                at
            };
            let is_whole = regex.is_char_boundary(start) && regex.is_char_boundary(end);
            if depth == 0 && is_whole && end.saturating_sub(start) > best.len() {
                best = start..end;
            }
        }
        at += match byte {
            b'\\' => 2,
            b'[' => 1 + class_len(&bytes[at + 1..]),
            b'{' => {
                1 + bytes[at..]
                    .iter()
                    .position(|byte| *byte == b'}')
                    .unwrap_or(0)
            }
            b'|' if depth == 0 => return None,
            _ => 1,
        };
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if special {
            start = at;
        }
    }
    let run = &regex[best];
    (run.trim().len() >= LONG_ENOUGH).then_some(run)
}

/// Returns the length of a class after its opening bracket.
fn class_len(rest: &[u8]) -> usize {
    let mut at = usize::from(rest.first() == Some(&b'^'));
    // A leading bracket in a class is literal.
    at += usize::from(rest.get(at) == Some(&b']'));
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            b']' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns several sets of literals: every match contains one of each set. Computed later, to rule a pattern out before
/// its expression is compiled.
pub(crate) fn all_required_literals(regex: &str) -> Vec<Vec<String>> {
    if !is_plain(regex) {
        return Vec::new();
    }
    let mut reader = LiteralExtractor {
        chars: regex.chars().peekable(),
    };
    let mut found = SequenceLiterals {
        others: Some(Vec::new()),
        ..SequenceLiterals::default()
    };
    reader.sequence_into(&mut found);
    // With a top-level alternative, or an unparsed rest, nothing more is certain.
    if reader.chars.peek().is_some() {
        return Vec::new();
    }
    let sets = found.others.unwrap_or_default().into_iter();
    sets.filter(|set| literal_set_weight(set) >= 2).collect()
}

/// Returns the weight of a set: long literals are best, including the shortest one.
fn literal_set_weight(set: &[String]) -> usize {
    set.iter()
        .map(|literal| literal.trim().len())
        .min()
        .unwrap_or(0)
}

struct LiteralExtractor<'r> {
    chars: Peekable<Chars<'r>>,
}

/// The literals of a sequence, while collected.
#[derive(Default)]
struct SequenceLiterals {
    run: String,
    best: Option<Vec<String>>,
    /// All candidate sets, if requested.
    others: Option<Vec<Vec<String>>>,
}

impl SequenceLiterals {
    /// Returns true if literals of this weight and number are better than the current ones.
    fn is_better(&self, weighs: usize, count: usize) -> bool {
        self.best.as_ref().is_none_or(|best| {
            (weighs, std::cmp::Reverse(count))
                > (literal_set_weight(best), std::cmp::Reverse(best.len()))
        })
    }

    fn offer(&mut self, set: Vec<String>) {
        if let Some(others) = &mut self.others {
            others.push(set.clone());
        }
        if !set.is_empty() && self.is_better(literal_set_weight(&set), set.len()) {
            self.best = Some(set);
        }
    }

    fn end_run(&mut self) {
        // Most runs are neither kept nor requested: they must not cost anything.
        let wanted = self.others.is_some() || self.is_better(self.run.trim().len(), 1);
        if !self.run.is_empty() && wanted {
            let run = self.run.to_ascii_lowercase();
            self.offer(vec![run]);
        }
        self.run.clear();
    }

    /// Removes the last character, as it may be absent.
    fn drop_last(&mut self) {
        self.run.pop();
        self.end_run();
    }
}

impl LiteralExtractor<'_> {
    /// Parses alternatives up to a closing parenthesis or the end: each must have literals.
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
        let mut found = SequenceLiterals::default();
        self.sequence_into(&mut found);
        found.best
    }

    fn sequence_into(&mut self, found: &mut SequenceLiterals) {
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

    fn plain(&mut self, c: char, found: &mut SequenceLiterals) {
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

    fn escape(&mut self, found: &mut SequenceLiterals) {
        match self.chars.next() {
            Some(c) if c.is_ascii_punctuation() => self.plain(c, found),
            _ => {
                found.end_run();
                self.may_be_absent();
            }
        }
    }

    /// Parses the inside of a group, including its closing parenthesis.
    fn group(&mut self) -> Option<Vec<String>> {
        if self.chars.next_if_eq(&'?').is_some() {
            // A name or flags: neither is part of the match.
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
        // A leading bracket in a class is literal.
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

    /// Parses an optional quantifier; returns true if it permits zero repetitions.
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
        required_literals(regex).unwrap_or_default()
    }

    #[test]
    fn longest_plain_run_is_selected() {
        assert_eq!(found(r"tokens? per minute"), [" per minute"]);
        assert_eq!(found(r"^npm (ERR!|error) code E404"), [" code e404"]);
        assert_eq!(found(r"limit reached\|\d+"), ["limit reached"]);
        assert_eq!(found(r"hit\|\d+"), ["hit|"]);
        assert_eq!(found(r"colou?r"), ["colo"]);
        assert_eq!(found(r"a{2,}bc"), ["bc"]);
        assert_eq!(found(r"[)(x]+ failed"), [" failed"]);
        assert_eq!(found(r"(?P<wait>\d+)s left"), ["s left"]);
    }

    #[test]
    fn unsupported_expression_is_rejected() {
        for regex in [
            r"it\x27s over",
            r"(?i)abcdef: ghi",
            r"(?x) a b c d",
            r"\p{L}abcdef",
        ] {
            assert_eq!(required_literals(regex), None, "{regex}");
        }
        assert_eq!(found(r"(?-i:[A-Z]+) is not set"), [" is not set"]);
        assert_eq!(found(r"(?P<x>\d+) seconds"), [" seconds"]);
    }

    #[test]
    fn long_run_is_selected_at_once() {
        assert_eq!(
            long_run(r"(a|b) connection refused[)(|]?"),
            Some(" connection refused")
        );
        assert_eq!(long_run(r"refus?ed"), None);
        assert_eq!(long_run(r"connection{2} x"), Some("connectio"));
        assert_eq!(long_run(r"\bconnection\b"), Some("connection"));
        assert_eq!(long_run(r"(connection refused)?"), None);
        assert_eq!(long_run(r"some words|other words"), None);
        assert_eq!(long_run(r"größenü?"), None);
    }

    #[test]
    fn every_alternative_must_have_literals() {
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
            all_required_literals(r"command .{0,40}(not found|missing)"),
            [vec!["command "], vec!["not found", "missing"]]
        );
        assert_eq!(
            all_required_literals(r"one two|three"),
            Vec::<Vec<String>>::new()
        );
        assert_eq!(all_required_literals(r"(maybe)? surely"), [vec![" surely"]]);
    }

    #[test]
    fn optional_parts_are_not_required() {
        assert_eq!(required_literals(r"(one|two)?"), None);
        assert_eq!(required_literals(r"(one|\d+)"), None);
        assert_eq!(required_literals(r"\d+"), None);
        assert_eq!(required_literals(r"(abc)*x"), None);
    }
}

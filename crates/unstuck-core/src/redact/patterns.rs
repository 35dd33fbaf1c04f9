//! The patterns of `data/secrets.toml`, each compiled when one of its literals is first seen.

use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use super::Secret;
use super::looks::Looks;
use super::pem::Pem;
use super::secrets_file::{PatternSpec, SecretsFile};
use crate::needles::Needles;

/// What secrets look like.
#[derive(Debug)]
pub(super) struct Patterns {
    patterns: Vec<Pattern>,
    needles: Needles,
    /// For each literal the pattern that it belongs to.
    owners: Vec<usize>,
}

#[derive(Debug)]
struct Pattern {
    spec: &'static PatternSpec,
    compiled: OnceLock<Vec<Regex>>,
}

impl Patterns {
    pub(super) fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Patterns> =
            LazyLock::new(|| Patterns::new(&SecretsFile::built_in().pattern));
        &BUILT_IN
    }

    fn new(specs: &'static [PatternSpec]) -> Self {
        let literals = || {
            let numbered = specs.iter().enumerate();
            numbered.flat_map(|(owner, spec)| spec.literals.iter().map(move |one| (owner, one)))
        };
        let compiled = OnceLock::new;
        Self {
            needles: Needles::new(literals().map(|(_, literal)| literal.as_str())),
            owners: literals().map(|(owner, _)| owner).collect(),
            patterns: specs
                .iter()
                .map(|spec| Pattern {
                    spec,
                    compiled: compiled(),
                })
                .collect(),
        }
    }

    /// Adds every place at which a pattern matches.
    pub(super) fn find(&self, text: &[u8], pem: &mut Pem, found: &mut Vec<Secret>) {
        let mut seen = vec![false; self.patterns.len()];
        self.needles
            .each(text, |place| seen[self.owners[place.needle]] = true);
        for (at, pattern) in self.patterns.iter().enumerate().filter(|(at, _)| seen[*at]) {
            pattern.find(text, at + 1, found);
        }
        // The first pattern is the one for private keys, which go on over many lines.
        if pem.is_inside() || seen.first() == Some(&true) {
            pem.walk(text, found);
        }
    }
}

impl Pattern {
    fn find(&self, text: &[u8], rank: usize, found: &mut Vec<Secret>) {
        for regex in self.compiled() {
            for captures in regex.captures_iter(text) {
                let Some(secret) = captures.name("secret").or_else(|| captures.get(0)) else {
                    continue;
                };
                if Looks::built_in().like(self.spec.value, secret.as_bytes()) {
                    let range = secret.range();
                    found.push(Secret { range, rank });
                }
            }
        }
    }

    fn compiled(&self) -> &[Regex] {
        self.compiled.get_or_init(|| {
            let compile = |regex: &String| compile(&SecretsFile::built_in().expanded(regex)).ok();
            self.spec.regex.iter().filter_map(compile).collect()
        })
    }
}

fn compile(regex: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(regex)
        .unicode(false)
        .multi_line(true)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles_and_every_pattern_has_literals() {
        let file = SecretsFile::built_in();
        for spec in &file.pattern {
            assert!(
                !spec.literals.is_empty() && !spec.regex.is_empty(),
                "{}",
                spec.id
            );
            for regex in &spec.regex {
                compile(&file.expanded(regex))
                    .unwrap_or_else(|error| panic!("{}: {error}", spec.id));
            }
        }
        assert_eq!(file.pattern[0].id, "private_key");
    }
}

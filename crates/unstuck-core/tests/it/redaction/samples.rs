//! The samples of `data/secrets.toml`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::redactor;

#[derive(Debug, Deserialize)]
struct Samples {
    sample: BTreeMap<String, Sample>,
    everyday: Everyday,
    pattern: Vec<Pattern>,
}

#[derive(Debug, Deserialize)]
struct Pattern {
    id: String,
    literals: Vec<String>,
    #[serde(default)]
    named: bool,
}

#[derive(Debug, Deserialize)]
struct Sample {
    text: Vec<String>,
    decoy: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Everyday {
    text: Vec<String>,
}

fn samples() -> Samples {
    toml::from_str(include_str!("../../../data/secrets.toml")).unwrap()
}

/// A text that contains a secret.
#[derive(Debug, Clone)]
pub(super) struct AnySecret {
    pub(super) text: String,
    pub(super) hidden: String,
}

/// A secret recognized without context, and the literal prefixes of its kind.
#[derive(Debug, Clone)]
pub(super) struct Unnamed {
    pub(super) secret: String,
    literals: Vec<String>,
}

impl Unnamed {
    /// Returns true if it begins with a literal of its pattern.
    pub(super) fn begins_with_literal(&self) -> bool {
        self.literals
            .iter()
            .any(|literal| self.secret.starts_with(literal.as_str()))
    }
}

/// Returns all secrets recognized without context.
pub(super) fn unnamed() -> Vec<Unnamed> {
    let samples = samples();
    let patterns = samples.pattern.iter().filter(|pattern| !pattern.named);
    let secrets = patterns.flat_map(|pattern| {
        let texts = &samples.sample[&pattern.id].text;
        texts.iter().filter_map(|text| {
            // The text before it may be needed.
            let rest = text.strip_prefix('«')?;
            let (secret, _) = rest.split_once('»')?;
            Some(Unnamed {
                secret: plain(secret),
                literals: pattern.literals.clone(),
            })
        })
    });
    secrets.collect()
}

/// Generates one of the single-line samples.
pub(super) fn any_secret() -> impl Strategy<Value = AnySecret> {
    let texts = samples()
        .sample
        .into_values()
        .flat_map(|sample| sample.text);
    let single = texts.filter(|text| !text.contains('\n')).map(|text| {
        let (_, rest) = text.split_once('«').unwrap();
        let (hidden, _) = rest.split_once('»').unwrap();
        AnySecret {
            text: plain(&text),
            hidden: plain(hidden),
        }
    });
    prop::sample::select(single.collect::<Vec<_>>())
}

fn plain(text: &str) -> String {
    text.replace(['«', '»', '¦'], "").replace("\\x1b", "\x1b")
}

/// Returns the redacted sample.
fn expected(id: &str, text: &str) -> String {
    let mut parts = text.split(['«', '»']).enumerate();
    parts
        .by_ref()
        .fold(String::new(), |shown, (at, part)| match at % 2 {
            0 => shown + &plain(part),
            _ => shown + &format!("[redacted:{id}]"),
        })
}

#[test]
fn every_sample_is_redacted_by_its_pattern_and_no_decoy_is() {
    let mut wrong = Vec::new();
    let mut check = |id: &str, text: &str, expected: &str| {
        let shown = redactor().redact(text).into_owned();
        if shown != expected {
            wrong.push(format!(
                "{id}: {text}\n  shown    {shown}\n  expected {expected}"
            ));
        }
    };
    let samples = samples();
    for (id, sample) in &samples.sample {
        for text in &sample.text {
            check(id, &plain(text), &expected(id, text));
        }
        for text in &sample.decoy {
            check(id, text, text);
        }
    }
    for text in &samples.everyday.text {
        check("everyday", text, text);
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_pattern_has_a_sample_and_a_decoy() {
    let samples = samples();
    for Pattern { id, .. } in &samples.pattern {
        let sample = samples
            .sample
            .get(id)
            .unwrap_or_else(|| panic!("{id} has no samples"));
        assert!(!sample.text.is_empty() && !sample.decoy.is_empty(), "{id}");
    }
}

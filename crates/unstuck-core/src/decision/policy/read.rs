//! Reading a policy from JSON or TOML, key by key, so that every mistake in it is told at once.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::failure::Kind;
use crate::nearest::nearest;

use super::super::backoff::{Curve, Jitter};
use super::check::{InvalidPolicy, Problems};
use super::{Override, RetryPolicy, template, templates};

/// A value of either format. Unlike a JSON value it keeps NaN, which TOML can write and must be refused.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Raw {
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<Self>),
    Table(BTreeMap<String, Self>),
    Null,
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "`{text}`"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
            Self::Null => f.write_str("null"),
        }
    }
}

const KEYS: [&str; 21] = [
    "id",
    "name",
    "maxRetries",
    "maxAttempts",
    "backoffBase",
    "backoffMultiplier",
    "maxBackoff",
    "retryableErrors",
    "autoEscalate",
    "escalateAfterRetries",
    "enabled",
    "description",
    "curve",
    "jitter",
    "maxElapsed",
    "maxWait",
    "maxCost",
    "confirmAbove",
    "kinds",
    "tools",
    "template",
];

const OVERRIDE_KEYS: [&str; 8] = [
    "maxRetries",
    "maxAttempts",
    "backoffBase",
    "backoffMultiplier",
    "maxBackoff",
    "curve",
    "jitter",
    "timeoutMultiplier",
];

const CURVES: [(&str, Curve); 3] = [
    ("exponential", Curve::Exponential),
    ("linear", Curve::Linear),
    ("fixed", Curve::Fixed),
];

const JITTERS: [(&str, Jitter); 3] = [
    ("none", Jitter::None),
    ("full", Jitter::Full),
    ("decorrelated", Jitter::Decorrelated),
];

impl RetryPolicy {
    /// Reads a policy from JSON.
    pub fn from_json(text: &str) -> Result<Self, InvalidPolicy> {
        serde_json::from_str(text)
            .map_err(|error| unreadable("JSON", &error))
            .and_then(Self::from_raw)
    }

    /// Reads a policy from TOML.
    pub fn from_toml(text: &str) -> Result<Self, InvalidPolicy> {
        toml::from_str(text)
            .map_err(|error| unreadable("TOML", &error))
            .and_then(Self::from_raw)
    }

    /// The policy with the keys of a JSON object laid over it; what the object leaves out stays.
    pub fn with(&self, changes: &serde_json::Value) -> Result<Self, InvalidPolicy> {
        let raw = Raw::deserialize(changes).map_err(|error| unreadable("JSON", &error))?;
        let mut problems = Problems::default();
        let policy = self.overlaid(raw, &mut problems);
        finish(policy, problems)
    }

    fn from_raw(raw: Raw) -> Result<Self, InvalidPolicy> {
        let mut problems = Problems::default();
        let policy = base(&raw, &mut problems).overlaid(raw, &mut problems);
        finish(policy, problems)
    }

    fn overlaid(&self, raw: Raw, problems: &mut Problems) -> Self {
        let mut policy = self.clone();
        let Raw::Table(table) = raw else {
            problems.add("policy", raw, "must be a table of keys");
            return policy;
        };
        for (key, raw) in table {
            policy.set(&camel(&key), raw, problems);
        }
        policy
    }

    fn set(&mut self, key: &str, raw: Raw, problems: &mut Problems) {
        let mut at = At { key, raw, problems };
        match key {
            "id" => at.text(&mut self.id),
            "name" => at.text(&mut self.name),
            "description" => at.text(&mut self.description),
            "maxRetries" => at.count(0, &mut self.max_retries),
            "maxAttempts" => at.count(1, &mut self.max_retries),
            "escalateAfterRetries" => at.count(0, &mut self.escalate_after_retries),
            "backoffBase" => at.number(&mut self.backoff_base),
            "backoffMultiplier" => at.number(&mut self.backoff_multiplier),
            "maxBackoff" => at.number(&mut self.max_backoff),
            "autoEscalate" => at.flag(&mut self.auto_escalate),
            "enabled" => at.flag(&mut self.enabled),
            "curve" => at.word(&CURVES, &mut self.curve),
            "jitter" => at.word(&JITTERS, &mut self.jitter),
            "maxElapsed" => at.duration(&mut self.max_elapsed),
            "maxWait" => at.duration(&mut self.max_wait),
            "maxCost" => at.amount(&mut self.max_cost),
            "confirmAbove" => at.amount(&mut self.confirm_above),
            "retryableErrors" => at.kinds(&mut self.retryable_errors),
            "kinds" => at.table(|name, problems| kind(name, problems), &mut self.kinds),
            "tools" => at.table(|name, _| Some(name.to_owned()), &mut self.tools),
            "template" => {}
            _ => at.unknown(&KEYS),
        }
    }
}

impl Override {
    fn set(&mut self, key: &str, mut at: At<'_>) {
        match key {
            "maxRetries" => at.count(0, self.max_retries.get_or_insert_default()),
            "maxAttempts" => at.count(1, self.max_retries.get_or_insert_default()),
            "backoffBase" => at.number(self.backoff_base.get_or_insert_default()),
            "backoffMultiplier" => at.number(self.backoff_multiplier.get_or_insert_default()),
            "maxBackoff" => at.number(self.max_backoff.get_or_insert_default()),
            "timeoutMultiplier" => at.number(self.timeout_multiplier.get_or_insert_default()),
            "curve" => at.word(&CURVES, self.curve.get_or_insert(Curve::Exponential)),
            "jitter" => at.word(&JITTERS, self.jitter.get_or_insert(Jitter::Full)),
            _ => at.unknown(&OVERRIDE_KEYS),
        }
    }
}

impl<'de> Deserialize<'de> for RetryPolicy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_raw(Raw::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The template that a policy starts from.
fn base(raw: &Raw, problems: &mut Problems) -> RetryPolicy {
    let named = match raw {
        Raw::Table(table) => table.get("template"),
        _ => None,
    };
    let Some(named) = named else {
        return RetryPolicy::default();
    };
    if let Raw::Text(name) = named
        && let Some(found) = template(name)
    {
        return found.clone();
    }
    let known: Vec<_> = templates().iter().map(|one| &*one.id).collect();
    problems.add(
        "template",
        named,
        format!("must be one of {}", known.join(", ")),
    );
    RetryPolicy::default()
}

fn finish(policy: RetryPolicy, mut problems: Problems) -> Result<RetryPolicy, InvalidPolicy> {
    policy.collect(&mut problems);
    if problems.0.is_empty() {
        Ok(policy)
    } else {
        Err(InvalidPolicy {
            problems: problems.0,
        })
    }
}

fn unreadable(format: &str, error: &dyn fmt::Display) -> InvalidPolicy {
    let mut problems = Problems::default();
    problems.add(
        "policy",
        "unreadable",
        format!("must be {format} ({error})"),
    );
    InvalidPolicy {
        problems: problems.0,
    }
}

/// `max_retries` as `maxRetries`.
fn camel(key: &str) -> String {
    let mut parts = key.split('_');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        text.push_str(letters.as_str());
    }
    text
}

fn kind(name: &str, problems: &mut Problems) -> Option<Kind> {
    match name.parse() {
        Ok(kind) => Some(kind),
        Err(unknown) => {
            let unknown: crate::failure::UnknownKind = unknown;
            problems.add("kinds", format!("`{name}`"), unknown.to_string());
            None
        }
    }
}

/// One value at its key, on its way into a field; what does not fit is told and leaves the field as it was.
struct At<'a> {
    key: &'a str,
    raw: Raw,
    problems: &'a mut Problems,
}

impl At<'_> {
    fn refuse(&mut self, why: impl Into<String>) {
        self.problems.add(self.key, &self.raw, why);
    }

    fn text(&mut self, field: &mut String) {
        match &self.raw {
            Raw::Text(text) => field.clone_from(text),
            _ => self.refuse("must be a text"),
        }
    }

    fn flag(&mut self, field: &mut bool) {
        match self.raw {
            Raw::Flag(flag) => *field = flag,
            _ => self.refuse("must be true or false"),
        }
    }

    fn number(&mut self, field: &mut f64) {
        match self.raw {
            Raw::Number(number) => *field = number,
            _ => self.refuse("must be a number"),
        }
    }

    fn amount(&mut self, field: &mut Option<f64>) {
        match self.raw {
            Raw::Number(number) => *field = Some(number),
            Raw::Null => *field = None,
            _ => self.refuse("must be an amount in USD, or null for none"),
        }
    }

    /// A whole number; `first` is what counts as none, so that attempts can be read as retries.
    fn count(&mut self, first: u16, field: &mut u32) {
        let least = f64::from(first);
        match self.raw {
            Raw::Number(n) if n.fract() == 0.0 && (least..=1000.0).contains(&n) => {
                *field = (n - least) as u32;
            }
            _ => self.refuse(format!("must be a whole number from {first} to 1000")),
        }
    }

    fn duration(&mut self, field: &mut Option<Duration>) {
        match &self.raw {
            Raw::Null => *field = None,
            Raw::Text(text) => match crate::duration::parse(text) {
                Ok(duration) => *field = Some(duration),
                Err(_) => self.refuse("must be a duration like 30s, 20m or 1h30m"),
            },
            _ => self.refuse("must be a text with a unit, like \"20m\", or null for no limit"),
        }
    }

    fn word<T: Copy>(&mut self, known: &[(&str, T)], field: &mut T) {
        let found = match &self.raw {
            Raw::Text(text) => known.iter().find(|(name, _)| name == text),
            _ => None,
        };
        match found {
            Some((_, value)) => *field = *value,
            None => {
                let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
                self.refuse(format!("must be one of {}", names.join(", ")));
            }
        }
    }

    fn kinds(&mut self, field: &mut Vec<Kind>) {
        let Raw::List(list) = &self.raw else {
            return self.refuse("must be a list of kinds");
        };
        field.clear();
        for raw in list {
            let parsed = match raw {
                Raw::Text(name) => name.parse::<Kind>().map_err(|unknown| unknown.to_string()),
                _ => Err("must be the name of a kind".to_owned()),
            };
            match parsed {
                Ok(kind) => field.push(kind),
                Err(why) => self.problems.add(self.key, raw, why),
            }
        }
    }

    /// A table of overrides; `null` takes one away.
    fn table<K: Ord>(
        &mut self,
        name: impl Fn(&str, &mut Problems) -> Option<K>,
        field: &mut BTreeMap<K, Override>,
    ) {
        let Raw::Table(table) = &self.raw else {
            return self.refuse("must be a table");
        };
        for (entry, raw) in table {
            let Some(entry_key) = name(entry, self.problems) else {
                continue;
            };
            match raw {
                Raw::Null => {
                    field.remove(&entry_key);
                }
                Raw::Table(keys) => {
                    let one = field.entry(entry_key).or_default();
                    self.problems
                        .read_override(&format!("{}.{entry}", self.key), keys, one);
                }
                other => {
                    let path = format!("{}.{entry}", self.key);
                    self.problems.add(&path, other, "must be a table");
                }
            }
        }
    }

    fn unknown(&mut self, known: &[&str]) {
        let last = self.key.rsplit('.').next().unwrap_or(self.key);
        let near = nearest(last, known.iter().map(|key| (*key, *key)));
        let hint = near
            .map(|key| format!(", did you mean `{key}`?"))
            .unwrap_or_default();
        self.refuse(format!("there is no such key{hint}"));
    }
}

impl Problems {
    fn read_override(&mut self, path: &str, keys: &BTreeMap<String, Raw>, one: &mut Override) {
        for (key, raw) in keys {
            let key = camel(key);
            let path = format!("{path}.{key}");
            let raw = raw.clone();
            let at = At {
                key: &path,
                raw,
                problems: self,
            };
            one.set(&key, at);
        }
    }
}

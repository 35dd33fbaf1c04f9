//! Reading a policy from JSON or TOML, key by key, so that every mistake in it is told at once.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::failure::Kind;

use super::super::backoff::{Curve, Jitter};
use super::check::{InvalidPolicy, Problems};
use super::value::{At, Raw, camel};
use super::{Override, RetryPolicy, template, templates};

const KEYS: [&str; 22] = [
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
    "giveUpAfter",
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

const JITTERS: [(&str, Jitter); 4] = [
    ("none", Jitter::None),
    ("full", Jitter::Full),
    ("equal", Jitter::Equal),
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
        let names = |wanted: &str| table.keys().any(|key| camel(key) == wanted);
        if (names("maxRetries") || names("maxAttempts")) && !names("giveUpAfter") {
            policy.give_up_after = None;
        }
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
            "giveUpAfter" => at.duration(&mut self.give_up_after),
            "maxElapsed" => at.duration(&mut self.max_elapsed),
            "maxWait" => at.duration(&mut self.max_wait),
            "maxCost" => at.amount(&mut self.max_cost),
            "confirmAbove" => at.amount(&mut self.confirm_above),
            "retryableErrors" => at.kinds(&mut self.retryable_errors),
            "kinds" => at.table(kind, &mut self.kinds),
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

impl<'de> Deserialize<'de> for Override {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = BTreeMap::deserialize(deserializer)?;
        let mut problems = Problems::default();
        let mut one = Self::default();
        problems.read_override("override", &keys, &mut one);
        // The policy that it will belong to is not known yet, so only what is wrong under any policy is refused.
        let any = RetryPolicy {
            curve: Curve::Linear,
            max_backoff: f64::INFINITY,
            ..RetryPolicy::default()
        };
        any.check_override("override", &one, &mut problems);
        match problems.0 {
            problems if problems.is_empty() => Ok(one),
            problems => Err(serde::de::Error::custom(InvalidPolicy { problems })),
        }
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

impl Problems {
    pub(super) fn read_override(
        &mut self,
        path: &str,
        keys: &BTreeMap<String, Raw>,
        one: &mut Override,
    ) {
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

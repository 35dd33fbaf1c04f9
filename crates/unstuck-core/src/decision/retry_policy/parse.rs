//! Parsing of policies from JSON or TOML, key by key, so that all mistakes are reported at once.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::failure::FailureKind;

use super::super::backoff::{BackoffCurve, Jitter};
use super::policy_value::{FieldSetter, PolicyValue, policy_key};
use super::validation::{InvalidRetryPolicy, PolicyProblems};
use super::{RetryPolicy, RetryPolicyOverride, template, templates};

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

const CURVES: [(&str, BackoffCurve); 3] = [
    ("exponential", BackoffCurve::Exponential),
    ("linear", BackoffCurve::Linear),
    ("fixed", BackoffCurve::Fixed),
];

const JITTERS: [(&str, Jitter); 4] = [
    ("none", Jitter::None),
    ("full", Jitter::Full),
    ("equal", Jitter::Equal),
    ("decorrelated", Jitter::Decorrelated),
];

impl RetryPolicy {
    /// Parses a policy from JSON.
    pub fn from_json(text: &str) -> Result<Self, InvalidRetryPolicy> {
        serde_json::from_str(text)
            .map_err(|error| unreadable("JSON", &error))
            .and_then(Self::from_raw)
    }

    /// Parses a policy from TOML.
    pub fn from_toml(text: &str) -> Result<Self, InvalidRetryPolicy> {
        toml::from_str(text)
            .map_err(|error| unreadable("TOML", &error))
            .and_then(Self::from_raw)
    }

    /// Returns the policy with the keys of a JSON object applied; absent keys stay.
    pub fn with_json(&self, changes: &serde_json::Value) -> Result<Self, InvalidRetryPolicy> {
        let raw = PolicyValue::deserialize(changes).map_err(|error| unreadable("JSON", &error))?;
        let mut problems = PolicyProblems::default();
        let policy = self.with_raw(raw, &mut problems);
        finish(policy, problems)
    }

    fn from_raw(raw: PolicyValue) -> Result<Self, InvalidRetryPolicy> {
        let mut problems = PolicyProblems::default();
        let policy = base_template(&raw, &mut problems).with_raw(raw, &mut problems);
        finish(policy, problems)
    }

    fn with_raw(&self, raw: PolicyValue, problems: &mut PolicyProblems) -> Self {
        let mut policy = self.clone();
        let PolicyValue::Table(table) = raw else {
            problems.add("policy", raw, "must be a table");
            return policy;
        };
        let names = |wanted: &str| table.keys().any(|key| policy_key(key) == wanted);
        if (names("maxRetries") || names("maxAttempts")) && !names("giveUpAfter") {
            policy.give_up_after = None;
        }
        for (key, raw) in table {
            policy.set(&policy_key(&key), raw, problems);
        }
        policy
    }

    fn set(&mut self, key: &str, raw: PolicyValue, problems: &mut PolicyProblems) {
        let mut at = FieldSetter { key, raw, problems };
        match key {
            "id" => at.set_text(&mut self.id),
            "name" => at.set_text(&mut self.name),
            "description" => at.set_text(&mut self.description),
            "maxRetries" => at.set_count(0, &mut self.max_retries),
            "maxAttempts" => at.set_count(1, &mut self.max_retries),
            "escalateAfterRetries" => at.set_count(0, &mut self.switch_model_after_retries),
            "backoffBase" => at.set_number(&mut self.backoff_base),
            "backoffMultiplier" => at.set_number(&mut self.backoff_multiplier),
            "maxBackoff" => at.set_number(&mut self.max_backoff),
            "autoEscalate" => at.set_flag(&mut self.auto_switch_model),
            "enabled" => at.set_flag(&mut self.enabled),
            "curve" => at.set_keyword(&CURVES, &mut self.curve),
            "jitter" => at.set_keyword(&JITTERS, &mut self.jitter),
            "giveUpAfter" => at.set_duration(&mut self.give_up_after),
            "maxElapsed" => at.set_duration(&mut self.max_elapsed),
            "maxWait" => at.set_duration(&mut self.max_wait),
            "maxCost" => at.set_amount(&mut self.max_cost),
            "confirmAbove" => at.set_amount(&mut self.confirm_above),
            "retryableErrors" => at.set_kinds(&mut self.retryable_errors),
            "kinds" => at.set_overrides(parse_kind, &mut self.kinds),
            "tools" => at.set_overrides(|name, _| Some(name.to_owned()), &mut self.tools),
            "template" => {}
            _ => at.report_unknown_key(&KEYS),
        }
    }
}

impl RetryPolicyOverride {
    fn set(&mut self, key: &str, mut at: FieldSetter<'_>) {
        match key {
            "maxRetries" => at.set_count(0, self.max_retries.get_or_insert_default()),
            "maxAttempts" => at.set_count(1, self.max_retries.get_or_insert_default()),
            "backoffBase" => at.set_number(self.backoff_base.get_or_insert_default()),
            "backoffMultiplier" => at.set_number(self.backoff_multiplier.get_or_insert_default()),
            "maxBackoff" => at.set_number(self.max_backoff.get_or_insert_default()),
            "timeoutMultiplier" => at.set_number(self.timeout_multiplier.get_or_insert_default()),
            "curve" => at.set_keyword(&CURVES, self.curve.get_or_insert(BackoffCurve::Exponential)),
            "jitter" => at.set_keyword(&JITTERS, self.jitter.get_or_insert(Jitter::Full)),
            _ => at.report_unknown_key(&OVERRIDE_KEYS),
        }
    }
}

impl<'de> Deserialize<'de> for RetryPolicy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_raw(PolicyValue::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for RetryPolicyOverride {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = BTreeMap::deserialize(deserializer)?;
        let mut problems = PolicyProblems::default();
        let mut one = Self::default();
        problems.read_override("override", &keys, &mut one);
        // The policy that it will belong to is unknown, so only values that are invalid under any policy are rejected.
        let any = RetryPolicy {
            curve: BackoffCurve::Linear,
            max_backoff: f64::INFINITY,
            ..RetryPolicy::default()
        };
        any.check_override("override", &one, &mut problems);
        match problems.0 {
            problems if problems.is_empty() => Ok(one),
            problems => Err(serde::de::Error::custom(InvalidRetryPolicy { problems })),
        }
    }
}

/// Returns the template that a policy is based on.
fn base_template(raw: &PolicyValue, problems: &mut PolicyProblems) -> RetryPolicy {
    let named = match raw {
        PolicyValue::Table(table) => table.get("template"),
        _ => None,
    };
    let Some(named) = named else {
        return RetryPolicy::default();
    };
    if let PolicyValue::Text(name) = named
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

fn finish(
    policy: RetryPolicy,
    mut problems: PolicyProblems,
) -> Result<RetryPolicy, InvalidRetryPolicy> {
    policy.collect_problems(&mut problems);
    if problems.0.is_empty() {
        Ok(policy)
    } else {
        Err(InvalidRetryPolicy {
            problems: problems.0,
        })
    }
}

fn unreadable(format: &str, error: &dyn fmt::Display) -> InvalidRetryPolicy {
    let mut problems = PolicyProblems::default();
    problems.add(
        "policy",
        "unreadable",
        format!("must be {format} ({error})"),
    );
    InvalidRetryPolicy {
        problems: problems.0,
    }
}

fn parse_kind(name: &str, problems: &mut PolicyProblems) -> Option<FailureKind> {
    match name.parse() {
        Ok(kind) => Some(kind),
        Err(unknown) => {
            let unknown: crate::failure::UnknownFailureKind = unknown;
            problems.add("kinds", format!("`{name}`"), unknown.to_string());
            None
        }
    }
}

impl PolicyProblems {
    pub(super) fn read_override(
        &mut self,
        path: &str,
        keys: &BTreeMap<String, PolicyValue>,
        one: &mut RetryPolicyOverride,
    ) {
        for (key, raw) in keys {
            let key = policy_key(key);
            let path = format!("{path}.{key}");
            let raw = raw.clone();
            let at = FieldSetter {
                key: &path,
                raw,
                problems: self,
            };
            one.set(&key, at);
        }
    }
}

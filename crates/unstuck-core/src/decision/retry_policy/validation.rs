//! Validation of policies: all problems are collected, with the given and the allowed values.

use std::fmt;

use serde::Serialize;

use super::super::backoff::BackoffCurve;
use super::{RetryPolicy, RetryPolicyOverride};

/// A problem of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RetryPolicyProblem {
    /// The key, with its tables: `kinds.timeout.maxRetries`.
    pub field: String,
    /// The given value.
    pub value: String,
    /// The allowed values.
    pub expected: String,
}

impl fmt::Display for RetryPolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {}: {}", self.field, self.value, self.expected)
    }
}

/// An invalid policy, with all its problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid policy: {}", list(.problems))]
pub struct InvalidRetryPolicy {
    /// All problems.
    pub problems: Vec<RetryPolicyProblem>,
}

fn list(problems: &[RetryPolicyProblem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

/// Collects problems under a path of keys.
#[derive(Debug, Default)]
pub(super) struct PolicyProblems(pub(super) Vec<RetryPolicyProblem>);

impl PolicyProblems {
    pub(super) fn add(&mut self, field: &str, value: impl fmt::Display, why: impl Into<String>) {
        self.0.push(RetryPolicyProblem {
            field: field.to_owned(),
            value: value.to_string(),
            expected: why.into(),
        });
    }

    /// Adds a problem unless the number is at least `least`; NaN and infinity never are.
    fn require_at_least(&mut self, field: &str, value: f64, least: f64) {
        if !value.is_finite() || value < least {
            self.add(field, value, format!("must be a number, {least} or more"));
        }
    }
}

impl RetryPolicy {
    /// Checks that the values are consistent; all problems are reported at once.
    pub fn check(&self) -> Result<(), InvalidRetryPolicy> {
        let mut problems = PolicyProblems::default();
        self.collect_problems(&mut problems);
        match problems.0 {
            problems if problems.is_empty() => Ok(()),
            problems => Err(InvalidRetryPolicy { problems }),
        }
    }

    pub(super) fn collect_problems(&self, problems: &mut PolicyProblems) {
        if self.id.trim().is_empty() {
            problems.add("id", "empty", "must be a name");
        }
        self.check_waits(problems);
        self.check_model_switch(problems);
        for (name, cost) in [
            ("maxCost", self.max_cost),
            ("confirmAbove", self.confirm_above),
        ] {
            if let Some(cost) = cost {
                problems.require_at_least(name, cost, 0.0);
            }
        }
        for (kind, one) in &self.kinds {
            self.check_override(&format!("kinds.{kind}"), one, problems);
        }
        for (tool, one) in &self.tools {
            self.check_override(&format!("tools.{tool}"), one, problems);
        }
    }

    fn check_waits(&self, problems: &mut PolicyProblems) {
        problems.require_at_least("backoffBase", self.backoff_base, 0.0);
        problems.require_at_least(
            "backoffMultiplier",
            self.backoff_multiplier,
            least_multiplier(self.curve),
        );
        problems.require_at_least("maxBackoff", self.max_backoff, 0.0);
        if self.curve != BackoffCurve::Linear && self.max_backoff < self.backoff_base {
            let why = format!("must not be less than backoffBase ({})", self.backoff_base);
            problems.add("maxBackoff", self.max_backoff, why);
        }
    }

    fn check_model_switch(&self, problems: &mut PolicyProblems) {
        if self.auto_switch_model && self.switch_model_after_retries > self.max_retries {
            let why = format!(
                "must not exceed maxRetries ({}) if autoEscalate is on",
                self.max_retries
            );
            problems.add("escalateAfterRetries", self.switch_model_after_retries, why);
        }
    }

    pub(super) fn check_override(
        &self,
        path: &str,
        one: &RetryPolicyOverride,
        problems: &mut PolicyProblems,
    ) {
        let curve = one.curve.unwrap_or(self.curve);
        let checks = [
            ("backoffBase", one.backoff_base, 0.0),
            (
                "backoffMultiplier",
                one.backoff_multiplier,
                least_multiplier(curve),
            ),
            ("maxBackoff", one.max_backoff, 0.0),
            ("timeoutMultiplier", one.timeout_multiplier, 0.1),
        ];
        for (name, value, least) in checks {
            if let Some(value) = value {
                problems.require_at_least(&format!("{path}.{name}"), value, least);
            }
        }
        let base = one.backoff_base.unwrap_or(self.backoff_base);
        let cap = one.max_backoff.unwrap_or(self.max_backoff);
        let states = one.backoff_base.is_some() || one.max_backoff.is_some();
        if states && curve != BackoffCurve::Linear && cap < base {
            let why = format!("must not be less than backoffBase ({base})");
            problems.add(&format!("{path}.maxBackoff"), cap, why);
        }
    }
}

/// Returns the minimum multiplier; decreasing delays would be no backoff.
fn least_multiplier(curve: BackoffCurve) -> f64 {
    if curve == BackoffCurve::Exponential {
        1.0
    } else {
        0.0
    }
}

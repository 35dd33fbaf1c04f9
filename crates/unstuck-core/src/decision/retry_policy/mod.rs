//! The retry policy: retries, delays, costs, and required approvals.

mod parse;
mod policy_value;
mod retry_limits;
mod templates;
mod validation;

pub use policy_value::policy_key;
pub(crate) use retry_limits::RetryLimitKey;
pub use retry_limits::RetryLimits;
pub use templates::{DEFAULT_TEMPLATE, default_template, template, templates};
pub use validation::{InvalidRetryPolicy, RetryPolicyProblem};

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::failure::FailureKind;

use super::backoff::{Backoff, BackoffCurve, Jitter};

/// The limits of recovery before a human is asked.
///
/// Its JSON form is served by the REST API. Keys are parsed in camelCase or snake_case; absent values are those of the
/// template named by `template`, or of `resilient`. A number of retries without `giveUpAfter` is a count limit.
///
/// ```
/// use unstuck_core::decision::RetryPolicy;
///
/// let policy = RetryPolicy::from_json(r#"{"template": "patient", "maxRetries": 5}"#)?;
/// assert_eq!((policy.max_retries, policy.backoff_base), (5, 5.0));
/// let wrong = RetryPolicy::from_json(r#"{"maxRetry": 5, "backoffBase": -1}"#).unwrap_err();
/// assert_eq!(wrong.problems.len(), 2);
/// # Ok::<(), unstuck_core::decision::InvalidRetryPolicy>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// The id in the configuration.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The number of retries after the first attempt (3 retries are 4 executions).
    ///
    /// If `give_up_after` is set, it does not apply to unchanged retries of transient kinds.
    pub max_retries: u32,
    /// The first delay, in seconds.
    pub backoff_base: f64,
    /// The factor between consecutive delays.
    pub backoff_multiplier: f64,
    /// The maximum delay, in seconds.
    pub max_backoff: f64,
    /// The kinds that are retried unchanged; empty means all transient ones.
    ///
    /// It only restricts: a systematic kind in the list is still not retried unchanged. A transient kind that is not in
    /// the list goes straight to its chain.
    pub retryable_errors: Vec<FailureKind>,
    /// True if the model may be switched without approval.
    #[serde(rename = "autoEscalate")]
    pub auto_switch_model: bool,
    /// The number of retries after which the model is switched before anything else is tried.
    #[serde(rename = "escalateAfterRetries")]
    pub switch_model_after_retries: u32,
    /// True if recovery is enabled; `off` returns every failure unchanged.
    pub enabled: bool,
    /// A one-line description.
    pub description: String,
    /// The growth of delays.
    pub curve: BackoffCurve,
    /// The spread of delays.
    pub jitter: Jitter,
    /// The time for which a transient kind is retried without progress (a successful API call or a completed tool
    /// result), excluding waits for a stated reset; if absent, `max_retries` applies.
    #[serde(serialize_with = "crate::duration::optional_text::serialize")]
    pub give_up_after: Option<Duration>,
    /// The maximum time of recovery, excluding waits for a stated reset; unlimited if absent.
    #[serde(serialize_with = "crate::duration::optional_text::serialize")]
    pub max_elapsed: Option<Duration>,
    /// The maximum stated wait without approval; unlimited if absent.
    #[serde(serialize_with = "crate::duration::optional_text::serialize")]
    pub max_wait: Option<Duration>,
    /// The maximum cost of a session in USD; unlimited if absent.
    pub max_cost: Option<f64>,
    /// The maximum extra cost of more expensive models per session without approval, in USD; unlimited if absent.
    pub confirm_above: Option<f64>,
    /// Overrides by kind.
    pub kinds: KindPolicyOverrides,
    /// Overrides by tool.
    pub tools: BTreeMap<String, RetryPolicyOverride>,
}

/// Overrides of the policy's general values, by kind.
pub type KindPolicyOverrides = BTreeMap<FailureKind, RetryPolicyOverride>;

/// Overrides for one kind or one tool; absent values are the policy's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicyOverride {
    /// The number of retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// The first delay, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_base: Option<f64>,
    /// The factor between consecutive delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_multiplier: Option<f64>,
    /// The maximum delay, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_backoff: Option<f64>,
    /// The growth of delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<BackoffCurve>,
    /// The spread of delays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// The factor by which a strategy increases the timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_multiplier: Option<f64>,
}

impl Default for RetryPolicy {
    /// Returns the values of the template `resilient`; a test ensures that they are equal.
    fn default() -> Self {
        const HOUR: Duration = Duration::from_secs(3600);
        Self {
            id: DEFAULT_TEMPLATE.into(),
            name: "Resilient".into(),
            max_retries: 3,
            backoff_base: 0.5,
            backoff_multiplier: 2.0,
            max_backoff: 60.0,
            retryable_errors: Vec::new(),
            auto_switch_model: false,
            switch_model_after_retries: 3,
            enabled: true,
            description: String::new(),
            curve: BackoffCurve::Exponential,
            jitter: Jitter::Equal,
            give_up_after: Some(HOUR / 2),
            max_elapsed: Some(HOUR * 12),
            max_wait: Some(HOUR * 24 * 8),
            max_cost: None,
            confirm_above: Some(1.0),
            kinds: BTreeMap::new(),
            tools: BTreeMap::new(),
        }
    }
}

impl RetryPolicy {
    /// Returns the backoff if nothing more specific is set.
    pub fn backoff(&self) -> Backoff {
        Backoff {
            curve: self.curve,
            jitter: self.jitter,
            base: self.backoff_base,
            multiplier: self.backoff_multiplier,
            cap: self.max_backoff,
        }
    }

    /// Retries transient failures for at least this long without progress, whatever else limits them.
    pub fn extend_give_up_after(&mut self, time: Duration) {
        self.give_up_after = Some(time);
        self.max_elapsed = self.max_elapsed.map(|most| most.max(time));
    }

    /// Returns a fingerprint of its values (FNV-1a), used to compare the policies of two decisions.
    pub fn fingerprint(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        let mixed = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{mixed:016x}")
    }

    /// True if spending this much more on a more expensive model needs approval, given the extra cost so far (USD). If
    /// there is a limit, an unknown cost needs approval.
    pub fn needs_cost_confirmation(&self, before: f64, more: Option<f64>) -> bool {
        self.confirm_above
            .is_some_and(|limit| more.is_none_or(|usd| usd > 0.0 && before + usd > limit))
    }

    /// True if a kind may be retried unchanged.
    pub fn is_retryable(&self, kind: FailureKind) -> bool {
        self.retryable_errors.is_empty() || self.retryable_errors.contains(&kind)
    }
}

#[cfg(test)]
mod tests;

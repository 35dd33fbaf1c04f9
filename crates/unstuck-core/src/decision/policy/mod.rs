//! How far to go: retries, waits, money, and what is asked first.

mod parse;
mod policy_value;
mod retry_limits;
mod templates;
mod validation;

pub use policy_value::policy_key;
pub(crate) use retry_limits::FailureScope;
pub use retry_limits::RetryLimits;
pub use templates::{DEFAULT_TEMPLATE, default_template, template, templates};
pub use validation::{InvalidPolicy, PolicyProblem};

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::failure::Kind;

use super::backoff::{Backoff, BackoffCurve, Jitter};

/// How far to go before a person is asked.
///
/// Its JSON form is what the REST API serves. Keys are read in camelCase or snake_case; what is left out is that of
/// the template named by `mask_line`, or of `resilient`. A number of retries without `giveUpAfter` is a count limit.
///
/// ```
/// use unstuck_core::decision::RetryPolicy;
///
/// let policy = RetryPolicy::from_json(r#"{"template": "patient", "maxRetries": 5}"#)?;
/// assert_eq!((policy.max_retries, policy.backoff_base), (5, 5.0));
/// let wrong = RetryPolicy::from_json(r#"{"maxRetry": 5, "backoffBase": -1}"#).unwrap_err();
/// assert_eq!(wrong.problems.len(), 2);
/// # Ok::<(), unstuck_core::decision::InvalidPolicy>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// The id by which it is named in configuration.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// How many retries there are after the first try (3 retries are 4 executions).
    ///
    /// Where there is `give_up_after`, it does not count for transient kinds repeated unchanged.
    pub max_retries: u32,
    /// The first wait, in seconds.
    pub backoff_base: f64,
    /// What each wait is multiplied by.
    pub backoff_multiplier: f64,
    /// The longest wait, in seconds.
    pub max_backoff: f64,
    /// The kinds that are repeated unchanged; empty means all that are transient.
    ///
    /// It only ever restricts: a systematic kind in the list is still not repeated unchanged. A transient kind that is
    /// not in the list goes straight to its chain.
    pub retryable_errors: Vec<Kind>,
    /// Whether the model may be changed without asking.
    #[serde(rename = "autoEscalate")]
    pub auto_switch_model: bool,
    /// After how many retries the model is changed before anything else is tried.
    #[serde(rename = "escalateAfterRetries")]
    pub switch_model_after_retries: u32,
    /// Whether anything is done at all; `off` passes everything through.
    pub enabled: bool,
    /// One line about it, for people.
    pub description: String,
    /// How waits grow.
    pub curve: BackoffCurve,
    /// How waits are spread.
    pub jitter: Jitter,
    /// How long a transient kind is repeated without progress (a successful API call or a completed tool result), waits
    /// for a stated reset aside; none means that `max_retries` counts.
    #[serde(serialize_with = "crate::duration::optional_text::serialize")]
    pub give_up_after: Option<Duration>,
    /// How long recovery may take, waits for a stated reset aside; none means no cap.
    #[serde(serialize_with = "crate::duration::optional_text::serialize")]
    pub max_elapsed: Option<Duration>,
    /// The longest stated wait that is waited for without asking; none means any.
    #[serde(serialize_with = "crate::duration::optional_text::serialize")]
    pub max_wait: Option<Duration>,
    /// What a session may cost, in USD; none means no cap.
    pub max_cost: Option<f64>,
    /// What dearer models may cost more in a session, in USD, before a person is asked; none means never asked.
    pub confirm_above: Option<f64>,
    /// What holds for single kinds.
    pub kinds: PolicyOverrides,
    /// What holds for single tools.
    pub tools: BTreeMap<String, PolicyOverride>,
}

/// What holds for single kinds, instead of the policy's general values.
pub type PolicyOverrides = BTreeMap<Kind, PolicyOverride>;

/// What holds for one kind or one tool; what is left out is the policy's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyOverride {
    /// How many retries there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// The first wait, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_base: Option<f64>,
    /// What each wait is multiplied by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_multiplier: Option<f64>,
    /// The longest wait, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_backoff: Option<f64>,
    /// How waits grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<BackoffCurve>,
    /// How waits are spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// What the allowed time is multiplied by where a strategy lengthens it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_multiplier: Option<f64>,
}

impl Default for RetryPolicy {
    /// The values of the template `resilient`; a test holds the two together.
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
    /// How the waits go where nothing more specific is said.
    pub fn backoff(&self) -> Backoff {
        Backoff {
            curve: self.curve,
            jitter: self.jitter,
            base: self.backoff_base,
            multiplier: self.backoff_multiplier,
            cap: self.max_backoff,
        }
    }

    /// Retries what passes by itself for so long without progress, whatever else bounds it.
    pub fn extend_give_up_after(&mut self, time: Duration) {
        self.give_up_after = Some(time);
        self.max_elapsed = self.max_elapsed.map(|most| most.max(time));
    }

    /// A fingerprint of its values (FNV-1a), to see whether two decisions were made under the same.
    pub fn fingerprint(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        let mixed = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{mixed:016x}")
    }

    /// Whether a person is asked before so much more is spent on a dearer model, after so much was spent on such before
    /// (USD). Where there is a limit, what costs an unknown amount is asked about.
    pub fn needs_cost_confirmation(&self, before: f64, more: Option<f64>) -> bool {
        self.confirm_above
            .is_some_and(|limit| more.is_none_or(|usd| usd > 0.0 && before + usd > limit))
    }

    /// Whether a kind may be repeated unchanged.
    pub fn is_retryable(&self, kind: Kind) -> bool {
        self.retryable_errors.is_empty() || self.retryable_errors.contains(&kind)
    }
}

#[cfg(test)]
mod tests;

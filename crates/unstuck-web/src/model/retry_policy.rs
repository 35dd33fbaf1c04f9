//! The wire format of a retry policy: how far to recover before asking a human.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unstuck_core::decision::RetryPolicy;
use utoipa::ToSchema;

/// A retry policy. Omitted fields take the value of the template, or of `resilient`.
///
/// Only describes the wire format that [`RetryPolicy`] reads and writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicyBody {
    /// Template that supplies omitted values; write-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Id used in the configuration.
    #[serde(default)]
    pub id: Option<String>,
    /// Display name.
    #[serde(default)]
    pub name: Option<String>,
    /// One-line description.
    #[serde(default)]
    pub description: Option<String>,
    /// If false, failures are passed through without recovery.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// Number of retries after the first attempt (3 retries are 4 executions).
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    pub max_retries: Option<u32>,
    /// First delay in seconds.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub backoff_base: Option<f64>,
    /// Factor between consecutive delays.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub backoff_multiplier: Option<f64>,
    /// Maximum delay in seconds.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub max_backoff: Option<f64>,
    /// Kinds that are retried unchanged; empty means all transient kinds.
    #[serde(default)]
    pub retryable_errors: Option<Vec<String>>,
    /// If true, the model may be switched without approval.
    #[serde(default)]
    pub auto_escalate: Option<bool>,
    /// Number of retries after which the model is switched before other strategies.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    pub escalate_after_retries: Option<u32>,
    /// Backoff curve: `exponential`, `linear` or `fixed`.
    #[serde(default)]
    pub curve: Option<String>,
    /// Jitter: `none`, `full`, `equal` or `decorrelated`.
    #[serde(default)]
    pub jitter: Option<String>,
    /// Time after which retries of a transient kind without progress stop, such as `30m`; null means that `maxRetries`
    /// applies.
    #[serde(default)]
    pub give_up_after: Option<String>,
    /// Maximum recovery time, such as `6h`; null means no cap.
    #[serde(default)]
    pub max_elapsed: Option<String>,
    /// Longest stated delay that is waited for without approval, such as `6h`; null means any.
    #[serde(default)]
    pub max_wait: Option<String>,
    /// Maximum cost of a session in USD; null means no cap.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub max_cost: Option<f64>,
    /// Extra cost of more expensive models in a session, in USD, above which approval is required; null means never.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub confirm_above: Option<f64>,
    /// Overrides for single kinds.
    #[serde(default)]
    pub kinds: BTreeMap<String, PolicyOverride>,
    /// Overrides for single tools.
    #[serde(default)]
    pub tools: BTreeMap<String, PolicyOverride>,
}

/// Overrides for one kind or tool; omitted fields take the value of the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyOverride {
    /// Number of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// First delay in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_base: Option<f64>,
    /// Factor between consecutive delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_multiplier: Option<f64>,
    /// Maximum delay in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_backoff: Option<f64>,
    /// Backoff curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<String>,
    /// Jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// Factor applied to the time limit by strategies that extend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_multiplier: Option<f64>,
}

/// The source of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyOrigin {
    /// Set through the API.
    Set,
    /// Defined in a configuration file.
    Configured,
    /// Built into the program.
    BuiltIn,
    /// Default of all projects.
    Default,
}

/// An effective policy and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveRetryPolicy {
    /// The policy.
    pub policy: RetryPolicy,
    /// Source of the policy.
    pub origin: PolicyOrigin,
    /// Version of the value set through the API; 0 if none is set.
    pub version: u64,
}

impl EffectiveRetryPolicy {
    /// Returns the ETag of this version.
    pub fn etag(&self) -> String {
        format!("\"{}-{}\"", self.version, self.policy.fingerprint())
    }
}

/// A policy template, built in or configured.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicyTemplateResponse {
    /// Values of the template.
    #[serde(flatten)]
    #[schema(value_type = RetryPolicyBody)]
    pub policy: RetryPolicy,
}

//! A retry policy on the wire: how far to go before a person is asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unstuck_core::decision::RetryPolicy;
use utoipa::ToSchema;

/// How far to go before a person is asked. What is left out is that of the template, or of `resilient`.
///
/// It only describes what [`RetryPolicy`] reads and writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The template that what is left out is taken from; only read, never told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The id by which it is named in configuration.
    #[serde(default)]
    pub id: Option<String>,
    /// What it is called.
    #[serde(default)]
    pub name: Option<String>,
    /// One line about it, for people.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether anything is done at all; `false` passes everything through.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// How many retries there are after the first try (3 retries are 4 executions).
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    pub max_retries: Option<u32>,
    /// The first wait, in seconds.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub backoff_base: Option<f64>,
    /// What each wait is multiplied by.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub backoff_multiplier: Option<f64>,
    /// The longest wait, in seconds.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub max_backoff: Option<f64>,
    /// The kinds that are repeated unchanged; empty means all that are transient.
    #[serde(default)]
    pub retryable_errors: Option<Vec<String>>,
    /// Whether the model may be changed without asking.
    #[serde(default)]
    pub auto_escalate: Option<bool>,
    /// After how many retries the model is changed before anything else is tried.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    pub escalate_after_retries: Option<u32>,
    /// How waits grow: `exponential`, `linear` or `fixed`.
    #[serde(default)]
    pub curve: Option<String>,
    /// How waits are spread: `none`, `full`, `equal` or `decorrelated`.
    #[serde(default)]
    pub jitter: Option<String>,
    /// How long a transient kind is repeated without progress, such as `30m`; null means that `maxRetries` counts.
    #[serde(default)]
    pub give_up_after: Option<String>,
    /// How long recovery may take, such as `6h`; null means no cap.
    #[serde(default)]
    pub max_elapsed: Option<String>,
    /// The longest stated wait that is waited for without asking, such as `6h`; null means any.
    #[serde(default)]
    pub max_wait: Option<String>,
    /// What a session may cost, in USD; null means no cap.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub max_cost: Option<f64>,
    /// What dearer models may cost more in a session, in USD, before a person is asked; null means never asked.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub confirm_above: Option<f64>,
    /// What holds for single kinds.
    #[serde(default)]
    pub kinds: BTreeMap<String, PolicyOverride>,
    /// What holds for single tools.
    #[serde(default)]
    pub tools: BTreeMap<String, PolicyOverride>,
}

/// What holds for one kind or one tool; what is left out is the policy's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyOverride {
    /// How many retries there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// The first wait, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_base: Option<f64>,
    /// What each wait is multiplied by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_multiplier: Option<f64>,
    /// The longest wait, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_backoff: Option<f64>,
    /// How waits grow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<String>,
    /// How waits are spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<String>,
    /// What the allowed time is multiplied by where a strategy lengthens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_multiplier: Option<f64>,
}

/// Where a policy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyOrigin {
    /// It was set over the API.
    Set,
    /// A configuration file says so.
    Configured,
    /// It is the one that comes with the program.
    BuiltIn,
    /// It is the default of all projects.
    Default,
}

/// A policy that counts, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectivePolicy {
    /// The policy.
    pub policy: RetryPolicy,
    /// Where it comes from.
    pub origin: PolicyOrigin,
    /// The version of what was set over the API; 0 where nothing is.
    pub version: u64,
}

impl EffectivePolicy {
    /// What tells two versions of it apart.
    pub fn etag(&self) -> String {
        format!("\"{}-{}\"", self.version, self.policy.fingerprint())
    }
}

/// A policy that comes with the program or its configuration.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyTemplate {
    /// Its values.
    #[serde(flatten)]
    #[schema(value_type = Policy)]
    pub policy: RetryPolicy,
}

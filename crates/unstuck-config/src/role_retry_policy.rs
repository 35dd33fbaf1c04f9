//! The retry policy of a role, with the settings of `[error_recovery]` and the role for each kind.
//!
//! A role's own setting for a kind wins, even above `max_auto_retries`. A setting of `[error_recovery]` is bounded by
//! it: the smaller one applies.

use std::collections::BTreeMap;

use unstuck_core::decision::{BackoffCurve, Jitter, RetryPolicyOverride, template};
use unstuck_core::{FailureKind, RetryPolicy};

use crate::config::Config;
use crate::problem::ConfigError;
use crate::section::{FailureKindRecoverySection, RoleSection};

/// The retry policy of a role, with the source of its values.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleRetryPolicy {
    /// The policy.
    pub policy: RetryPolicy,
    /// The sources by key: `policy`, `maxRetries`, `kinds.timeout.maxRetries` and so on.
    pub origins: BTreeMap<String, String>,
}

impl Config {
    /// Returns the policy id for roles without their own.
    pub fn default_role_policy(&self) -> String {
        self.policies.for_roles().id
    }

    /// Returns the policy of a role.
    pub fn policy_for(&self, role: &RoleSection) -> Result<RoleRetryPolicy, ConfigError> {
        let mut made = self.base_for(role)?;
        if !made.policy.enabled {
            return Ok(made);
        }
        self.apply_retry_cap(role, &mut made);
        let cap = made.policy.max_retries;
        for (kind, recovery) in &self.root.error_recovery.strategies {
            let place = format!("error_recovery.strategies.{kind}");
            self.apply_kind(&mut made, *kind, recovery, &place);
            let one = made.policy.kinds.entry(*kind).or_default();
            if recovery.max_retries.is_some_and(|retries| retries > cap) {
                one.max_retries = Some(cap);
                let from = made
                    .origins
                    .get("maxRetries")
                    .or(made.origins.get("policy"));
                let from = from.cloned().unwrap_or_default();
                made.origins
                    .insert(format!("kinds.{kind}.maxRetries"), from);
            }
        }
        for (kind, recovery) in &role.error_recovery {
            let place = format!("role.{}.error_recovery.{kind}", role.id);
            self.apply_kind(&mut made, *kind, recovery, &place);
        }
        self.validated(role, made)
    }

    /// Returns the policy before settings for single kinds.
    fn base_for(&self, role: &RoleSection) -> Result<RoleRetryPolicy, ConfigError> {
        let made = |policy: RetryPolicy, from: String| RoleRetryPolicy {
            policy,
            origins: BTreeMap::from([("policy".to_owned(), from)]),
        };
        if !self.root.error_recovery.enabled {
            let off = template("off").cloned().unwrap_or_default();
            return Ok(made(off, self.origin_text("error_recovery.enabled")));
        }
        if let Some(forced) = &self.policies.policy_override {
            let found = self.policies.get(&forced.policy);
            let policy = found.ok_or_else(|| {
                let why = self.policies.unknown_message(&forced.policy);
                let problems = vec![self.problem_at("", format!("{}: {why}", forced.by))];
                ConfigError::Invalid { problems }
            })?;
            return Ok(made(policy.clone(), forced.by.clone()));
        }
        if let Some(own) = self.policies.roles.get(&role.id) {
            let from = self.origin_text(&format!("role.{}.policy", role.id));
            return Ok(made(own.clone(), from));
        }
        let from = match self.policies.general {
            Some(_) => self.origin_text("policy"),
            None => format!("template `{}`", self.policies.for_roles().id),
        };
        Ok(made(self.policies.for_roles(), from))
    }

    /// Applies the cap of `[error_recovery]`, unless the role's own policy overrides it.
    fn apply_retry_cap(&self, role: &RoleSection, made: &mut RoleRetryPolicy) {
        let own = |key: &str| self.origin(&format!("role.{}.policy.{key}", role.id));
        let set = own("maxRetries").or_else(|| own("maxAttempts"));
        let cap = self.root.error_recovery.max_auto_retries;
        if let (Some(cap), None) = (cap, set) {
            made.policy.max_retries = cap;
            made.policy.give_up_after = None;
            // A model switch scheduled after the last retry moves with it.
            let after = &mut made.policy.switch_model_after_retries;
            *after = (*after).min(cap);
            let from = self.origin_text("error_recovery.max_auto_retries");
            made.origins.insert("maxRetries".to_owned(), from);
        }
    }

    fn apply_kind(
        &self,
        made: &mut RoleRetryPolicy,
        kind: FailureKind,
        recovery: &FailureKindRecoverySection,
        place: &str,
    ) {
        let is_timed = made.policy.give_up_after.is_some();
        let one = made.policy.kinds.entry(kind).or_default();
        let RetryPolicyOverride {
            max_retries,
            backoff_multiplier,
            timeout_multiplier,
            curve,
            jitter,
            ..
        } = one;
        let mut set = Vec::new();
        if let Some(retries) = recovery.max_retries {
            *max_retries = Some(retries);
            set.push(("maxRetries", "max_retries"));
        }
        if let Some(factor) = recovery.backoff_multiplier {
            *backoff_multiplier = Some(factor);
            if is_timed {
                // In this section a backoff means multiplier × n seconds, whatever the default delays are.
                *curve = curve.or(Some(BackoffCurve::Linear));
                *jitter = jitter.or(Some(Jitter::None));
            }
            set.push(("backoffMultiplier", "backoff_multiplier"));
        }
        if let Some(factor) = recovery.timeout_multiplier {
            *timeout_multiplier = Some(factor);
            set.push(("timeoutMultiplier", "timeout_multiplier"));
        }
        for (key, name) in set {
            let from = self.origin_text(&format!("{place}.{name}"));
            made.origins.insert(format!("kinds.{kind}.{key}"), from);
        }
    }

    fn validated(
        &self,
        role: &RoleSection,
        made: RoleRetryPolicy,
    ) -> Result<RoleRetryPolicy, ConfigError> {
        let Err(error) = made.policy.check() else {
            return Ok(made);
        };
        let problem = |problem: &unstuck_core::decision::RetryPolicyProblem| {
            let from = made.origins.get(&problem.field);
            let from = from.map(|from| format!(" ({from})")).unwrap_or_default();
            let text = format!("invalid policy: {problem}{from}");
            self.problem_at(&format!("role.{}", role.id), text)
        };
        Err(ConfigError::Invalid {
            problems: error.problems.iter().map(problem).collect(),
        })
    }

    /// Returns a path and its source, as text.
    fn origin_text(&self, path: &str) -> String {
        match self.origin(path) {
            Some(origin) => format!("{path} ({origin})"),
            None => path.to_owned(),
        }
    }
}

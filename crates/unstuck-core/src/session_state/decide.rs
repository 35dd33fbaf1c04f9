//! Decisions about a session: combines the session's own state with the driver's inputs.

use crate::decision::{
    AvailableRepair, CurrentModel, Decision, DecisionInput, ModelCatalog, NetworkStatus,
    OperationRepeatability, RandomDraw, RetryCapabilities, RetryChangeCapability, RetryPolicy,
    SessionLimits, SuccessRates, TokenUsage, decide,
};
use crate::diagnosis::Diagnosis;
use crate::duration::to_millis;
use crate::event::{DecisionMade, EffectiveRetryLimits, RecordedDecisionInputs};
use crate::failure::{Category, FailureKind};
use crate::knowledge::RecoveryKnowledge;
use crate::network_symptom::{NetworkSymptom, find_symptom, is_known_host};
use crate::time::Timestamp;

use super::SessionState;

/// The expected usage of the rest of a session if nothing has been measured yet.
const DEFAULT_EXPECTED_USAGE: TokenUsage = TokenUsage {
    input: 50_000,
    cached: 0,
    output: 5_000,
    requests: 10,
};

/// The inputs of a decision that the runner provides because the session does not know them.
#[derive(Clone, Copy)]
pub struct RunnerDecisionContext<'a> {
    /// The knowledge about kinds and strategies.
    pub recovery_knowledge: &'a RecoveryKnowledge,
    /// The models and their ladders.
    pub catalog: &'a ModelCatalog,
    /// The learned success rates.
    pub success_rates: &'a SuccessRates,
    /// The available capabilities, except for resuming a conversation, which the session itself knows.
    pub capabilities: RetryCapabilities,
    /// The hard limits of the session.
    pub session_limits: SessionLimits,
    /// The tool that failed, for the policy's per-tool overrides.
    pub tool: Option<&'a str>,
    /// Repeatability of the failed operation.
    pub repeatable: OperationRepeatability,
    /// The matching repair, if there is one.
    pub repair: Option<AvailableRepair<'a>>,
    /// True if no network is reachable and no name can be resolved.
    pub is_offline: bool,
    /// True if the session can be parked after too long without progress.
    pub can_park: bool,
}

impl SessionState {
    /// Decides what to do about the latest failure and records the inputs; `None` if nothing failed.
    pub fn decide(
        &self,
        means: &RunnerDecisionContext<'_>,
        now: Timestamp,
        draw: RandomDraw,
    ) -> Option<DecisionMade> {
        let failed = self.last_failure.as_deref()?;
        let history = self.history.as_ref()?;
        let kind = failed.diagnosis.kind;
        let diagnosis = &self.diagnosis_at(&failed.diagnosis, now);
        let policy = &RetryPolicy {
            max_cost: self.max_cost(now),
            ..self.spec.policy.clone()
        };
        let known = means.recovery_knowledge.kind(kind)?;
        let model = self.overrides.model().or(failed.end.model.as_deref());
        let model = model.or(self.spec.model.as_deref());
        let can = self.capabilities(means);
        let situation = DecisionInput {
            tool: means.tool,
            success_rates: means.success_rates,
            model: model.map(|id| CurrentModel {
                id,
                catalog: means.catalog,
                expected: self.expected_usage(),
            }),
            timeout: self.overrides.timeout(),
            session_limits: means.session_limits,
            repeatable: means.repeatable,
            repair: means.repair,
            network: self.network_status(means),
            can_park: means.can_park,
            capabilities: can,
            ..DecisionInput::new(
                policy,
                history,
                diagnosis,
                known,
                means.recovery_knowledge,
                now,
            )
        };
        let decision = decide(&situation, draw);
        let limits = policy.limits(kind, failed.diagnosis.layer, known, means.tool);
        let made_from = RecordedDecisionInputs {
            knowledge: self.spec.knowledge.clone(),
            policy_hash: self.spec.policy.fingerprint(),
            limits: EffectiveRetryLimits {
                retries: limits.retries,
                give_up_after_ms: limits.give_up_after.map(to_millis),
                retries_from: self.retries_origin(kind, limits.retries),
                backoff_base: limits.backoff.base,
                backoff_multiplier: limits.backoff.multiplier,
                max_backoff: limits.backoff.cap,
            },
            success_rates: means.success_rates.for_kind(kind),
            capabilities: capability_names(can),
            upstream: serde_json::Value::Null,
        };
        Some(self.decision_made(failed.end.number, decision, made_from))
    }

    /// Returns the diagnosis with the remaining part of its stated wait.
    fn diagnosis_at(&self, diagnosis: &Diagnosis, now: Timestamp) -> Diagnosis {
        let passed = now.since(self.failed_at);
        let stated = match (diagnosis.kind, self.resets.current_reset()) {
            (FailureKind::RateLimitTimed, reset) => reset.map(|reset| reset.until.since(now)),
            (_, _) => diagnosis
                .retry_after
                .map(|wait| wait.saturating_sub(passed)),
        };
        Diagnosis {
            retry_after: stated.filter(|left| !left.is_zero()),
            ..diagnosis.clone()
        }
    }

    /// Returns the network symptom of the latest failure; `None` if it was not a network problem.
    pub fn network_symptom(&self) -> Option<NetworkSymptom> {
        let failed = self.last_failure.as_deref()?;
        if failed.diagnosis.kind.category() != Category::Transient {
            return None;
        }
        let texts = [
            failed.diagnosis.evidence.line.as_str(),
            failed.diagnosis.message.as_str(),
            failed.excerpt.stderr.as_str(),
        ];
        texts.into_iter().find_map(find_symptom)
    }

    fn network_status(&self, means: &RunnerDecisionContext<'_>) -> NetworkStatus {
        match self.network_symptom() {
            None => NetworkStatus::Up,
            Some(_) if means.is_offline => NetworkStatus::Down,
            Some(NetworkSymptom::Unresolved(Some(host))) if !is_known_host(&host) => {
                NetworkStatus::UnknownHost
            }
            Some(_) => NetworkStatus::Up,
        }
    }

    fn decision_made(
        &self,
        number: u32,
        decision: Decision,
        made_from: RecordedDecisionInputs,
    ) -> DecisionMade {
        DecisionMade {
            session: Some(self.spec.session.clone()),
            number,
            decision,
            inputs: made_from,
        }
    }

    fn capabilities(&self, means: &RunnerDecisionContext<'_>) -> RetryCapabilities {
        let can = means.capabilities;
        if self.overrides.can_resume() {
            can
        } else {
            can.without(RetryChangeCapability::Resume)
        }
    }

    pub(super) fn expected_usage(&self) -> TokenUsage {
        if self.usage == TokenUsage::default() {
            DEFAULT_EXPECTED_USAGE
        } else {
            self.usage
        }
    }

    /// Returns the source of the number of retries.
    fn retries_origin(&self, kind: FailureKind, retries: u32) -> String {
        let policy = &self.spec.policy;
        let of_kind = policy.kinds.get(&kind).and_then(|one| one.max_retries);
        let origin = |key: &str| self.spec.origins.get(key).map(String::as_str);
        let base = origin("policy").unwrap_or("the policy");
        let key = format!("kinds.{kind}");
        match of_kind {
            Some(_) => origin(&key)
                .unwrap_or("the policy's override for this kind")
                .into(),
            None if retries != policy.max_retries => {
                format!("the built-in limit for {kind}, below the policy's own limit")
            }
            None => origin("maxRetries").unwrap_or(base).into(),
        }
    }
}

fn capability_names(can: RetryCapabilities) -> Vec<String> {
    const ALL: [(RetryChangeCapability, &str); 7] = [
        (RetryChangeCapability::Prompt, "prompt"),
        (RetryChangeCapability::Timeout, "timeout"),
        (RetryChangeCapability::OutputLimit, "output_limit"),
        (RetryChangeCapability::Model, "model"),
        (RetryChangeCapability::Resume, "resume"),
        (RetryChangeCapability::Fresh, "fresh"),
        (RetryChangeCapability::Steps, "steps"),
    ];
    let has = ALL.into_iter().filter(|(one, _)| can.has(*one));
    has.map(|(_, name)| name.to_owned()).collect()
}

//! What a decision about a session is made from: the session's own state, and the means of the one who drives it.

use crate::decision::{
    Capabilities, Capability, Caps, Catalog, Decision, Draw, ModelUse, Network, Odds, RepairOffer,
    Repeat, RetryPolicy, Situation, Tokens, decide,
};
use crate::diagnosis::Diagnosis;
use crate::duration::in_millis;
use crate::event::{DecisionMade, LimitsInForce, MadeFrom};
use crate::failure::{Category, Kind};
use crate::knowledge::Playbook;
use crate::moment::Timestamp;
use crate::network::{Symptom, is_known_host, symptom};

use super::Recovery;

/// What the rest of a session is expected to use where nothing was measured yet.
const USUAL_USE: Tokens = Tokens {
    input: 50_000,
    cached: 0,
    output: 5_000,
    requests: 10,
};

/// What the one who drives a session brings along.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// What is known about kinds and strategies.
    pub playbook: &'a Playbook,
    /// The models and ladders.
    pub catalog: &'a Catalog,
    /// What was learned so far.
    pub odds: &'a Odds,
    /// What can be changed here, apart from going on in a conversation, which the session itself knows.
    pub can: Capabilities,
    /// The hard caps of the session.
    pub caps: Caps,
    /// The tool that failed, for the policy's overrides per tool.
    pub tool: Option<&'a str>,
    /// Whether what failed can be done again at all.
    pub repeat: Repeat,
    /// The repair that fits, where there is one.
    pub repair: Option<RepairOffer<'a>>,
    /// Whether no network can be reached and no name resolved at all.
    pub is_offline: bool,
    /// Whether it goes on with rare probes when the time without progress is over.
    pub parks: bool,
}

impl Recovery {
    /// Decides what to do about the newest failure, and notes what the decision was made from; none if nothing failed.
    pub fn decide(&self, means: &Means<'_>, now: Timestamp, draw: Draw) -> Option<DecisionMade> {
        let failed = self.failed.as_deref()?;
        let history = self.history.as_ref()?;
        let kind = failed.diagnosis.kind;
        let diagnosis = &self.diagnosis_at(&failed.diagnosis, now);
        let policy = &RetryPolicy {
            max_cost: self.max_cost(now),
            ..self.spec.policy.clone()
        };
        let known = means.playbook.kind(kind)?;
        let model = self.course.model().or(failed.end.model.as_deref());
        let model = model.or(self.spec.model.as_deref());
        let can = self.possible(means);
        let situation = Situation {
            tool: means.tool,
            odds: means.odds,
            model: model.map(|id| ModelUse {
                id,
                catalog: means.catalog,
                expected: self.expected(),
            }),
            timeout: self.course.timeout(),
            caps: means.caps,
            repeat: means.repeat,
            repair: means.repair,
            network: self.network(means),
            parks: means.parks,
            can,
            ..Situation::new(policy, history, diagnosis, known, means.playbook, now)
        };
        let decision = decide(&situation, draw);
        let limits = policy.limits(kind, failed.diagnosis.layer, known, means.tool);
        let made_from = MadeFrom {
            knowledge: self.spec.knowledge.clone(),
            policy_hash: self.spec.policy.fingerprint(),
            limits: LimitsInForce {
                retries: limits.retries,
                give_up_after_ms: limits.give_up_after.map(in_millis),
                retries_from: self.retries_from(kind, limits.retries),
                backoff_base: limits.backoff.base,
                backoff_multiplier: limits.backoff.multiplier,
                max_backoff: limits.backoff.cap,
            },
            odds: means.odds.of(kind),
            can: names(can),
            upstream: serde_json::Value::Null,
        };
        Some(self.made(failed.end.number, decision, made_from))
    }

    /// What the newest failure was found to be, with what is left at a moment of the wait that it states.
    fn diagnosis_at(&self, diagnosis: &Diagnosis, now: Timestamp) -> Diagnosis {
        let passed = now.since(self.failed_at);
        let stated = match (diagnosis.kind, self.resets.current()) {
            (Kind::RateLimitTimed, reset) => reset.map(|reset| reset.until.since(now)),
            (_, _) => diagnosis
                .retry_after
                .map(|wait| wait.saturating_sub(passed)),
        };
        Diagnosis {
            retry_after: stated.filter(|left| !left.is_zero()),
            ..diagnosis.clone()
        }
    }

    /// What the newest failure says about the network; none if that was not its trouble.
    pub fn network_symptom(&self) -> Option<Symptom> {
        let failed = self.failed.as_deref()?;
        if failed.diagnosis.kind.category() != Category::Transient {
            return None;
        }
        let texts = [
            failed.diagnosis.evidence.line.as_str(),
            failed.diagnosis.message.as_str(),
            failed.excerpt.stderr.as_str(),
        ];
        texts.into_iter().find_map(symptom)
    }

    fn network(&self, means: &Means<'_>) -> Network {
        match self.network_symptom() {
            None => Network::Up,
            Some(_) if means.is_offline => Network::Down,
            Some(Symptom::Unresolved(Some(host))) if !is_known_host(&host) => Network::UnknownHost,
            Some(_) => Network::Up,
        }
    }

    fn made(&self, number: u32, decision: Decision, made_from: MadeFrom) -> DecisionMade {
        DecisionMade {
            session: Some(self.spec.session.clone()),
            number,
            decision,
            made_from,
        }
    }

    fn possible(&self, means: &Means<'_>) -> Capabilities {
        let can = means.can;
        if self.course.can_resume() {
            can
        } else {
            can.without(Capability::Resume)
        }
    }

    pub(super) fn expected(&self) -> Tokens {
        if self.used == Tokens::default() {
            USUAL_USE
        } else {
            self.used
        }
    }

    /// Which word the number of retries comes from.
    fn retries_from(&self, kind: Kind, retries: u32) -> String {
        let policy = &self.spec.policy;
        let of_kind = policy.kinds.get(&kind).and_then(|one| one.max_retries);
        let origin = |key: &str| self.spec.origins.get(key).map(String::as_str);
        let base = origin("policy").unwrap_or("the policy");
        let key = format!("kinds.{kind}");
        match of_kind {
            Some(_) => origin(&key)
                .unwrap_or("the policy's word on this kind")
                .into(),
            None if retries != policy.max_retries => {
                format!("what is known about {kind}, below the policy's own limit")
            }
            None => origin("maxRetries").unwrap_or(base).into(),
        }
    }
}

fn names(can: Capabilities) -> Vec<String> {
    const ALL: [(Capability, &str); 7] = [
        (Capability::Prompt, "prompt"),
        (Capability::Timeout, "timeout"),
        (Capability::OutputLimit, "output_limit"),
        (Capability::Model, "model"),
        (Capability::Resume, "resume"),
        (Capability::Fresh, "fresh"),
        (Capability::Steps, "steps"),
    ];
    let has = ALL.into_iter().filter(|(one, _)| can.has(*one));
    has.map(|(_, name)| name.to_owned()).collect()
}

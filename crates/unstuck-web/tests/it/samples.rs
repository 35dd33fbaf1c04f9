//! Sample histories as supervisors write them.

use std::time::Duration;

use unstuck_core::decision::{
    CostEstimate, Decision, EscalationReason, ModelSwitch, ModelSwitchReason, RandomDraw,
    RecoveryAction, SuccessRates,
};
use unstuck_core::diagnosis::{Diagnosis, Evidence};
use unstuck_core::escalation::{EscalationAnswer, EscalationPriorAttempt};
use unstuck_core::event::{
    AnswerOption, AttemptEnd, AttemptFailed, AttemptStarted, AttemptSucceeded, AttemptUsage,
    DecisionMade, EffectiveRetryLimits, EscalationDetails, EscalationKind, EscalationOpened, Event,
    ModelSwitched, OutputExcerpt, RecordedDecisionInputs, RetryCause, RunFinished, RunId, RunKind,
    RunOutcome, RunStarted, SessionSpec, WaitStarted,
};
use unstuck_core::{FailureKind, FailureLayer, RecoveryLevel, RetryPolicy, Timestamp};
use unstuck_store::{RunEventBatch, Store};

/// Nine seconds after a full hour.
pub(crate) const START: Timestamp = Timestamp::from_seconds(1_794_777_609);
/// Model used by all samples.
pub(crate) const MODEL: &str = "claude-sonnet-5-5";

/// Returns the time this many seconds after the start.
pub(crate) fn later(seconds: u64) -> Timestamp {
    START.after(Duration::from_secs(seconds))
}

/// Returns a run id.
pub(crate) fn run(number: u32) -> RunId {
    RunId::new(format!("r{number:09}"))
}

/// Writes events at intervals of one second.
pub(crate) async fn write(store: &Store, run: &RunId, events: Vec<Event>) {
    for (second, event) in events.into_iter().enumerate() {
        let append = RunEventBatch::new(run.clone(), later(second as u64), [event]);
        store.append(append).await.unwrap();
    }
}

/// Returns the events of a run that failed once and then succeeded.
pub(crate) fn recovered(run: &RunId, project: &str) -> Vec<Event> {
    vec![
        started(run, project),
        attempt(run, 1),
        failed(run, 1, FailureKind::RateLimit, "429 slow down"),
        decided(run, FailureKind::RateLimit),
        Event::from(WaitStarted {
            session: Some(run.session_id(1)),
            until: later(4),
            reason: "a rate limit".into(),
            is_stated: true,
            give_up_at: None,
            wait_purpose: Default::default(),
            source: None,
            reread: None,
        }),
        attempt(run, 2),
        succeeded(run, 2),
        finished(RunOutcome::Recovered),
    ]
}

/// Returns the events of a blocked run with a pending escalation.
pub(crate) fn asking(run: &RunId, project: &str) -> Vec<Event> {
    vec![
        started(run, project),
        attempt(run, 1),
        failed(run, 1, FailureKind::AuthExpired, "login expired"),
        decided(run, FailureKind::AuthExpired),
        question(run),
    ]
}

/// Returns the events of a run with a running attempt.
pub(crate) fn running(run: &RunId, project: &str) -> Vec<Event> {
    vec![
        started(run, project),
        attempt(run, 1),
        Event::from(ModelSwitched {
            session: Some(run.session_id(1)),
            switch: ModelSwitch {
                from_model: "claude-haiku-5-5".into(),
                to_model: MODEL.into(),
                reason: ModelSwitchReason::AutoAfterRetries,
                timestamp: later(2),
                cost_estimate: Some(0.25),
            },
        }),
    ]
}

pub(crate) fn started(run: &RunId, project: &str) -> Event {
    Event::from(Box::new(RunStarted {
        head: None,
        project: project.into(),
        kind: RunKind::Command(Box::new(SessionSpec {
            cwd: project.into(),
            command: command(),
            agent: Some("claude".into()),
            model: Some(MODEL.into()),
            session: run.session_id(1),
            policy: RetryPolicy::default(),
            origins: Default::default(),
            timeout_ms: Some(600_000),
            idle_timeout_ms: None,
            options: serde_json::Value::Null,
            unrepeatable_reason: None,
            knowledge: "0.1.0".into(),
        })),
    }))
}

fn command() -> Vec<String> {
    ["claude", "-p", "fix the tests"].map(str::to_owned).into()
}

pub(crate) fn attempt(run: &RunId, number: u32) -> Event {
    Event::from(Box::new(AttemptStarted {
        session: run.session_id(1),
        number,
        command: command(),
        model: Some(MODEL.into()),
        timeout_ms: Some(600_000),
        cause: None,
        changes: Vec::new(),
        agent_session: None,
        reaper: None,
        tree: None,
    }))
}

fn end(run: &RunId, number: u32, exit_code: i32) -> AttemptEnd {
    AttemptEnd {
        session: run.session_id(1),
        number,
        exit_code: Some(exit_code),
        signal: None,
        limit: None,
        duration_ms: 1200,
        stdout_bytes: 100,
        stderr_bytes: 20,
        leftover_processes: 0,
        model: Some(MODEL.into()),
        cause: None,
        usage: AttemptUsage {
            cost_usd: Some(0.25),
            ..AttemptUsage::default()
        },
        tree: None,
        last_progress: None,
        failing_since: None,
    }
}

pub(crate) fn failed(run: &RunId, number: u32, kind: FailureKind, line: &str) -> Event {
    Event::from(Box::new(AttemptFailed {
        end: end(run, number, 1),
        diagnosis: Diagnosis {
            kind,
            layer: FailureLayer::Agent,
            level: Some(RecoveryLevel::Same),
            confidence: 0.9,
            retry_after: None,
            retry_after_source: None,
            evidence: Evidence {
                rule: "a.rule".into(),
                line: line.into(),
            },
            fingerprint: format!("{kind}:0123456789abcdef"),
            message: format!("It failed: {line}"),
            hint: "Wait a little.".into(),
            truncated: false,
        },
        validation_errors: Vec::new(),
        excerpt: OutputExcerpt {
            stdout: String::new(),
            stderr: format!("{line}\n"),
        },
        check: None,
        lost_conversation: false,
    }))
}

pub(crate) fn succeeded(run: &RunId, number: u32) -> Event {
    let answering = RetryCause {
        kind: FailureKind::RateLimit,
        level: RecoveryLevel::Same,
        strategy: None,
    };
    Event::from(Box::new(AttemptSucceeded {
        end: AttemptEnd {
            cause: Some(answering),
            ..end(run, number, 0)
        },
        truncated: false,
    }))
}

fn decided(run: &RunId, kind: FailureKind) -> Event {
    Event::from(Box::new(DecisionMade {
        session: Some(run.session_id(1)),
        number: 1,
        decision: Decision {
            kind,
            level: Some(RecoveryLevel::Same),
            action: RecoveryAction::Retry {
                delay: Duration::from_secs(1),
                until: later(4),
            },
            strategy: None,
            reason: "Rate limit exceeded: retrying in 1 s (retry 1 of 3).".into(),
            attempt: 1,
            max_attempts: 3,
            skipped: Vec::new(),
            cost: None,
            is_stated_reset: false,
            give_up_at: None,
            wait_purpose: Default::default(),
            selection: Default::default(),
            draw: RandomDraw(0),
            decided_at: later(3),
        },
        inputs: RecordedDecisionInputs {
            knowledge: "0.1.0".into(),
            policy_hash: "0".into(),
            limits: EffectiveRetryLimits {
                retries: 3,
                give_up_after_ms: None,
                retries_from: "policy standard".into(),
                backoff_base: 1.0,
                backoff_multiplier: 2.0,
                max_backoff: 30.0,
            },
            success_rates: SuccessRates::empty(),
            capabilities: Vec::new(),
            upstream: serde_json::Value::Null,
        },
    }))
}

/// Returns the id of the escalation of a run.
pub(crate) fn question_id(run: &RunId) -> String {
    format!("{run}-q1")
}

fn question(run: &RunId) -> Event {
    Event::from(Box::new(escalation(run)))
}

/// Returns the escalation of a run.
pub(crate) fn escalation(run: &RunId) -> EscalationOpened {
    let choice = |answer, does: &str| AnswerOption {
        answer,
        effect: does.into(),
        changes: Vec::new(),
        cost: None,
    };
    EscalationOpened {
        session: Some(run.session_id(1)),
        id: question_id(run),
        escalation_kind: EscalationKind::Hiccup,
        trigger: "HICCUP".into(),
        kind: FailureKind::AuthExpired,
        reason_code: EscalationReason::Fatal,
        reason: "The login of the agent has expired.".into(),
        awaiting: "human".into(),
        proposed: None,
        cost: None::<CostEstimate>,
        repair: None,
        budget: None,
        details: EscalationDetails {
            activity: "fixing the tests".into(),
            evidence: "login expired".into(),
            prior_attempts: vec![EscalationPriorAttempt {
                what: "retry unchanged".into(),
                failure_reason: "the login is still expired".into(),
            }],
            options: vec![
                choice(EscalationAnswer::Resolve, "retry; you fixed it manually"),
                choice(EscalationAnswer::Retry, "retry with your message"),
                choice(
                    EscalationAnswer::Skip,
                    "give up and return the original exit code",
                ),
                choice(EscalationAnswer::Abort, "abort the run"),
            ],
            fingerprint: "auth_expired:1".into(),
            hash: "abc123".into(),
            ..EscalationDetails::default()
        },
    }
}

pub(crate) fn finished(outcome: RunOutcome) -> Event {
    Event::from(RunFinished {
        outcome,
        exit_code: 0,
        reason: "It is done.".into(),
        attempts: 2,
        retry_count: 1,
        recovery_level: Some(RecoveryLevel::Same),
        cost_usd: Some(0.5),
        duration_ms: 12_000,
    })
}

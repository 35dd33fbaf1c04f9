//! Sample events as a supervisor writes them.

use unstuck_core::decision::{
    DecisionInput, EpisodeRecoveryHistory, RandomDraw, TokenUsage, decide,
};
use unstuck_core::diagnosis::{Diagnosis, Evidence};
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord, CallFailed};
use unstuck_core::event::{
    AttemptEnd, AttemptFailed, AttemptInterrupted, AttemptStarted, AttemptSucceeded, AttemptUsage,
    Event, InterruptionCause, OutputExcerpt, RetryCause, RoleInstance, RunFinished, RunId, RunKind,
    RunOutcome, RunResumed, RunStarted, SessionSpec, SessionStarted,
};
use unstuck_core::knowledge::RecoveryKnowledge;
use unstuck_core::{FailureKind, FailureLayer, RecoveryLevel, RetryPolicy, Timestamp};
use unstuck_store::{LeaseOwner, RunEventBatch};

/// Nine seconds past the hour.
pub(crate) const START: Timestamp = Timestamp::from_seconds(1_794_777_609);

pub(crate) fn later(seconds: i64) -> Timestamp {
    Timestamp::from_millis(START.millis() + seconds * 1000)
}

pub(crate) fn run(number: u32) -> RunId {
    RunId::new(format!("r{number:09}"))
}

pub(crate) fn append(run: &RunId, events: impl IntoIterator<Item = Event>) -> RunEventBatch {
    RunEventBatch::new(run.clone(), START, events)
}

pub(crate) fn owner(pid: u32) -> LeaseOwner {
    LeaseOwner {
        host: "here".into(),
        boot: "b1".into(),
        pid,
        started: 7,
    }
}

pub(crate) fn started(run: &RunId) -> Event {
    started_in(run, "/home/me/shop")
}

pub(crate) fn started_in(run: &RunId, project: &str) -> Event {
    Event::from(Box::new(RunStarted {
        head: None,
        project: project.into(),
        kind: RunKind::Command(Box::new(SessionSpec {
            cwd: project.into(),
            command: vec!["claude".into(), "-p".into(), "fix the tests".into()],
            agent: Some("claude".into()),
            model: Some("claude-sonnet-5-5".into()),
            session: run.session_id(1),
            policy: RetryPolicy::default(),
            origins: [("policy".to_owned(), "template standard".to_owned())].into(),
            timeout_ms: Some(600_000),
            idle_timeout_ms: None,
            options: serde_json::Value::Null,
            unrepeatable_reason: None,
            knowledge: "0.1.0".into(),
        })),
    }))
}

pub(crate) fn resumed() -> Event {
    Event::from(RunResumed::unchanged("a crash", 12))
}

pub(crate) fn answering(kind: FailureKind, strategy: Option<&str>) -> RetryCause {
    RetryCause {
        kind,
        level: match strategy {
            Some(_) => RecoveryLevel::Alternative,
            None => RecoveryLevel::Same,
        },
        strategy: strategy.map(str::to_owned),
    }
}

pub(crate) fn attempt_started(run: &RunId, number: u32) -> Event {
    Event::from(Box::new(AttemptStarted {
        session: run.session_id(1),
        number,
        command: vec!["claude".into(), "-p".into(), "fix the tests".into()],
        model: Some("claude-sonnet-5-5".into()),
        timeout_ms: Some(600_000),
        cause: None,
        changes: Vec::new(),
        agent_session: None,
        reaper: Some((4711, 99)),
        tree: None,
    }))
}

/// Returns the end of an attempt with this duration, cost and cause.
pub(crate) fn end(
    run: &RunId,
    duration_ms: u64,
    cost_usd: Option<f64>,
    answering: Option<RetryCause>,
) -> AttemptEnd {
    AttemptEnd {
        session: run.session_id(1),
        number: 1,
        exit_code: Some(1),
        signal: None,
        limit: None,
        duration_ms,
        stdout_bytes: 100,
        stderr_bytes: 20,
        leftover_processes: 0,
        model: Some("claude-sonnet-5-5".into()),
        cause: answering,
        usage: AttemptUsage {
            cost_usd,
            ..AttemptUsage::default()
        },
        tree: None,
        last_progress: None,
        failing_since: None,
    }
}

pub(crate) fn failed(end: AttemptEnd, kind: FailureKind) -> Event {
    Event::from(Box::new(AttemptFailed {
        end,
        diagnosis: Diagnosis {
            kind,
            layer: FailureLayer::Agent,
            level: Some(RecoveryLevel::Same),
            confidence: 0.9,
            retry_after: None,
            retry_after_source: None,
            evidence: Evidence {
                rule: "anthropic.overloaded".into(),
                line: "API Error: 529 overloaded_error".into(),
            },
            fingerprint: "0123456789abcdef".into(),
            message: "The model's servers are overloaded.".into(),
            hint: "Wait a little.".into(),
            truncated: false,
        },
        validation_errors: Vec::new(),
        excerpt: OutputExcerpt::default(),
        check: None,
        lost_conversation: false,
    }))
}

pub(crate) fn succeeded(end: AttemptEnd) -> Event {
    Event::from(Box::new(AttemptSucceeded {
        end,
        truncated: false,
    }))
}

pub(crate) fn interrupted(run: &RunId) -> Event {
    Event::from(AttemptInterrupted {
        has_output: false,
        session: run.session_id(1),
        number: 1,
        by: InterruptionCause::Person,
        agent_session: None,
    })
}

pub(crate) fn finished(outcome: RunOutcome) -> Event {
    Event::from(RunFinished {
        outcome,
        exit_code: 0,
        reason: "It is done.".into(),
        attempts: 1,
        retry_count: 0,
        recovery_level: None,
        cost_usd: Some(0.5),
        duration_ms: 12_000,
    })
}

/// Returns a call that was answered at once, this many seconds after the start.
pub(crate) fn called(run: &RunId, call: &str, second: i64) -> ApiCallRecord {
    ApiCallRecord {
        call: call.to_owned(),
        run: run.clone(),
        session: run.session_id(1),
        at: later(second),
        protocol: "anthropic".into(),
        endpoint: "messages".into(),
        upstream: "anthropic".into(),
        requested_model: Some("claude-sonnet-5-5".into()),
        model: Some("claude-sonnet-5-5".into()),
        is_stream: true,
        outcome: ApiCallOutcome::Answered,
        status: 200,
        kind: None,
        attempts: 1,
        waited_ms: 0,
        first_byte_ms: 400,
        duration_ms: 2_000,
        sent_bytes: 4_096,
        tokens: Some(TokenUsage {
            input: 1_000,
            cached: 3_000,
            output: 200,
            requests: 1,
        }),
        cost_usd: Some(0.25),
    }
}

/// Returns the start of a pipeline run with a single builder role.
pub(crate) fn pipeline_started(project: &str) -> Event {
    of_json(serde_json::json!({
        "event": "run_started", "project": project, "cwd": project, "command": ["unstuck", "run"], "roles": [
            {"id": "builder", "needs": [], "instances": 1}
        ], "policy": "standard", "parallel": 1, "knowledge": "0.1.0",
    }))
}

/// Returns the start of the builder with this prompt.
pub(crate) fn builder_started(run: &RunId, prompt: &str) -> Event {
    let Event::RunStarted(alone) = started(run) else {
        panic!("a run begins");
    };
    Event::from(Box::new(SessionStarted {
        part: RoleInstance {
            role: "builder".into(),
            iteration: 1,
            instance: 1,
        },
        spec: alone.sole_session().unwrap().clone(),
        inputs: Default::default(),
        prompt: Some(prompt.into()),
    }))
}

/// Returns a failed API attempt with this error message.
pub(crate) fn call_failed(run: &RunId, call: &str, line: &str) -> Event {
    let Event::AttemptFailed(attempt) = failed(end(run, 10, None, None), FailureKind::RateLimit)
    else {
        panic!("it failed");
    };
    let mut diagnosis = attempt.diagnosis;
    diagnosis.evidence.line = line.to_owned();
    diagnosis.fingerprint = "rate_limit:c".to_owned();
    let (policy, history) = (RetryPolicy::default(), EpisodeRecoveryHistory::new(START));
    let playbook = RecoveryKnowledge::built_in();
    let known = playbook.kind(FailureKind::RateLimit).unwrap();
    let situation = DecisionInput::new(&policy, &history, &diagnosis, known, playbook, START);
    Event::from(Box::new(CallFailed {
        session: run.session_id(1),
        call: call.to_owned(),
        number: 1,
        upstream: "anthropic".into(),
        model: None,
        status: Some(429),
        decision: decide(&situation, RandomDraw(0)),
        diagnosis,
        fallback: None,
        skipped_upstreams: Vec::new(),
        policy_hash: "0".into(),
        conversation: None,
    }))
}

fn of_json(value: serde_json::Value) -> Event {
    let event = Event::from_value(value.as_object().unwrap().clone());
    assert!(!matches!(event, Event::Unknown(_)), "{event:?}");
    event
}

/// Returns a failure with this message and its own fingerprint.
pub(crate) fn failed_saying(end: AttemptEnd, kind: FailureKind, line: &str) -> Event {
    let Event::AttemptFailed(mut attempt) = failed(end, kind) else {
        panic!("it failed");
    };
    attempt.diagnosis.evidence.line = line.to_owned();
    attempt.diagnosis.fingerprint = format!("{kind}:{}", line.len());
    Event::from(attempt)
}

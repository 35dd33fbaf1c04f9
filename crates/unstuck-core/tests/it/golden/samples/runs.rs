//! Events about runs, sessions, attempts and the configuration.

use std::collections::BTreeMap;

use serde_json::json;
use unstuck_core::decision::{RetryPolicyOverride, TokenUsage};
use unstuck_core::event::{
    AttemptEnd, AttemptFailed, AttemptInterrupted, AttemptStarted, AttemptSucceeded, AttemptUsage,
    ConfigRejected, ConfigReloaded, DiagnosedCheck, Event, FailedCheck, InterruptionCause,
    IterationFinished, IterationStarted, OnStuck, OutputExcerpt, OutputReused,
    RecordedPipelineLoopSettings, RecordedPipelineSettings, RecordedRoleSettings, RetryCause,
    RoleInstance, RunFinished, RunKind, RunOutcome, RunResumed, RunStarted, SessionFinished,
    SessionSpec, SessionStarted,
};
use unstuck_core::usage_budget::{ConfiguredUsageBudgets, UsageBudgetLimit};
use unstuck_core::{FailureKind, FailureLayer, RecoveryLevel, RetryPolicy};

use super::{diagnosis, later, session, words};

const TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

pub(super) fn all() -> Vec<Event> {
    let mut all = vec![
        started(RunKind::Command(Box::new(spec()))),
        started(RunKind::Pipeline(Box::new(pipeline()))),
        resumed(),
        Event::from(RunResumed::unchanged("a crash", 4712)),
        Event::from(IterationStarted {
            iteration: 2,
            feedback: "two tests fail".into(),
        }),
        Event::from(OutputReused {
            part: part(),
            output: "outputs/architect.md".into(),
            from_run: "2wq8n5k1zz".into(),
        }),
        Event::from(Box::new(SessionStarted {
            part: part(),
            spec: spec(),
            inputs: BTreeMap::from([("architect".into(), words("outputs/architect.md"))]),
            prompt: Some("Build it.".into()),
        })),
        attempt_started(),
        attempt_failed(),
        Event::from(Box::new(AttemptSucceeded {
            end: end(0),
            truncated: true,
        })),
        iteration_finished(),
        Event::from(ConfigReloaded {
            path: "/p/unstuck.toml".into(),
            changes: words("policy.maxRetries"),
            pipeline: Some(Box::new(pipeline())),
        }),
        Event::from(ConfigRejected {
            path: "/p/unstuck.toml".into(),
            error: "line 3: unknown key `polcy`".into(),
        }),
    ];
    let by = [
        InterruptionCause::Person,
        InterruptionCause::Sigterm,
        InterruptionCause::Sighup,
        InterruptionCause::Output,
        InterruptionCause::Crash,
    ];
    all.extend(by.map(interrupted));
    all
}

/// Returns the final events of sessions and runs.
pub(super) fn ends() -> Vec<Event> {
    let outcomes = [
        RunOutcome::Succeeded,
        RunOutcome::Recovered,
        RunOutcome::Failed,
        RunOutcome::AwaitingHuman,
        RunOutcome::Interrupted,
    ];
    let output = Some("outputs/builder.md".to_owned());
    let session = SessionFinished::new(session(), part(), finished(RunOutcome::Recovered), output);
    let runs = outcomes.map(|outcome| Event::from(finished(outcome)));
    std::iter::once(Event::from(Box::new(session)))
        .chain(runs)
        .collect()
}

fn started(work: RunKind) -> Event {
    Event::from(Box::new(RunStarted {
        project: "/p".into(),
        head: Some("3f786850e387550fdab836ed7e6dc881de23001b".into()),
        kind: work,
    }))
}

fn spec() -> SessionSpec {
    let one = RetryPolicyOverride {
        max_retries: Some(5),
        timeout_multiplier: Some(1.5),
        ..RetryPolicyOverride::default()
    };
    SessionSpec {
        session: session(),
        cwd: "/p/sub".into(),
        command: words("claude -p fix"),
        agent: Some("claude".into()),
        model: Some("claude-sonnet-5-5".into()),
        policy: RetryPolicy {
            kinds: BTreeMap::from([(FailureKind::Timeout, one)]),
            tools: BTreeMap::from([("bash".into(), one)]),
            max_cost: Some(5.0),
            ..RetryPolicy::default()
        },
        origins: BTreeMap::from([("policy".into(), "template standard".into())]),
        timeout_ms: Some(600_000),
        idle_timeout_ms: Some(60_000),
        options: json!({ "tty": true }),
        unrepeatable_reason: Some("it pushes".into()),
        knowledge: "0.1.0".into(),
    }
}

fn part() -> RoleInstance {
    RoleInstance {
        role: "builder".into(),
        iteration: 2,
        instance: 1,
    }
}

fn pipeline() -> RecordedPipelineSettings {
    RecordedPipelineSettings {
        cwd: "/p".into(),
        command: words("unstuck run"),
        roles: vec![RecordedRoleSettings {
            id: "builder".into(),
            needs: words("architect"),
            instances: 2,
            optional: true,
            settings: BTreeMap::from([("timeout".into(), "30m".into())]),
            max_cost: Some(2.5),
        }],
        excluded_roles: words("architect"),
        task: "a shop".into(),
        config_path: Some("/p/unstuck.toml".into()),
        policy: "standard".into(),
        parallel: 2,
        checkpoint: true,
        loop_settings: Some(RecordedPipelineLoopSettings {
            max_iterations: 5,
            until: Some("make test".into()),
            stuck_after: 3,
            on_stuck: OnStuck::Escalate,
        }),
        budget: Some(ConfiguredUsageBudgets {
            per_run: UsageBudgetLimit {
                usd: Some(20.0),
                tokens: Some(1_000_000),
            },
            per_day: UsageBudgetLimit::default(),
        }),
        project_settings: Some("trusted".into()),
        knowledge: "0.1.0".into(),
    }
}

fn resumed() -> Event {
    Event::from(RunResumed {
        pipeline: Some(Box::new(pipeline())),
        restarted: words("builder"),
        keep_trying_ms: Some(3_600_000),
        project_settings: Some("trusted".into()),
        ..RunResumed::unchanged("a crash", 4711)
    })
}

fn answering() -> RetryCause {
    RetryCause {
        kind: FailureKind::Timeout,
        level: RecoveryLevel::Alternative,
        strategy: Some("reduce_scope".into()),
    }
}

fn attempt_started() -> Event {
    Event::from(Box::new(AttemptStarted {
        session: session(),
        number: 2,
        command: words("claude -p fix"),
        model: Some("claude-sonnet-5-5".into()),
        timeout_ms: Some(900_000),
        cause: Some(answering()),
        changes: words("timeout"),
        agent_session: Some("6d1f".into()),
        reaper: Some((4711, 99)),
        tree: Some(TREE.into()),
    }))
}

fn end(exit_code: i32) -> AttemptEnd {
    AttemptEnd {
        session: session(),
        number: 2,
        exit_code: Some(exit_code),
        signal: Some(9),
        limit: Some("timeout".into()),
        duration_ms: 1200,
        stdout_bytes: 100,
        stderr_bytes: 20,
        leftover_processes: 1,
        model: Some("claude-sonnet-5-5".into()),
        cause: Some(answering()),
        usage: AttemptUsage {
            cost_usd: Some(0.25),
            tokens: Some(tokens()),
            agent_session: Some("6d1f".into()),
            turns: Some(7),
            is_from_gateway: true,
            context_tokens: Some(42_000),
        },
        tree: Some(TREE.into()),
        last_progress: Some(later(4)),
        failing_since: Some(later(5)),
    }
}

pub(super) fn tokens() -> TokenUsage {
    TokenUsage {
        input: 1_000,
        cached: 3_000,
        output: 200,
        requests: 1,
    }
}

fn excerpt() -> OutputExcerpt {
    OutputExcerpt {
        stdout: "working…\n".into(),
        stderr: "API Error: 429 rate_limit_error\n".into(),
    }
}

fn check() -> FailedCheck {
    let OutputExcerpt { stdout, stderr } = excerpt();
    FailedCheck {
        command: "make test".into(),
        exit_code: 2,
        stdout,
        stderr,
    }
}

fn attempt_failed() -> Event {
    Event::from(Box::new(AttemptFailed {
        end: end(1),
        diagnosis: diagnosis(
            FailureKind::RateLimit,
            FailureLayer::Agent,
            Some(RecoveryLevel::Same),
        ),
        validation_errors: vec!["missing section: # Plan".into()],
        excerpt: excerpt(),
        check: Some(check()),
        lost_conversation: true,
    }))
}

fn interrupted(by: InterruptionCause) -> Event {
    Event::from(AttemptInterrupted {
        session: session(),
        number: 2,
        by,
        agent_session: Some("6d1f".into()),
        has_output: true,
    })
}

fn iteration_finished() -> Event {
    Event::from(IterationFinished {
        iteration: 2,
        done: true,
        feedback: "all is well".into(),
        fingerprint: Some("test_failure:0123456789abcdef".into()),
        tree: Some(TREE.into()),
        unchanged: 1,
        failed_check: Some(Box::new(DiagnosedCheck {
            check: check(),
            diagnosis: diagnosis(FailureKind::TestFailure, FailureLayer::Infra, None),
        })),
    })
}

fn finished(outcome: RunOutcome) -> RunFinished {
    RunFinished {
        outcome,
        exit_code: 0,
        reason: "It is done.".into(),
        attempts: 3,
        retry_count: 2,
        recovery_level: Some(RecoveryLevel::Alternative),
        cost_usd: Some(0.75),
        duration_ms: 61_000,
    }
}

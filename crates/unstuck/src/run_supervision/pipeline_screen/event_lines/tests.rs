use anstream::adapter::strip_str;
use unstuck_core::decision::{
    ConcreteAttemptChange, Decision, EscalationReason, RandomDraw, RecoveryAction,
};
use unstuck_core::diagnosis::{Diagnosis, Evidence};
use unstuck_core::event::{
    AttemptEnd, AttemptInterrupted, AttemptSucceeded, AttemptUsage, EffectiveRetryLimits,
    EscalationKind, OnStuck, OutputReused, RecordedDecisionInputs, RecordedPipelineLoopSettings,
    RecordedPipelineSettings, RecordedRoleSettings, RunId, RunKind, RunStarted, SessionSpec,
    SessionStarted, VERSION,
};
use unstuck_core::failure::FailureLayer;
use unstuck_core::{RecoveryLevel, RetryPolicy};

use super::*;

/// A run whose events are rendered as they happen.
pub(in super::super) struct Told {
    pub(in super::super) story: PipelineEventLines,
    pub(in super::super) run: RunProjection,
    pub(in super::super) now: Timestamp,
    columns: Option<usize>,
    seq: u64,
}

pub(in super::super) fn role(id: &str, needs: &[&str], instances: u32) -> RecordedRoleSettings {
    RecordedRoleSettings {
        id: id.to_owned(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        instances,
        optional: false,
        settings: BTreeMap::new(),
        max_cost: None,
    }
}

impl Told {
    pub(in super::super) fn new(roles: Vec<RecordedRoleSettings>, iterations: Option<u32>) -> Self {
        let now = Timestamp::from_seconds(1_794_777_000);
        let work = RunKind::Pipeline(Box::new(RecordedPipelineSettings {
            cwd: "/p".into(),
            command: vec!["unstuck".into(), "run".into()],
            roles,
            excluded_roles: Vec::new(),
            task: "build\nthe shop".into(),
            config_path: None,
            policy: "pipeline".into(),
            parallel: 4,
            checkpoint: true,
            loop_settings: iterations.map(|max_iterations| RecordedPipelineLoopSettings {
                max_iterations,
                until: None,
                stuck_after: 3,
                on_stuck: OnStuck::Escalate,
            }),
            project_settings: None,
            knowledge: "1".into(),
            budget: None,
        }));
        let first = EventRecord {
            version: VERSION,
            run: RunId::new("k3v9x0m2qa"),
            seq: 1,
            at: now,
            event: Box::new(RunStarted {
                head: None,
                project: "/p".into(),
                kind: work,
            })
            .into(),
        };
        let story =
            PipelineEventLines::new(String::new(), "/p".into(), PromptNoteTemplates::embedded());
        Self {
            story,
            run: RunProjection::from_first_event(&first).unwrap(),
            now,
            columns: None,
            seq: 1,
        }
    }

    pub(in super::super) fn happen(&mut self, event: impl Into<Event>) -> Vec<String> {
        self.all([event.into()])
    }

    fn all(&mut self, events: impl IntoIterator<Item = Event>) -> Vec<String> {
        let mut recorded = Vec::new();
        for event in events {
            self.seq += 1;
            recorded.push(EventRecord {
                version: VERSION,
                run: self.run.summary.id.clone(),
                seq: self.seq,
                at: self.now,
                event,
            });
        }
        recorded.iter().for_each(|one| self.run.apply(one));
        let lines = self.story.lines(&recorded, &self.run, self.columns);
        lines
            .iter()
            .map(|line| strip_str(line).to_string())
            .collect()
    }

    pub(in super::super) fn iterate(&mut self, iteration: u32, feedback: &str) -> Vec<String> {
        self.happen(IterationStarted {
            iteration,
            feedback: feedback.into(),
        })
    }

    /// Starts a role and its first attempt.
    pub(in super::super) fn start(
        &mut self,
        role: &str,
        instance: u32,
    ) -> (SessionId, RoleInstance) {
        let pipeline = self.run.pipeline.as_ref().unwrap();
        let part = RoleInstance {
            role: role.into(),
            iteration: pipeline.iteration(),
            instance,
        };
        let session = pipeline.id().session_id(pipeline.session_count() + 1);
        let told = self.happen(Box::new(SessionStarted {
            part: part.clone(),
            spec: SessionSpec {
                session: session.clone(),
                cwd: "/p".into(),
                command: Vec::new(),
                agent: Some("claude".into()),
                model: Some("opus".into()),
                policy: RetryPolicy::default(),
                origins: BTreeMap::new(),
                timeout_ms: Some(1_200_000),
                idle_timeout_ms: None,
                options: serde_json::Value::Null,
                unrepeatable_reason: None,
                knowledge: "1".into(),
            },
            inputs: BTreeMap::new(),
            prompt: None,
        }));
        assert_eq!(told, [""; 0]);
        self.attempt(&session, 1);
        (session, part)
    }

    pub(in super::super) fn attempt(&mut self, session: &SessionId, number: u32) {
        let told = self.happen(Box::new(AttemptStarted {
            session: session.clone(),
            number,
            command: Vec::new(),
            model: None,
            timeout_ms: Some(1_200_000),
            cause: None,
            changes: Vec::new(),
            agent_session: None,
            reaper: None,
            tree: None,
        }));
        assert_eq!(told, [""; 0]);
    }

    fn fail(
        &mut self,
        session: &SessionId,
        kind: FailureKind,
        line: &str,
        limit: Option<&str>,
    ) -> Vec<String> {
        let mut end = ended(session, 1);
        end.limit = limit.map(str::to_owned);
        self.happen(Box::new(AttemptFailed {
            end,
            diagnosis: Diagnosis {
                kind,
                layer: FailureLayer::Agent,
                level: Some(RecoveryLevel::Alternative),
                confidence: 1.0,
                retry_after: None,
                retry_after_source: None,
                evidence: Evidence {
                    rule: "x/y".into(),
                    line: line.into(),
                },
                fingerprint: "f".into(),
                message: "m".into(),
                hint: "Log in again".into(),
                truncated: false,
            },
            validation_errors: Vec::new(),
            excerpt: unstuck_core::event::OutputExcerpt::default(),
            check: None,
            lost_conversation: false,
        }))
    }

    fn succeed(&mut self, session: &SessionId, number: u32) -> Vec<String> {
        self.happen(Box::new(AttemptSucceeded {
            end: ended(session, number),
            truncated: false,
        }))
    }

    pub(in super::super) fn finish(
        &mut self,
        session: &SessionId,
        part: &RoleInstance,
        outcome: RunOutcome,
    ) -> Vec<String> {
        let end = run_finished(outcome, "it did not work");
        let output = outcome.is_success().then(|| "hash".to_owned());
        self.happen(Box::new(SessionFinished::new(
            session.clone(),
            part.clone(),
            end,
            output,
        )))
    }
}

fn ended(session: &SessionId, number: u32) -> AttemptEnd {
    AttemptEnd {
        session: session.clone(),
        number,
        exit_code: Some(1),
        signal: None,
        limit: None,
        duration_ms: 10,
        stdout_bytes: 0,
        stderr_bytes: 0,
        leftover_processes: 0,
        model: None,
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

fn run_finished(outcome: RunOutcome, reason: &str) -> RunFinished {
    RunFinished {
        outcome,
        exit_code: 0,
        reason: reason.into(),
        attempts: 3,
        retry_count: 1,
        recovery_level: None,
        cost_usd: Some(0.5),
        duration_ms: 65_000,
    }
}

fn decided(session: &SessionId, changes: Vec<ConcreteAttemptChange>) -> Box<DecisionMade> {
    let at = Timestamp::from_seconds(0);
    Box::new(DecisionMade {
        session: Some(session.clone()),
        number: 1,
        decision: Decision {
            kind: FailureKind::Timeout,
            level: Some(RecoveryLevel::Alternative),
            action: RecoveryAction::Change {
                changes,
                delay: Duration::ZERO,
                until: at,
            },
            strategy: None,
            reason: String::new(),
            attempt: 1,
            max_attempts: 2,
            skipped: Vec::new(),
            cost: None,
            is_stated_reset: false,
            give_up_at: None,
            wait_purpose: Default::default(),
            selection: Default::default(),
            draw: RandomDraw(0),
            decided_at: at,
        },
        inputs: RecordedDecisionInputs {
            knowledge: "1".into(),
            policy_hash: "h".into(),
            limits: EffectiveRetryLimits {
                retries: 2,
                give_up_after_ms: None,
                retries_from: "default".into(),
                backoff_base: 1.0,
                backoff_multiplier: 2.0,
                max_backoff: 30.0,
            },
            success_rates: unstuck_core::decision::SuccessRates::empty(),
            capabilities: Vec::new(),
            upstream: serde_json::Value::Null,
        },
    })
}

fn longer_and_simpler() -> Vec<ConcreteAttemptChange> {
    vec![
        ConcreteAttemptChange::Prompt("focus".into()),
        ConcreteAttemptChange::Timeout {
            from_seconds: Some(1200),
            to_seconds: 1800,
        },
    ]
}

/// S1-30, S1-36: a retry is shown with its role, kind of failure, number and changes.
#[test]
fn timeout_and_its_retry_take_three_lines() {
    let mut told = Told::new(vec![role("implementer", &[], 1)], None);
    told.iterate(1, "");
    let (session, part) = told.start("implementer", 1);
    assert_eq!(
        told.fail(
            &session,
            FailureKind::Timeout,
            "some last words",
            Some("timeout")
        ),
        ["[Attempt 1] implementer (timeout=1200s) → timeout"]
    );
    assert_eq!(
        told.happen(decided(&session, longer_and_simpler())),
        ["[Auto-retry 1/2] raising timeout to 1800s, simplifying the prompt…"]
    );
    told.attempt(&session, 2);
    assert_eq!(
        told.succeed(&session, 2),
        ["[Attempt 2] implementer → success"]
    );
    assert_eq!(
        told.finish(&session, &part, RunOutcome::Recovered),
        ["implementer → .unstuck/runs/k3v9x0m2qa/roles/implementer/output.md"]
    );
    assert_eq!(
        told.happen(run_finished(RunOutcome::Recovered, "done")),
        [
            "Done after recovery: 1 role, 3 attempts, 1 min 5 s, $0.50",
            "  details: unstuck show k3v9x0"
        ]
    );
}

#[test]
fn parallel_instances_of_a_role_are_distinguished() {
    let mut told = Told::new(vec![role("reviewer", &[], 2)], None);
    told.iterate(1, "");
    told.start("reviewer", 1);
    let (session, part) = told.start("reviewer", 2);
    told.fail(&session, FailureKind::Timeout, "", Some("timeout"));
    assert_eq!(
        told.happen(decided(
            &session,
            vec![ConcreteAttemptChange::Prompt("focus".into())]
        )),
        ["[Auto-retry 1/2] reviewer#2: simplifying the prompt…"]
    );
    assert_eq!(
        told.finish(&session, &part, RunOutcome::Recovered),
        ["reviewer#2 → .unstuck/runs/k3v9x0m2qa/roles/reviewer.2/output.md"]
    );
}

#[test]
fn evidence_stays_on_one_line() {
    let mut told = Told::new(vec![role("implementer", &[], 1)], None);
    told.columns = Some(60);
    told.iterate(1, "");
    let (session, _) = told.start("implementer", 1);
    let line = "You have hit your limit\nand this goes on for a very long time";
    assert_eq!(
        told.fail(&session, FailureKind::RateLimit, line, None),
        ["[Attempt 1] implementer → rate_limit: You have hit your lim…"]
    );
}

#[test]
fn iterations_are_shown_with_their_unmet_criteria() {
    let mut told = Told::new(vec![role("tester", &[], 1)], Some(10));
    assert_eq!(told.iterate(1, ""), ["Iteration 1 of 10"]);
    assert_eq!(
        told.iterate(2, "2 tests fail:\n  a\n  b"),
        ["Iteration 2 of 10 · 2 tests fail: a b"]
    );
    let judged = |done, unchanged| IterationFinished {
        iteration: 2,
        done,
        feedback: String::new(),
        fingerprint: None,
        tree: None,
        failed_check: None,
        unchanged,
    };
    assert_eq!(told.happen(judged(false, 1)), [""; 0]);
    assert_eq!(
        told.happen(judged(false, 2)),
        ["Iteration 2 of 10 → no change for 2 iterations (stuck after 3)"]
    );
    assert_eq!(told.happen(judged(true, 1)), ["Iteration 2 of 10 → done"]);
}

#[test]
fn escalation_shows_evidence_and_next_commands() {
    let mut told = Told::new(vec![role("implementer", &[], 1)], None);
    told.iterate(1, "");
    let (session, part) = told.start("implementer", 1);
    told.fail(
        &session,
        FailureKind::AuthRequired,
        "Please run /login",
        None,
    );
    let asked = Box::new(EscalationOpened {
        session: Some(session.clone()),
        id: "q".into(),
        escalation_kind: EscalationKind::Hiccup,
        trigger: "HICCUP".into(),
        kind: FailureKind::AuthRequired,
        reason_code: EscalationReason::Fatal,
        reason: "Authentication required.".into(),
        awaiting: "human".into(),
        proposed: None,
        cost: None,
        repair: None,
        budget: None,
        details: unstuck_core::escalation::EscalationDetails::default(),
    });
    assert_eq!(
        told.happen(asked),
        [
            "implementer needs your input: Authentication required.",
            "  evidence: Please run /login",
            "  hint: Log in again",
            "  details: unstuck explain k3v9x0/implementer",
        ]
    );
    assert_eq!(
        told.finish(&session, &part, RunOutcome::AwaitingHuman),
        [""; 0]
    );
    assert_eq!(
        told.happen(run_finished(RunOutcome::AwaitingHuman, "asked")),
        [
            "Waiting for your input: 0 of 1 role, 3 attempts, 1 min 5 s, $0.50",
            "  continue: unstuck resume k3v9x0",
        ]
    );
}

/// S1-31: a resumed run reports what is reused and what starts.
#[test]
fn reused_outputs_are_reported_after_a_resume() {
    let roles = vec![
        role("architect", &[], 1),
        role("implementer", &["architect"], 1),
        role("tester", &["implementer"], 1),
        role("reviewer", &["tester"], 1),
    ];
    let mut told = Told::new(roles, None);
    told.iterate(1, "");
    for done in ["architect", "implementer"] {
        let (session, part) = told.start(done, 1);
        told.finish(&session, &part, RunOutcome::Succeeded);
    }
    let (session, part) = told.start("tester", 1);
    let by = InterruptionCause::Crash;
    let number = 1;
    let cut_off = AttemptInterrupted {
        has_output: false,
        session: session.clone(),
        number,
        by,
        agent_session: None,
    };
    assert_eq!(
        told.all([RunResumed::unchanged("Ctrl-C", 7).into(), cut_off.into()]),
        [
            "Resuming run k3v9x0; stopped: Ctrl-C",
            "[Attempt 1] tester → interrupted; re-running",
            "Reusing: architect, implementer. Starting: tester",
        ]
    );
    assert_eq!(
        told.finish(&session, &part, RunOutcome::Failed),
        ["tester failed: it did not work"]
    );
}

/// With a later start role, roles of the earlier run are not part of the new run.
#[test]
fn outputs_of_an_earlier_run_are_reported_as_reused() {
    let mut told = Told::new(vec![role("tester", &["implementer"], 1)], None);
    told.iterate(1, "");
    let reused = |role: &str, instance| {
        Event::from(OutputReused {
            part: RoleInstance {
                role: role.into(),
                iteration: 1,
                instance,
            },
            output: "hash".into(),
            from_run: "a".into(),
        })
    };
    assert_eq!(
        told.all([
            reused("architect", 1),
            reused("implementer", 1),
            reused("implementer", 2)
        ]),
        ["Reusing: architect, implementer (from run a). Starting: tester"]
    );
}

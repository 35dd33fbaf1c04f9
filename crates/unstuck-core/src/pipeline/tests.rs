use std::collections::BTreeMap;

use super::*;
use crate::decision::{EscalationReason, SeededRng};
use crate::event::{
    BudgetReached, BudgetScope, BudgetUnit, EscalationKind, EscalationOpened, EscalationResolved,
    IterationStarted, RecordedPipelineLoopSettings, RunKind, RunResumed, RunStarted,
    SessionFinished, SessionSpec, SessionStarted,
};
use crate::time::Timestamp;

fn role(id: &str, needs: &[&str]) -> RecordedRoleSettings {
    RecordedRoleSettings {
        id: id.to_owned(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        instances: 1,
        optional: false,
        settings: BTreeMap::new(),
        max_cost: None,
    }
}

fn plan(roles: Vec<RecordedRoleSettings>, iterations: Option<u32>) -> RecordedPipelineSettings {
    RecordedPipelineSettings {
        cwd: "/p".into(),
        command: vec!["unstuck".into(), "run".into()],
        roles,
        excluded_roles: Vec::new(),
        task: "build it".into(),
        config_path: None,
        policy: "pipeline".into(),
        parallel: 4,
        checkpoint: true,
        loop_settings: iterations.map(|max_iterations| RecordedPipelineLoopSettings {
            max_iterations,
            until: Some("DONE".into()),
            stuck_after: 3,
            on_stuck: OnStuck::Escalate,
        }),
        project_settings: None,
        knowledge: "1".into(),
        budget: None,
    }
}

/// A pipeline that is driven by hand; its log is kept so that it can be folded again.
struct Driven {
    log: Vec<EventRecord>,
    pipeline: PipelineState,
}

impl Driven {
    fn new(plan: RecordedPipelineSettings) -> Self {
        let run = RunId::random(SeededRng::seeded(1).next_draw());
        let work = RunKind::Pipeline(Box::new(plan.clone()));
        let started = RunStarted {
            head: None,
            project: "/p".into(),
            kind: work,
        };
        let mut driven = Self {
            pipeline: PipelineState::new(&run, &plan),
            log: Vec::new(),
        };
        driven.keep(Box::new(started).into());
        driven
    }

    fn keep(&mut self, event: Event) -> EventRecord {
        let recorded = EventRecord {
            version: 1,
            run: self.pipeline.id().clone(),
            seq: self.log.len() as u64 + 1,
            at: Timestamp::from_seconds(0),
            event,
        };
        self.log.push(recorded.clone());
        recorded
    }

    fn note(&mut self, event: impl Into<Event>) {
        let recorded = self.keep(event.into());
        self.pipeline.apply(&recorded);
        let again = PipelineState::from_events(&self.log);
        assert_eq!(again.as_ref(), Some(&self.pipeline), "replay equals life");
    }

    fn next(&self) -> NextPipelineStep {
        self.pipeline.next(&BTreeSet::new())
    }

    fn iterate(&mut self) {
        let NextPipelineStep::BeginIteration(iteration) = self.next() else {
            panic!("no iteration is due: {:?}", self.next());
        };
        let feedback = String::new();
        self.note(IterationStarted {
            iteration,
            feedback,
        });
    }

    fn ready(&self) -> Vec<String> {
        match self.next() {
            NextPipelineStep::Run(parts) => parts.into_iter().map(|part| part.role).collect(),
            other => panic!("nothing is ready: {other:?}"),
        }
    }

    fn start(&mut self, role: &str) -> (SessionId, RoleInstance) {
        let part = RoleInstance {
            role: role.to_owned(),
            iteration: self.pipeline.iteration(),
            instance: 1,
        };
        let session = self
            .pipeline
            .id()
            .session_id(self.pipeline.session_count() + 1);
        self.note(Box::new(SessionStarted {
            part: part.clone(),
            spec: SessionSpec {
                session: session.clone(),
                cwd: "/p".into(),
                command: Vec::new(),
                agent: None,
                model: None,
                policy: crate::RetryPolicy::default(),
                origins: BTreeMap::new(),
                timeout_ms: None,
                idle_timeout_ms: None,
                options: serde_json::Value::Null,
                unrepeatable_reason: None,
                knowledge: "1".into(),
            },
            inputs: BTreeMap::new(),
            prompt: None,
        }));
        (session, part)
    }

    fn end(&mut self, role: &str, outcome: RunOutcome) {
        let (session, _) = self.start(role);
        self.stop(role, &session, outcome);
    }

    /// Ends a session of this iteration.
    fn stop(&mut self, role: &str, session: &SessionId, outcome: RunOutcome) {
        let part = RoleInstance {
            role: role.to_owned(),
            iteration: self.pipeline.iteration(),
            instance: 1,
        };
        let session = session.clone();
        let output = outcome.is_success().then(|| format!("hash of {role}"));
        let end = RunFinished {
            outcome,
            exit_code: 0,
            reason: String::new(),
            attempts: 1,
            retry_count: 0,
            recovery_level: None,
            cost_usd: Some(0.0),
            duration_ms: 1,
        };
        self.note(Box::new(SessionFinished::new(session, part, end, output)));
    }

    fn judge(&mut self, done: bool, tree: &str) {
        assert_eq!(self.next(), NextPipelineStep::EvaluateIteration);
        let before = self.log.iter().rev().find_map(|one| match &one.event {
            Event::IterationFinished(before) => Some(before.clone()),
            _ => None,
        });
        let mut finished = IterationFinished {
            iteration: self.pipeline.iteration(),
            done,
            feedback: String::new(),
            fingerprint: Some("no promise".into()),
            tree: Some(tree.to_owned()),
            failed_check: None,
            unchanged: 0,
        };
        finished.unchanged = self
            .pipeline
            .unchanged_iterations_with(&finished, before.as_ref());
        self.note(finished);
    }

    fn resume(&mut self, restarted: &[&str]) {
        self.note(RunResumed {
            stop_reason: String::new(),
            pid: 1,
            pipeline: None,
            restarted: restarted.iter().map(|role| (*role).to_owned()).collect(),
            keep_trying_ms: None,
            project_settings: None,
        });
    }
}

/// S1-34: roles run after the roles they need; independent roles run in parallel.
#[test]
fn roles_run_when_their_needs_are_done() {
    let roles = vec![
        role("architect", &[]),
        role("tester", &["implementer"]),
        role("implementer", &["architect"]),
        role("reviewer", &["architect"]),
    ];
    let mut run = Driven::new(plan(roles, None));
    run.iterate();
    assert_eq!(run.ready(), ["architect"]);
    run.end("architect", RunOutcome::Succeeded);
    assert_eq!(run.ready(), ["implementer", "reviewer"]);
    run.end("reviewer", RunOutcome::Succeeded);
    run.end("implementer", RunOutcome::Recovered);
    run.end("tester", RunOutcome::Succeeded);
    assert_eq!(run.next(), NextPipelineStep::Finish(RunOutcome::Recovered));
    assert_eq!(
        run.pipeline.available_outputs()["architect"],
        ["hash of architect"]
    );
}

/// S1-38: outputs of succeeded roles are reused, even out of order; the failed role continues in its session, then its
/// dependents.
#[test]
fn a_resumed_run_continues_at_the_failed_role() {
    let roles = vec![
        role("architect", &[]),
        role("tester", &["architect"]),
        role("reviewer", &["tester"]),
        role("docs", &["architect"]),
    ];
    let mut run = Driven::new(plan(roles, None));
    run.iterate();
    run.end("architect", RunOutcome::Succeeded);
    run.end("tester", RunOutcome::AwaitingHuman);
    assert_eq!(run.ready(), ["docs"], "what does not depend on it goes on");
    run.end("docs", RunOutcome::Succeeded);
    assert_eq!(
        run.next(),
        NextPipelineStep::Finish(RunOutcome::AwaitingHuman)
    );
    run.resume(&[]);
    assert_eq!(run.ready(), ["tester"]);
    assert_eq!(run.pipeline.completed_roles(), ["architect", "docs"]);
    let part = run.pipeline.parts.keys().find(|part| part.role == "tester");
    let session = run.pipeline.session_of(part.unwrap()).unwrap();
    assert_eq!(*session, run.pipeline.id().session_id(2));
}

#[test]
fn an_interrupted_role_runs_again_and_completed_ones_do_not() {
    let roles = vec![role("a", &[]), role("b", &["a"])];
    let mut run = Driven::new(plan(roles, None));
    run.iterate();
    run.end("a", RunOutcome::Succeeded);
    run.start("b");
    assert_eq!(run.ready(), ["b"], "after a crash nothing runs");
    run.resume(&["a", "b"]);
    assert_eq!(run.ready(), ["a"], "a person wants both again");
}

#[test]
fn a_loop_runs_until_it_is_done_or_reaches_its_iteration_limit() {
    let mut run = Driven::new(plan(vec![role("a", &[])], Some(2)));
    for tree in ["t1", "t2"] {
        run.iterate();
        run.end("a", RunOutcome::Succeeded);
        run.judge(false, tree);
    }
    let used_up = PipelineLoopProblem::IterationLimit { iterations: 2 };
    assert_eq!(run.next(), NextPipelineStep::EscalateLoop(used_up));
    run.resume(&[]);
    assert_eq!(
        run.next(),
        NextPipelineStep::BeginIteration(3),
        "a person allows as many again"
    );
    run.iterate();
    run.end("a", RunOutcome::Failed);
    run.judge(true, "t3");
    assert_eq!(run.next(), NextPipelineStep::Finish(RunOutcome::Recovered));
}

#[test]
fn a_loop_that_changes_nothing_is_stuck() {
    let mut run = Driven::new(plan(vec![role("a", &[])], Some(9)));
    for unchanged in 1..=3 {
        run.iterate();
        run.end("a", RunOutcome::Succeeded);
        run.judge(false, "same tree");
        assert_eq!(run.pipeline.last_iteration().unwrap().unchanged, unchanged);
    }
    let stuck = PipelineLoopProblem::Stuck { iterations: 3 };
    assert_eq!(run.next(), NextPipelineStep::EscalateLoop(stuck));
}

#[test]
fn config_changes_are_listed_by_role() {
    let mut then = plan(vec![role("a", &[]), role("b", &["a"])], None);
    let set = |role: &mut RecordedRoleSettings, name: &str, value: &str| {
        role.settings.insert(name.into(), value.into());
    };
    set(&mut then.roles[0], "model", "opus");
    set(&mut then.roles[0], "prompt", "sha256:1");
    let mut now = then.clone();
    set(&mut now.roles[0], "model", "sonnet");
    set(&mut now.roles[0], "prompt", "sha256:2");
    now.roles.pop();
    let told: Vec<_> = role_changes(&then, &now);
    assert_eq!(
        told[0].descriptions,
        ["model changed from opus to sonnet", "prompt changed"]
    );
    assert_eq!(told[1].descriptions, ["role removed"]);
}

/// Creates an escalation of a role about the budget of the run, or with another reason.
fn question(session: &SessionId, id: &str, why: EscalationReason) -> Box<EscalationOpened> {
    let question = EscalationKind::CostConfirmation;
    let (scope, unit) = (BudgetScope::Run, BudgetUnit::Usd);
    let budget = BudgetReached::new(scope, unit, 41.6, 20.0, 20.0);
    Box::new(EscalationOpened {
        session: Some(session.clone()),
        id: id.into(),
        escalation_kind: question,
        trigger: question.trigger().into(),
        kind: crate::failure::FailureKind::None,
        reason_code: why,
        reason: "budget exceeded".into(),
        awaiting: "human".into(),
        proposed: None,
        cost: None,
        repair: None,
        budget: (why == EscalationReason::MaxCost).then_some(budget),
        details: crate::escalation::EscalationDetails::default(),
    })
}

/// Creates a pipeline with two roles that stopped because the run's budget is reached.
fn out_of_money() -> (Driven, SessionId, SessionId) {
    let mut driven = Driven::new(plan(vec![role("a", &[]), role("b", &[])], None));
    driven.iterate();
    let ((a, _), (b, _)) = (driven.start("a"), driven.start("b"));
    driven.note(question(&a, "a-e1", EscalationReason::MaxCost));
    driven.note(question(&b, "b-e1", EscalationReason::MaxCost));
    driven.stop("a", &a, RunOutcome::AwaitingHuman);
    driven.stop("b", &b, RunOutcome::AwaitingHuman);
    (driven, a, b)
}

fn limit(driven: &Driven, session: &SessionId) -> f64 {
    let now = Timestamp::from_seconds(2_000_000_000);
    let budgets = driven.pipeline.budget_raises();
    budgets.effective_limit(BudgetScope::Run, BudgetUnit::Usd, session, 20.0, now)
}

/// W1: neither a resume, nor a restart, nor a retry of a role answers a budget escalation.
#[test]
fn resuming_a_run_raises_no_budget() {
    let (mut driven, a, b) = out_of_money();
    assert_eq!(
        driven.pipeline.blocking_budget_escalation(&[]),
        Some(("a-e1", "budget exceeded"))
    );
    driven.note(RunResumed::unchanged(String::new(), 1));
    driven.note(EscalationResolved::by_hand(Some(a.clone())));
    driven.note(EscalationResolved {
        user: Some("ann".into()),
        method: EscalationAnswer::Retry.method().into(),
        ..EscalationResolved::by_hand(Some(b.clone()))
    });
    assert_eq!(limit(&driven, &a), 20.0);
    assert!(
        driven
            .pipeline
            .blocking_budget_escalation(&["a".to_owned()])
            .is_some()
    );
}

/// Only approval by a named human raises the budget, and only to the amount shown.
#[test]
fn approval_by_a_named_person_raises_the_budget_to_the_amount_shown() {
    for (by, who, answer, raised) in [
        ("human", Some("ann"), EscalationAnswer::Approve, 61.6),
        ("human", None, EscalationAnswer::Approve, 20.0),
        ("deadline", None, EscalationAnswer::Approve, 20.0),
        ("human", Some("ann"), EscalationAnswer::Resolve, 20.0),
        ("human", Some("ann"), EscalationAnswer::Abort, 20.0),
    ] {
        let (mut driven, a, b) = out_of_money();
        let asked = question(&a, "a-e1", EscalationReason::MaxCost);
        driven.note(EscalationResolved {
            by: by.into(),
            user: who.map(str::to_owned),
            ..EscalationResolved::answer_to(&asked, answer)
        });
        assert_eq!(limit(&driven, &a), raised, "{by} {who:?} {answer}");
        assert_eq!(limit(&driven, &b), raised, "all roles share it");
    }
}

/// A role that waits for something else continues; a role that waits for a budget does not.
#[test]
fn other_roles_continue_while_one_waits_for_a_budget() {
    let mut driven = Driven::new(plan(vec![role("a", &[]), role("b", &[])], None));
    driven.iterate();
    let ((a, _), (b, part)) = (driven.start("a"), driven.start("b"));
    driven.note(question(&a, "a-e1", EscalationReason::MaxCost));
    driven.stop("a", &a, RunOutcome::AwaitingHuman);
    driven.stop("b", &b, RunOutcome::Interrupted);
    assert_eq!(driven.pipeline.blocking_budget_escalation(&[]), None);
    driven.note(RunResumed::unchanged(String::new(), 1));
    assert_eq!(driven.next(), NextPipelineStep::Run(vec![part]));
}

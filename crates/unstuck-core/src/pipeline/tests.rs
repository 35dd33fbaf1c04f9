use std::collections::BTreeMap;

use super::*;
use crate::decision::{AskWhy, Dice};
use crate::event::{
    BudgetReached, BudgetScope, BudgetUnit, EscalationKind, IterationStarted, LoopStarted,
    RecoveryEscalated, RecoveryResolved, RunResumed, RunStarted, SessionFinished, SessionSpec,
    SessionStarted, Work,
};
use crate::moment::Timestamp;

fn role(id: &str, needs: &[&str]) -> RoleStarted {
    RoleStarted {
        id: id.to_owned(),
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        instances: 1,
        optional: false,
        settings: BTreeMap::new(),
        max_cost: None,
    }
}

fn plan(roles: Vec<RoleStarted>, iterations: Option<u32>) -> PipelineStarted {
    PipelineStarted {
        cwd: "/p".into(),
        command: vec!["unstuck".into(), "run".into()],
        roles,
        left_out: Vec::new(),
        task: "build it".into(),
        config_path: None,
        policy: "pipeline".into(),
        parallel: 4,
        checkpoint: true,
        looping: iterations.map(|max_iterations| LoopStarted {
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

/// A pipeline that is driven by hand; its log is kept, so that it can be folded again.
struct Driven {
    log: Vec<Recorded>,
    pipeline: Pipeline,
}

impl Driven {
    fn new(plan: PipelineStarted) -> Self {
        let run = RunId::drawn(Dice::seeded(1).roll());
        let work = Work::Pipeline(Box::new(plan.clone()));
        let started = RunStarted {
            head: None,
            project: "/p".into(),
            work,
        };
        let mut driven = Self {
            pipeline: Pipeline::of(&run, &plan),
            log: Vec::new(),
        };
        driven.keep(Box::new(started).into());
        driven
    }

    fn keep(&mut self, event: Event) -> Recorded {
        let recorded = Recorded {
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
        self.pipeline.record(&recorded);
        let again = Pipeline::fold(&self.log);
        assert_eq!(again.as_ref(), Some(&self.pipeline), "replay equals life");
    }

    fn next(&self) -> Step {
        self.pipeline.next(&BTreeSet::new())
    }

    fn iterate(&mut self) {
        let Step::Iterate(iteration) = self.next() else {
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
            Step::Run(parts) => parts.into_iter().map(|part| part.role).collect(),
            other => panic!("nothing is ready: {other:?}"),
        }
    }

    fn start(&mut self, role: &str) -> (SessionId, Part) {
        let part = Part {
            role: role.to_owned(),
            iteration: self.pipeline.iteration(),
            instance: 1,
        };
        let session = self.pipeline.id().session(self.pipeline.sessions() + 1);
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
                unrepeatable: None,
                knowledge: "1".into(),
            },
            inputs: BTreeMap::new(),
            prompt: None,
        }));
        (session, part)
    }

    fn end(&mut self, role: &str, outcome: Outcome) {
        let (session, _) = self.start(role);
        self.stop(role, &session, outcome);
    }

    /// A session of this iteration comes to its end.
    fn stop(&mut self, role: &str, session: &SessionId, outcome: Outcome) {
        let part = Part {
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
        self.note(Box::new(SessionFinished::of(session, part, end, output)));
    }

    fn judge(&mut self, done: bool, tree: &str) {
        assert_eq!(self.next(), Step::Judge);
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
        finished.unchanged = self.pipeline.unchanged_with(&finished, before.as_ref());
        self.note(finished);
    }

    fn resume(&mut self, restarted: &[&str]) {
        self.note(RunResumed {
            after: String::new(),
            pid: 1,
            pipeline: None,
            restarted: restarted.iter().map(|role| (*role).to_owned()).collect(),
            keep_trying_ms: None,
            project_settings: None,
        });
    }
}

/// S1-34: roles run in the order of what they need; those that do not depend on each other run side by side.
#[test]
fn roles_run_when_what_they_need_is_done() {
    let roles = vec![
        role("architect", &[]),
        role("tester", &["implementer"]),
        role("implementer", &["architect"]),
        role("reviewer", &["architect"]),
    ];
    let mut run = Driven::new(plan(roles, None));
    run.iterate();
    assert_eq!(run.ready(), ["architect"]);
    run.end("architect", Outcome::Succeeded);
    assert_eq!(run.ready(), ["implementer", "reviewer"]);
    run.end("reviewer", Outcome::Succeeded);
    run.end("implementer", Outcome::Recovered);
    run.end("tester", Outcome::Succeeded);
    assert_eq!(run.next(), Step::Finish(Outcome::Recovered));
    assert_eq!(run.pipeline.outputs()["architect"], ["hash of architect"]);
}

/// S1-38: what succeeded is reused, also out of order; the failed role goes on in its session, then those after it.
#[test]
fn a_resumed_run_goes_on_at_the_failed_role() {
    let roles = vec![
        role("architect", &[]),
        role("tester", &["architect"]),
        role("reviewer", &["tester"]),
        role("docs", &["architect"]),
    ];
    let mut run = Driven::new(plan(roles, None));
    run.iterate();
    run.end("architect", Outcome::Succeeded);
    run.end("tester", Outcome::AwaitingHuman);
    assert_eq!(run.ready(), ["docs"], "what does not depend on it goes on");
    run.end("docs", Outcome::Succeeded);
    assert_eq!(run.next(), Step::Finish(Outcome::AwaitingHuman));
    run.resume(&[]);
    assert_eq!(run.ready(), ["tester"]);
    assert_eq!(run.pipeline.completed(), ["architect", "docs"]);
    let part = run.pipeline.parts.keys().find(|part| part.role == "tester");
    let session = run.pipeline.session_of(part.unwrap()).unwrap();
    assert_eq!(*session, run.pipeline.id().session(2));
}

#[test]
fn a_role_that_was_cut_off_is_run_again_and_those_that_were_done_are_not() {
    let roles = vec![role("a", &[]), role("b", &["a"])];
    let mut run = Driven::new(plan(roles, None));
    run.iterate();
    run.end("a", Outcome::Succeeded);
    run.start("b");
    assert_eq!(run.ready(), ["b"], "after a crash nothing runs");
    run.resume(&["a", "b"]);
    assert_eq!(run.ready(), ["a"], "a person wants both again");
}

#[test]
fn a_loop_goes_on_until_it_is_done_or_its_iterations_are_used_up() {
    let mut run = Driven::new(plan(vec![role("a", &[])], Some(2)));
    for tree in ["t1", "t2"] {
        run.iterate();
        run.end("a", Outcome::Succeeded);
        run.judge(false, tree);
    }
    let used_up = LoopTrouble::UsedUp { iterations: 2 };
    assert_eq!(run.next(), Step::AskAboutLoop(used_up));
    run.resume(&[]);
    assert_eq!(
        run.next(),
        Step::Iterate(3),
        "a person allows as many again"
    );
    run.iterate();
    run.end("a", Outcome::Failed);
    run.judge(true, "t3");
    assert_eq!(run.next(), Step::Finish(Outcome::Recovered));
}

#[test]
fn a_loop_that_changes_nothing_is_stuck() {
    let mut run = Driven::new(plan(vec![role("a", &[])], Some(9)));
    for unchanged in 1..=3 {
        run.iterate();
        run.end("a", Outcome::Succeeded);
        run.judge(false, "same tree");
        assert_eq!(run.pipeline.judged().unwrap().unchanged, unchanged);
    }
    let stuck = LoopTrouble::Stuck { iterations: 3 };
    assert_eq!(run.next(), Step::AskAboutLoop(stuck));
}

#[test]
fn what_was_changed_is_said_by_role() {
    let mut then = plan(vec![role("a", &[]), role("b", &["a"])], None);
    let set = |role: &mut RoleStarted, name: &str, value: &str| {
        role.settings.insert(name.into(), value.into());
    };
    set(&mut then.roles[0], "model", "opus");
    set(&mut then.roles[0], "prompt", "sha256:1");
    let mut now = then.clone();
    set(&mut now.roles[0], "model", "sonnet");
    set(&mut now.roles[0], "prompt", "sha256:2");
    now.roles.pop();
    let told: Vec<_> = changes(&then, &now);
    assert_eq!(
        told[0].what,
        ["model was opus, is sonnet", "its prompt was changed"]
    );
    assert_eq!(told[1].what, ["it is not there any more"]);
}

/// A question of a role about the budget of the run, or about something else.
fn question(session: &SessionId, id: &str, why: AskWhy) -> Box<RecoveryEscalated> {
    let question = EscalationKind::CostConfirmation;
    let (scope, unit) = (BudgetScope::Run, BudgetUnit::Usd);
    let budget = BudgetReached::new(scope, unit, 41.6, 20.0, 20.0);
    Box::new(RecoveryEscalated {
        session: Some(session.clone()),
        id: id.into(),
        question,
        trigger: question.trigger().into(),
        kind: crate::failure::Kind::None,
        why,
        reason: "the budget is used up".into(),
        awaiting: "human".into(),
        proposed: None,
        cost: None,
        repair: None,
        budget: (why == AskWhy::MaxCost).then_some(budget),
        shown: crate::question::Shown::default(),
    })
}

/// Two roles that stopped because the budget of their run is used up.
fn out_of_money() -> (Driven, SessionId, SessionId) {
    let mut driven = Driven::new(plan(vec![role("a", &[]), role("b", &[])], None));
    driven.iterate();
    let ((a, _), (b, _)) = (driven.start("a"), driven.start("b"));
    driven.note(question(&a, "a-e1", AskWhy::MaxCost));
    driven.note(question(&b, "b-e1", AskWhy::MaxCost));
    driven.stop("a", &a, Outcome::AwaitingHuman);
    driven.stop("b", &b, Outcome::AwaitingHuman);
    (driven, a, b)
}

fn limit(driven: &Driven, session: &SessionId) -> f64 {
    let now = Timestamp::from_seconds(2_000_000_000);
    let budgets = driven.pipeline.budgets();
    budgets.limit(BudgetScope::Run, BudgetUnit::Usd, session, 20.0, now)
}

/// W1: neither a resume, nor a restart, nor a retry of a role answers a question about money.
#[test]
fn to_take_a_run_up_again_raises_no_budget() {
    let (mut driven, a, b) = out_of_money();
    assert_eq!(
        driven.pipeline.waits_for_money(&[]),
        Some(("a-e1", "the budget is used up"))
    );
    driven.note(RunResumed::as_it_was(String::new(), 1));
    driven.note(RecoveryResolved::by_hand(Some(a.clone())));
    driven.note(RecoveryResolved {
        who: Some("ann".into()),
        method: Answer::Retry.method().into(),
        ..RecoveryResolved::by_hand(Some(b.clone()))
    });
    assert_eq!(limit(&driven, &a), 20.0);
    assert!(driven.pipeline.waits_for_money(&["a".to_owned()]).is_some());
}

/// Only approval by a person with a name raises it, and to the amount that was shown.
#[test]
fn approval_with_a_name_raises_the_budget_to_what_was_shown() {
    for (by, who, answer, raised) in [
        ("human", Some("ann"), Answer::Approve, 61.6),
        ("human", None, Answer::Approve, 20.0),
        ("deadline", None, Answer::Approve, 20.0),
        ("human", Some("ann"), Answer::Resolve, 20.0),
        ("human", Some("ann"), Answer::Abort, 20.0),
    ] {
        let (mut driven, a, b) = out_of_money();
        let asked = question(&a, "a-e1", AskWhy::MaxCost);
        driven.note(RecoveryResolved {
            by: by.into(),
            who: who.map(str::to_owned),
            ..RecoveryResolved::answering(&asked, answer)
        });
        assert_eq!(limit(&driven, &a), raised, "{by} {who:?} {answer}");
        assert_eq!(limit(&driven, &b), raised, "all roles share it");
    }
}

/// A role that waits for something else goes on, and the one that waits for money does not.
#[test]
fn the_rest_goes_on_while_one_role_waits_for_money() {
    let mut driven = Driven::new(plan(vec![role("a", &[]), role("b", &[])], None));
    driven.iterate();
    let ((a, _), (b, part)) = (driven.start("a"), driven.start("b"));
    driven.note(question(&a, "a-e1", AskWhy::MaxCost));
    driven.stop("a", &a, Outcome::AwaitingHuman);
    driven.stop("b", &b, Outcome::Interrupted);
    assert_eq!(driven.pipeline.waits_for_money(&[]), None);
    driven.note(RunResumed::as_it_was(String::new(), 1));
    assert_eq!(driven.next(), Step::Run(vec![part]));
}

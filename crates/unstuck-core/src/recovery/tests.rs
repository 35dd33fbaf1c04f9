//! A world in virtual time: an agent that fails as it is told to, driven as the supervisor drives it.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::decision::{Capabilities, Caps, Catalog, Dice, Odds, Repeat, RetryPolicy, template};
use crate::diagnosis::{Diagnosis, Evidence};
use crate::episode::SessionView;
use crate::event::{
    AttemptInterrupted, AttemptStarted, AttemptSucceeded, InterruptedBy, Measured,
    RecoveryResolved, RunResumed, RunStarted, VERSION, Work,
};
use crate::failure::{Kind, Layer};
use crate::knowledge::Playbook;

struct World {
    now: Timestamp,
    log: Vec<Recorded>,
    recovery: Recovery,
    dice: Dice,
    failures: VecDeque<(Kind, Measured)>,
}

impl World {
    fn new(policy: &RetryPolicy, failures: impl IntoIterator<Item = Kind>) -> Self {
        let now = Timestamp::from_seconds(1_794_777_000);
        let id = RunId::new("k3v9x0m2qa");
        let first = Recorded {
            version: VERSION,
            run: id.clone(),
            seq: 1,
            at: now,
            event: Box::new(RunStarted {
                project: "/p".into(),
                work: Work::Command(Box::new(SessionSpec {
                    cwd: "/p".into(),
                    command: vec!["claude".into()],
                    agent: Some("claude".into()),
                    model: Some("claude-haiku-5-5".into()),
                    session: id.session(1),
                    policy: policy.clone(),
                    origins: [("policy".to_owned(), "template".to_owned())].into(),
                    timeout_ms: Some(1_200_000),
                    idle_timeout_ms: None,
                    options: serde_json::Value::Null,
                    unrepeatable: None,
                    knowledge: "test".into(),
                })),
            })
            .into(),
        };
        Self {
            now,
            recovery: Recovery::begin(&first).unwrap(),
            log: vec![first],
            dice: Dice::seeded(7),
            failures: failures
                .into_iter()
                .map(|kind| (kind, Measured::default()))
                .collect(),
        }
    }

    fn happen(&mut self, event: impl Into<Event>) {
        let recorded = Recorded {
            version: VERSION,
            run: self.recovery.id().clone(),
            seq: self.log.len() as u64 + 1,
            at: self.now,
            event: event.into(),
        };
        self.recovery.record(&recorded);
        self.log.push(recorded);
    }

    fn end(&self, used: Measured) -> AttemptEnd {
        AttemptEnd {
            session: self.recovery.spec().session.clone(),
            number: self.recovery.attempts(),
            exit_code: Some(1),
            signal: None,
            limit: None,
            duration_ms: 10,
            stdout_bytes: 0,
            stderr_bytes: 0,
            left: 0,
            model: None,
            answering: None,
            used,
            tree: None,
        }
    }

    fn start(&mut self) {
        let plan = self.recovery.plan();
        let session = self.recovery.spec().session.clone();
        self.happen(Box::new(AttemptStarted {
            session,
            number: plan.number,
            command: vec!["claude".into()],
            model: plan.model,
            timeout_ms: None,
            answering: plan.answering,
            changes: plan.changes,
            agent_session: None,
            reaper: None,
            tree: None,
        }));
    }

    fn attempt(&mut self) {
        self.start();
        self.now = self.now.after(Duration::from_secs(1));
        match self.failures.pop_front() {
            None => {
                let end = self.end(Measured::default());
                self.happen(Box::new(AttemptSucceeded {
                    end,
                    truncated: false,
                }));
            }
            Some((kind, used)) => {
                let end = self.end(used);
                self.happen(Box::new(AttemptFailed {
                    end,
                    diagnosis: diagnosis(kind),
                    validation_errors: Vec::new(),
                    excerpt: Default::default(),
                }));
            }
        }
    }

    /// One step of the drive; false when there is nothing more to do.
    fn step(&mut self) -> bool {
        match self.recovery.next(self.now) {
            Next::Attempt => self.attempt(),
            Next::NoteInterruption => {
                let session = self.recovery.spec().session.clone();
                let number = self.recovery.attempts();
                let by = InterruptedBy::Crash;
                self.happen(AttemptInterrupted {
                    session,
                    number,
                    by,
                    agent_session: None,
                });
            }
            Next::Decide => {
                let means = Means {
                    playbook: Playbook::built_in(),
                    catalog: &Catalog::embedded(),
                    odds: &Odds::none(),
                    can: Capabilities::ALL,
                    caps: Caps::default(),
                    tool: None,
                    repeat: Repeat::Safe,
                };
                let draw = self.dice.roll();
                let made = self.recovery.decide(&means, self.now, draw).unwrap();
                self.happen(Box::new(made));
            }
            Next::Wait(until) => self.now = until,
            Next::Finish(outcome) => {
                let end = self.recovery.finish(outcome, 0, String::new(), self.now);
                self.happen(end);
            }
            Next::Nothing => return false,
        }
        true
    }

    fn run(mut self) -> Self {
        while self.step() {}
        self
    }

    fn finished(&self) -> &RunFinished {
        self.recovery.finished().unwrap()
    }

    /// A crash: all that is left is the log.
    fn crash(&mut self) {
        self.recovery = Recovery::fold(&self.log).unwrap();
    }
}

fn diagnosis(kind: Kind) -> Diagnosis {
    let known = Playbook::built_in().kind(kind).unwrap();
    let layer = Layer::Agent;
    Diagnosis {
        kind,
        layer,
        level: known.level(kind, layer),
        confidence: 1.0,
        retry_after: (kind == Kind::RateLimitTimed).then_some(Duration::from_secs(7200)),
        evidence: Evidence {
            rule: "test".into(),
            line: "it broke".into(),
        },
        fingerprint: kind.to_string(),
        message: format!("{kind}: it broke"),
        hint: String::new(),
        truncated: false,
    }
}

fn standard() -> &'static RetryPolicy {
    template("standard").unwrap()
}

/// S0-28, S0-32, S1-25: execute, classify, wait, repeat; the count and the level are kept.
#[test]
fn a_passing_failure_is_repeated_until_it_has_passed() {
    let world = World::new(standard(), [Kind::ServerOverloaded; 3]).run();
    let end = world.finished();
    assert_eq!((end.outcome, end.attempts), (Outcome::Recovered, 4));
    let episode = SessionView::all(&world.log)[0].episode("r", end, world.now);
    assert_eq!(
        (episode.retry_count, episode.recovery_level),
        (3, Some(Level::Same))
    );
    assert!(episode.success && episode.error.is_none());
}

/// S0-13, S0-31: a login that is missing asks at once.
#[test]
fn a_fatal_failure_ends_in_a_question_without_a_retry() {
    let world = World::new(standard(), [Kind::AuthRequired]).run();
    let end = world.finished();
    assert_eq!((end.outcome, end.attempts), (Outcome::AwaitingHuman, 1));
    assert_eq!(end.recovery_level, Some(Level::Escalate));
}

#[test]
fn what_a_person_has_seen_to_begins_anew_with_all_its_retries() {
    let failures = [Kind::AuthRequired, Kind::ServerError, Kind::ServerError];
    let mut world = World::new(standard(), failures).run();
    world.happen(RunResumed::as_it_was("a person logged in", 1));
    world.happen(RecoveryResolved::by_hand(None));
    let world = world.run();
    assert_eq!(world.finished().outcome, Outcome::Recovered);
    assert_eq!(world.finished().attempts, 4);
}

#[test]
fn an_attempt_that_was_cut_off_is_made_again_and_counts_once() {
    let mut world = World::new(standard(), [Kind::ServerError]);
    world.start();
    world.crash();
    let world = world.run();
    let end = world.finished();
    assert_eq!(
        (end.outcome, end.attempts, end.retry_count),
        (Outcome::Recovered, 2, 1)
    );
}

#[test]
fn after_a_usage_limit_the_same_conversation_goes_on() {
    let mut world = World::new(standard(), []);
    let used = Measured {
        agent_session: Some("abc".into()),
        ..Measured::default()
    };
    world.failures = [(Kind::RateLimitTimed, used)].into();
    while world.recovery.next(world.now) != Next::Attempt || world.recovery.attempts() == 0 {
        assert!(world.step());
    }
    assert_eq!(world.recovery.plan().resume.as_deref(), Some("abc"));
    let waited = world.now.since(world.log[0].at);
    assert!(waited >= Duration::from_secs(7200), "{waited:?}");
}

/// S1-26, S1-36: a timeout of 1200 s becomes 1800 s, and stays so.
#[test]
fn changes_accumulate_from_attempt_to_attempt() {
    let policy = standard()
        .with(&serde_json::json!({"kinds": {"timeout": {"maxRetries": 3}}}))
        .unwrap();
    let mut world = World::new(&policy, [Kind::Timeout; 3]);
    let mut timeouts = Vec::new();
    while world.recovery.next(world.now) != Next::Nothing {
        if world.recovery.next(world.now) == Next::Attempt {
            timeouts.push(world.recovery.plan().timeout.unwrap().as_secs());
        }
        world.step();
    }
    assert!(
        timeouts.contains(&1800) && timeouts.is_sorted(),
        "{timeouts:?}"
    );
}

proptest! {
    /// Whatever fails and wherever it crashes: the log tells the same state, and there is an end.
    #[test]
    fn a_replay_equals_the_life_and_every_run_ends(
        failures in proptest::collection::vec(0..Kind::ALL.len(), 0..40),
        crashes in proptest::collection::vec(0..60_usize, 0..6),
    ) {
        let kinds = failures.into_iter().map(|at| Kind::ALL[at]).filter(|kind| *kind != Kind::None);
        let mut world = World::new(standard(), kinds);
        let mut steps = 0;
        while world.step() {
            steps += 1;
            prop_assert!(steps < 500, "no end");
            if crashes.contains(&steps) {
                let live = world.recovery.clone();
                world.crash();
                prop_assert_eq!(&world.recovery, &live);
            }
        }
        prop_assert!(world.finished().attempts <= Caps::default().attempts + 1);
    }
}

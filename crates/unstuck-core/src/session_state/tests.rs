//! A simulation in virtual time: a scripted agent, driven as the supervisor drives it.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::command_policy::{ProposalConfidence, RepairCategory};
use crate::decision::{
    AvailableRepair, ConcreteAttemptChange, EscalationReason, EscalationTrigger, ModelCatalog,
    OperationRepeatability, RepairPermission, RetryCapabilities, RetryPolicy, SeededRng,
    SessionLimits, SuccessRates, template,
};
use crate::diagnosis::{Diagnosis, Evidence};
use crate::event::{
    AttemptInterrupted, AttemptStarted, AttemptSucceeded, AttemptUsage, EarlyWaitEndCause,
    EscalationResolved, FailedCheck, InterruptionCause, PolicyVerdict, RepairApproved,
    RepairProposalOrigin, RepairProposed, RepairSandboxReport, RepairStarted, RunKind, RunResumed,
    RunStarted, VERSION, WaitEnded,
};
use crate::failure::{FailureKind, FailureLayer};
use crate::knowledge::RecoveryKnowledge;
use crate::views::SessionSummary;

struct World {
    now: Timestamp,
    log: Vec<EventRecord>,
    recovery: SessionState,
    dice: SeededRng,
    failures: VecDeque<(FailureKind, AttemptUsage)>,
    /// Matching repairs with their exit codes.
    offers: VecDeque<(RepairPermission, i32)>,
    repairs: RepairStates,
    is_offline: bool,
    /// The last output of attempts before they fail.
    words: &'static str,
    /// The time from the last progress to the end of an attempt.
    progress: Option<Duration>,
}

impl World {
    fn new(policy: &RetryPolicy, failures: impl IntoIterator<Item = FailureKind>) -> Self {
        let now = Timestamp::from_seconds(1_794_777_000);
        let id = RunId::new("k3v9x0m2qa");
        let first = EventRecord {
            version: VERSION,
            run: id.clone(),
            seq: 1,
            at: now,
            event: Box::new(RunStarted {
                head: None,
                project: "/p".into(),
                kind: RunKind::Command(Box::new(SessionSpec {
                    cwd: "/p".into(),
                    command: vec!["claude".into()],
                    agent: Some("claude".into()),
                    model: Some("claude-haiku-5-5".into()),
                    session: id.session_id(1),
                    policy: policy.clone(),
                    origins: [("policy".to_owned(), "template".to_owned())].into(),
                    timeout_ms: Some(1_200_000),
                    idle_timeout_ms: None,
                    options: serde_json::Value::Null,
                    unrepeatable_reason: None,
                    knowledge: "test".into(),
                })),
            })
            .into(),
        };
        Self {
            now,
            recovery: SessionState::from_first_event(&first).unwrap(),
            log: vec![first],
            dice: SeededRng::seeded(7),
            failures: failures
                .into_iter()
                .map(|kind| (kind, AttemptUsage::default()))
                .collect(),
            offers: VecDeque::new(),
            repairs: RepairStates::default(),
            is_offline: false,
            words: "",
            progress: None,
        }
    }

    fn offering(mut self, offers: impl IntoIterator<Item = (RepairPermission, i32)>) -> Self {
        self.offers = offers.into_iter().collect();
        self
    }

    fn happen(&mut self, event: impl Into<Event>) {
        let recorded = EventRecord {
            version: VERSION,
            run: self.recovery.id().clone(),
            seq: self.log.len() as u64 + 1,
            at: self.now,
            event: event.into(),
        };
        self.recovery.apply(&recorded);
        self.repairs.apply(&recorded);
        self.log.push(recorded);
    }

    fn end(&self, used: AttemptUsage) -> AttemptEnd {
        AttemptEnd {
            session: self.recovery.spec().session.clone(),
            number: self.recovery.attempt_count(),
            exit_code: Some(1),
            signal: None,
            limit: None,
            duration_ms: 10,
            stdout_bytes: 0,
            stderr_bytes: 0,
            leftover_processes: 0,
            model: None,
            cause: None,
            usage: used,
            tree: None,
            last_progress: self.progress.map(|before| self.now.before(before)),
            failing_since: None,
        }
    }

    fn start(&mut self) {
        let plan = self.recovery.next_attempt();
        let session = self.recovery.spec().session.clone();
        self.happen(Box::new(AttemptStarted {
            session,
            number: plan.number,
            command: vec!["claude".into()],
            model: plan.model,
            timeout_ms: None,
            cause: plan.cause,
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
                let end = self.end(AttemptUsage::default());
                self.happen(Box::new(AttemptSucceeded {
                    end,
                    truncated: false,
                }));
            }
            Some((kind, used)) => {
                let mut failed = self.failed(kind, used);
                failed.excerpt.stderr = self.words.to_owned();
                self.happen(Box::new(failed));
            }
        }
    }

    fn failed(&self, kind: FailureKind, used: AttemptUsage) -> AttemptFailed {
        AttemptFailed {
            end: self.end(used),
            diagnosis: diagnosis(kind),
            validation_errors: Vec::new(),
            excerpt: Default::default(),
            check: None,
            lost_conversation: false,
        }
    }

    fn until_attempt(&mut self, number: u32) {
        while self.recovery.next_step(self.now) != NextSessionStep::Attempt
            || self.recovery.attempt_count() < number
        {
            assert!(self.step());
        }
    }

    /// Executes one step; returns false if nothing is left to do.
    fn step(&mut self) -> bool {
        match self.recovery.next_step(self.now) {
            NextSessionStep::Attempt | NextSessionStep::Check => self.attempt(),
            NextSessionStep::RecordInterruption => {
                let session = self.recovery.spec().session.clone();
                let number = self.recovery.attempt_count();
                let by = InterruptionCause::Crash;
                self.happen(AttemptInterrupted {
                    has_output: false,
                    session,
                    number,
                    by,
                    agent_session: None,
                });
            }
            NextSessionStep::Repair => self.repair(),
            NextSessionStep::RecordInterruptedRepair => {
                let id = self.recovery.pending_repair().unwrap().to_owned();
                self.happen(RepairFailed {
                    session: None,
                    id,
                    command: "fix".into(),
                    exit_code: None,
                    error: "cut off".into(),
                    was_interrupted: true,
                });
            }
            NextSessionStep::Decide => {
                let number = self.repairs.next_number();
                let (id, command) = (format!("p{number}"), format!("fix {number}"));
                let leave = self.offers.front().map(|(leave, _)| *leave);
                if leave.is_some() {
                    self.happen(Box::new(proposed(&id, &command)));
                }
                let repair = leave.map(|leave| AvailableRepair {
                    id: &id,
                    command: &command,
                    permission: leave,
                    number: 1,
                    max_auto: 3,
                });
                let means = RunnerDecisionContext {
                    recovery_knowledge: RecoveryKnowledge::built_in(),
                    catalog: &ModelCatalog::embedded(),
                    success_rates: &SuccessRates::empty(),
                    capabilities: RetryCapabilities::ALL,
                    session_limits: SessionLimits::default(),
                    tool: None,
                    repair,
                    repeatable: OperationRepeatability::Safe,
                    is_offline: self.is_offline,
                    can_park: true,
                };
                let draw = self.dice.next_draw();
                let made = self.recovery.decide(&means, self.now, draw).unwrap();
                self.happen(Box::new(made));
            }
            NextSessionStep::Wait(until) => self.now = until,
            NextSessionStep::Finish(outcome) => {
                let end = self.recovery.finish(outcome, 0, String::new(), self.now);
                self.happen(end);
            }
            NextSessionStep::Finished => return false,
        }
        true
    }

    fn repair(&mut self) {
        let id = self.recovery.pending_repair().unwrap().to_owned();
        let command = self.repairs.get(&id).unwrap().proposed.command.clone();
        let (_, exit_code) = self.offers.pop_front().unwrap();
        self.happen(RepairStarted {
            session: None,
            id: id.clone(),
            source: ApprovalSource::Auto,
            command: command.clone(),
            tree: None,
            is_unlisted: false,
        });
        if exit_code == CRASH {
            return self.crash();
        }
        self.happen(RepairExecuted {
            session: None,
            id,
            command,
            exit_code,
            duration_ms: 5,
            sandbox: "full".into(),
            output: String::new(),
            tree: None,
            side_effects: RepairSandboxReport::default(),
        });
    }

    fn run(mut self) -> Self {
        while self.step() {}
        self
    }

    fn finished(&self) -> &RunFinished {
        self.recovery.run_finished().unwrap()
    }

    /// Simulates a crash: only the log survives.
    fn crash(&mut self) {
        self.recovery = SessionState::from_events(&self.log).unwrap();
    }
}

/// A repair during which the process crashes.
const CRASH: i32 = -9;
const GRANTED: RepairPermission = RepairPermission::Granted {
    after: Duration::ZERO,
};

fn proposed(id: &str, command: &str) -> RepairProposed {
    RepairProposed {
        session: None,
        id: id.into(),
        category: RepairCategory::Dependency,
        command: command.into(),
        confidence: ProposalConfidence::High,
        working_dir: None,
        timeout_seconds: 120,
        by: RepairProposalOrigin::Owner,
        root_cause: String::new(),
        evidence: Vec::new(),
        expected_outcome: String::new(),
        fingerprint: String::new(),
        fallback: None,
        document: None,
        verdict: PolicyVerdict::Run,
        reason: String::new(),
        hash: String::new(),
    }
}

fn diagnosis(kind: FailureKind) -> Diagnosis {
    let known = RecoveryKnowledge::built_in().kind(kind).unwrap();
    let layer = FailureLayer::Agent;
    Diagnosis {
        kind,
        layer,
        level: known.level(kind, layer),
        confidence: 1.0,
        retry_after: (kind == FailureKind::RateLimitTimed).then_some(Duration::from_secs(7200)),
        retry_after_source: None,
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

/// S0-28, S0-32, S1-25: execute, classify, wait, retry; the count and the level are recorded.
#[test]
fn a_transient_failure_is_retried_until_it_passes() {
    let world = World::new(standard(), [FailureKind::ServerOverloaded; 3]).run();
    let end = world.finished();
    assert_eq!((end.outcome, end.attempts), (RunOutcome::Recovered, 4));
    let episode = SessionSummary::from_events(&world.log)[0].to_episode("r", end, world.now);
    assert_eq!(
        (episode.retry_count, episode.recovery_level),
        (3, Some(RecoveryLevel::Same))
    );
    assert!(episode.success && episode.error.is_none());
}

fn resilient() -> &'static RetryPolicy {
    template("resilient").unwrap()
}

/// An outage of 20 minutes is survived by default, even if the supervisor crashes during it.
#[test]
fn an_outage_is_survived_by_default_even_with_a_crash() {
    let mut world = World::new(resilient(), [FailureKind::ServerOverloaded; 25]);
    while world.recovery.attempt_count() < 12 {
        assert!(world.step());
    }
    world.crash();
    let world = world.run();
    let end = world.finished();
    assert_eq!((end.outcome, end.attempts), (RunOutcome::Recovered, 26));
}

/// Working time of an attempt and unsupervised time are not time without progress.
#[test]
fn work_and_unsupervised_time_are_not_time_without_progress() {
    let mut world = World::new(resilient(), [FailureKind::ServerError; 3]);
    while world.recovery.attempt_count() < 2 {
        assert!(world.step());
    }
    // Attempt 2 works for three hours, then everything crashes; it is resumed the next morning.
    world.start();
    world.now = world.now.after(Duration::from_secs(10 * 3600));
    world.crash();
    world.happen(RunResumed::unchanged("the process ended", 2));
    while world.recovery.next_step(world.now) != NextSessionStep::Decide {
        assert!(world.step());
    }
    let history = world.recovery.history().unwrap();
    let idle = history.time_without_progress(world.now);
    assert!(idle < Duration::from_secs(60), "{idle:?}");
    // An attempt that made progress until shortly before it failed restarts the timer.
    world.progress = Some(Duration::from_secs(5));
    world.failures = [(FailureKind::ServerError, AttemptUsage::default())].into();
    assert!(world.step());
    while world.recovery.next_step(world.now) != NextSessionStep::Decide {
        world.now = world.now.after(Duration::from_secs(3));
        assert!(world.step());
    }
    let history = world.recovery.history().unwrap();
    assert_eq!(
        history.time_without_progress(world.now),
        Duration::from_secs(5)
    );
}

/// The wait for the network ends early when it is back, survives a crash, and is not a retry.
#[test]
fn a_network_outage_is_waited_out() {
    let mut world = World::new(resilient(), [FailureKind::NetworkError; 2]);
    world.words = "curl: (6) Could not resolve host: api.anthropic.com";
    world.is_offline = true;
    while !matches!(
        world.recovery.next_step(world.now),
        NextSessionStep::Wait(_)
    ) {
        assert!(world.step());
    }
    assert_eq!(world.recovery.wait_purpose(), WaitPurpose::Network);
    world.now = world.now.after(Duration::from_secs(3 * 3600));
    world.crash();
    assert_eq!(world.recovery.wait_purpose(), WaitPurpose::Network);
    world.happen(WaitEnded {
        session: None,
        by: EarlyWaitEndCause::Network,
    });
    assert_eq!(
        world.recovery.next_step(world.now),
        NextSessionStep::Attempt
    );
    world.is_offline = false;
    let world = world.run();
    assert_eq!(world.finished().outcome, RunOutcome::Recovered);
    let waited = world.now.since(world.log[0].at);
    assert!(waited < Duration::from_secs(3 * 3600 + 60), "{waited:?}");
}

/// An unresolvable host name is escalated before half an hour has passed; a provider's host is waited for.
#[test]
fn a_wrong_host_name_escalates_soon_and_a_providers_does_not() {
    let soon = |words: &'static str| {
        let mut world = World::new(resilient(), [FailureKind::NetworkError; 200]);
        world.words = words;
        while world.recovery.next_step(world.now) != NextSessionStep::Finished
            && world.now.since(world.log[0].at) < Duration::from_secs(600)
        {
            world.step();
        }
        world.recovery.run_finished().map(|end| end.outcome)
    };
    let wrong = "fatal: unable to access 'https://nosuch.invalid/x/': Could not resolve host: nosuch.invalid";
    assert_eq!(soon(wrong), Some(RunOutcome::AwaitingHuman));
    assert_eq!(soon("Could not resolve host: api.anthropic.com"), None);
}

/// A human who resumes a run can set how long to keep retrying.
#[test]
fn a_run_can_be_resumed_with_more_time() {
    let mut world = World::new(standard(), [FailureKind::ServerError; 40]).run();
    assert_eq!(world.finished().outcome, RunOutcome::AwaitingHuman);
    world.happen(RunResumed {
        keep_trying_ms: Some(8 * 3_600_000),
        ..RunResumed::unchanged("a person was asked", 2)
    });
    world.happen(EscalationResolved::by_hand(None));
    let world = world.run();
    assert_eq!(world.finished().outcome, RunOutcome::Recovered);
    assert_eq!(
        world.recovery.spec().policy.max_elapsed.unwrap().as_secs(),
        8 * 3600
    );
}

/// S0-13, S0-31: a missing login escalates at once.
#[test]
fn a_fatal_failure_escalates_without_a_retry() {
    let world = World::new(standard(), [FailureKind::AuthRequired]).run();
    let end = world.finished();
    assert_eq!((end.outcome, end.attempts), (RunOutcome::AwaitingHuman, 1));
    assert_eq!(end.recovery_level, Some(RecoveryLevel::Escalate));
}

#[test]
fn after_a_manual_fix_all_retries_are_available_again() {
    let failures = [
        FailureKind::AuthRequired,
        FailureKind::ServerError,
        FailureKind::ServerError,
    ];
    let mut world = World::new(standard(), failures).run();
    world.happen(RunResumed::unchanged("a person logged in", 1));
    world.happen(EscalationResolved::by_hand(None));
    let world = world.run();
    assert_eq!(world.finished().outcome, RunOutcome::Recovered);
    assert_eq!(world.finished().attempts, 4);
}

#[test]
fn an_interrupted_attempt_runs_again_and_is_counted_once() {
    let mut world = World::new(standard(), [FailureKind::ServerError]);
    world.start();
    world.crash();
    let world = world.run();
    let end = world.finished();
    assert_eq!(
        (end.outcome, end.attempts, end.retry_count),
        (RunOutcome::Recovered, 2, 1)
    );
}

#[test]
fn after_a_usage_limit_the_same_conversation_is_resumed() {
    let mut world = World::new(standard(), []);
    let used = AttemptUsage {
        agent_session: Some("abc".into()),
        ..AttemptUsage::default()
    };
    world.failures = [(FailureKind::RateLimitTimed, used)].into();
    while world.recovery.next_step(world.now) != NextSessionStep::Attempt
        || world.recovery.attempt_count() == 0
    {
        assert!(world.step());
    }
    assert_eq!(world.recovery.next_attempt().resume.as_deref(), Some("abc"));
    let waited = world.now.since(world.log[0].at);
    assert!(waited >= Duration::from_secs(7200), "{waited:?}");
}

fn in_conversation(written: u64) -> AttemptUsage {
    let tokens = TokenUsage {
        output: written,
        ..TokenUsage::default()
    };
    AttemptUsage {
        agent_session: Some("abc".into()),
        tokens: Some(tokens),
        ..AttemptUsage::default()
    }
}

#[test]
fn after_an_answer_the_conversation_is_resumed_if_it_contains_work() {
    for (kind, written, goes_on) in [
        (FailureKind::AuthExpired, 10, true),
        (FailureKind::QuotaExhausted, 10, true),
        (FailureKind::AuthRequired, 0, false),
        (FailureKind::ContextLimit, 10, false),
    ] {
        let mut world = World::new(standard(), []);
        world.failures = [(kind, in_conversation(written))].into();
        let mut world = world.run();
        world.happen(RunResumed::unchanged("a person has seen to it", 1));
        world.happen(EscalationResolved::by_hand(None));
        let plan = world.recovery.next_attempt();
        assert_eq!(plan.resume.is_some(), goes_on, "{kind} {plan:?}");
    }
}

/// An agent's findings and work are in its conversation, even if its last answer is empty or malformed.
#[test]
fn a_wrong_answer_is_requested_again_in_the_same_conversation() {
    for (kind, written, goes_on) in [
        (FailureKind::EmptyOutput, 10, true),
        (FailureKind::MissingSections, 10, true),
        (FailureKind::EmptyOutput, 0, false),
        (FailureKind::ContextLimit, 10, false),
    ] {
        let mut world = World::new(standard(), []);
        world.failures = [(kind, in_conversation(written))].into();
        world.until_attempt(1);
        let plan = world.recovery.next_attempt();
        assert_eq!(plan.resume.is_some(), goes_on, "{kind} {plan:?}");
        assert_eq!(plan.template_in_conversation().is_some(), goes_on);
    }
    // Both retries of an empty answer keep the work.
    let mut world = World::new(standard(), []);
    let failures = [
        (FailureKind::EmptyOutput, in_conversation(10)),
        (FailureKind::EmptyOutput, in_conversation(0)),
    ];
    world.failures = failures.into();
    world.until_attempt(2);
    assert_eq!(world.recovery.next_attempt().resume.as_deref(), Some("abc"));
}

/// A human's message is sent in the conversation.
#[test]
fn a_persons_message_is_sent_in_the_conversation() {
    let mut world = World::new(standard(), []);
    world.failures = [(FailureKind::AuthExpired, in_conversation(10))].into();
    let mut world = world.run();
    world.happen(RunResumed::unchanged("a person has seen to it", 1));
    let mut resolved = EscalationResolved::by_hand(None);
    resolved.changes = vec![ConcreteAttemptChange::UserMessage(
        "use the other key".into(),
    )];
    world.happen(resolved);
    let plan = world.recovery.next_attempt();
    assert_eq!(plan.resume.as_deref(), Some("abc"));
    assert_eq!(plan.user_message.as_deref(), Some("use the other key"));
}

fn call_failed(session: &crate::SessionId, kind: FailureKind, decision: Decision) -> CallFailed {
    CallFailed {
        session: session.clone(),
        call: "c1".into(),
        number: 1,
        upstream: "first".into(),
        model: None,
        status: None,
        diagnosis: diagnosis(kind),
        decision,
        fallback: None,
        skipped_upstreams: Vec::new(),
        policy_hash: String::new(),
        conversation: None,
    }
}

/// The time in which the gateway held a failing call is time without progress: it is not retried for as long again.
#[test]
fn time_spent_on_retries_in_the_gateway_is_not_granted_again() {
    let half_an_hour = Duration::from_secs(1800);
    for (failing, idle) in [(Some(half_an_hour), half_an_hour), (None, Duration::ZERO)] {
        let mut world = World::new(resilient(), []);
        world.start();
        world.now = world.now.after(half_an_hour * 3);
        world.progress = Some(half_an_hour * 2);
        let mut failed = world.failed(FailureKind::ServerError, AttemptUsage::default());
        failed.end.failing_since = failing.map(|time| world.now.before(time));
        world.happen(Box::new(failed));
        let history = world.recovery.history().unwrap();
        assert_eq!(history.time_without_progress(world.now), idle);
    }
}

/// An agent that does not print its conversation id may include it in its requests.
#[test]
fn a_conversation_known_only_from_calls_is_resumed_after_a_crash() {
    let mut world = World::new(standard(), []);
    world.start();
    let session = world.recovery.spec().session.clone();
    let mut decided = World::new(standard(), [FailureKind::RateLimit]);
    decided.until_attempt(1);
    let made = decided.log.iter().find_map(|one| match &one.event {
        Event::DecisionMade(made) => Some(made.decision.clone()),
        _ => None,
    });
    let failed = call_failed(&session, FailureKind::RateLimit, made.unwrap());
    assert_eq!(world.recovery.assigned_conversation(), None);
    for conversation in ["ses_1", "ses_2"] {
        world.happen(Box::new(CallFailed {
            conversation: Some(conversation.into()),
            ..failed.clone()
        }));
    }
    assert_eq!(world.recovery.assigned_conversation(), Some("ses_1"));
}

/// Stored events may be older than the check of what an agent reports.
#[test]
fn a_stored_conversation_id_that_is_an_option_is_not_resumed() {
    let mut world = World::new(standard(), []);
    let used = AttemptUsage {
        agent_session: Some("--dangerously-skip-permissions".into()),
        ..AttemptUsage::default()
    };
    world.failures = [(FailureKind::RateLimitTimed, used)].into();
    while world.recovery.next_step(world.now) != NextSessionStep::Attempt
        || world.recovery.attempt_count() == 0
    {
        assert!(world.step());
    }
    assert_eq!(world.recovery.next_attempt().resume, None);
}

/// A wait inside the gateway is as durable as any other.
#[test]
fn the_wait_of_a_held_api_call_survives_a_crash() {
    let mut world = World::new(standard(), []);
    world.start();
    let until = world.now.after(Duration::from_secs(5400));
    let session = world.recovery.spec().session.clone();
    let mut decided = World::new(standard(), [FailureKind::RateLimit]);
    decided.until_attempt(1);
    let made = decided.log.iter().find_map(|one| match &one.event {
        Event::DecisionMade(made) => Some(made.decision.clone()),
        _ => None,
    });
    let mut decision = made.unwrap();
    decision.action = RecoveryAction::Retry {
        until,
        delay: Duration::from_secs(5400),
    };
    // Another upstream was used instead: nothing waits.
    for (call, fallback) in [("c1", None), ("c2", Some("second".to_owned()))] {
        world.happen(Box::new(CallFailed {
            call: call.into(),
            fallback,
            ..call_failed(&session, FailureKind::RateLimitTimed, decision.clone())
        }));
        decision.action = RecoveryAction::Retry {
            until: until.after(Duration::from_secs(60)),
            delay: Duration::from_secs(5460),
        };
    }
    world.crash();
    assert!(world.step(), "the interruption is noted");
    assert_eq!(
        world.recovery.next_step(world.now),
        NextSessionStep::Wait(until)
    );
    let world = world.run();
    let waited = world.log.last().unwrap().at;
    assert!(waited >= until);
    assert_eq!(world.finished().outcome, RunOutcome::Succeeded);
}

/// Creates a failed call that is held for some time.
fn call_held_for(world: &World, delay: Duration) -> CallFailed {
    let mut decided = World::new(standard(), [FailureKind::RateLimit]);
    decided.until_attempt(1);
    let made = decided.log.iter().find_map(|one| match &one.event {
        Event::DecisionMade(made) => Some(made.decision.clone()),
        _ => None,
    });
    let mut decision = made.unwrap();
    let until = world.now.after(delay);
    decision.action = RecoveryAction::Retry { until, delay };
    let session = &world.recovery.spec().session;
    call_failed(session, FailureKind::RateLimitTimed, decision)
}

/// An event that ended an earlier wait does not end this one.
#[test]
fn the_wait_of_a_held_api_call_begins_when_its_attempt_was_interrupted() {
    let hour = Duration::from_secs(3600);
    for failures in [
        vec![],
        vec![(FailureKind::NetworkError, AttemptUsage::default())],
    ] {
        let mut world = World::new(resilient(), []);
        world.failures = failures.into();
        if !world.failures.is_empty() {
            world.until_attempt(1);
            let session = Some(world.recovery.spec().session.clone());
            let by = EarlyWaitEndCause::Network;
            world.happen(WaitEnded { session, by });
        }
        world.start();
        // It works for an hour before its call is held.
        world.now = world.now.after(hour);
        world.happen(Box::new(call_held_for(&world, hour * 2)));
        let idle_before = world.recovery.history().map(|one| one.idle_intervals.len());
        world.crash();
        world.now = world.now.after(Duration::from_secs(5));
        assert!(world.step(), "the interruption is noted");
        assert_eq!(world.recovery.waiting_since(), Some(world.now));
        let since = world.now;
        assert!(world.step(), "it waits");
        world.start();
        let history = world.recovery.history();
        assert_eq!(idle_before.is_some(), history.is_some());
        if let Some(history) = history {
            let idle: Vec<_> = history.idle_intervals.iter().map(|one| one.at).collect();
            assert_eq!(idle, [since], "only the wait, not the work before it");
        }
    }
}

/// A person who requests a retry while a call is held does not want to wait after a crash either.
#[test]
fn a_held_api_call_that_a_person_released_is_not_waited_for_after_a_crash() {
    let mut world = World::new(standard(), []);
    world.start();
    world.happen(Box::new(call_held_for(&world, Duration::from_secs(5400))));
    let session = Some(world.recovery.spec().session.clone());
    let by = EarlyWaitEndCause::Person;
    world.happen(WaitEnded { session, by });
    world.crash();
    assert!(world.step(), "the interruption is noted");
    assert_eq!(
        world.recovery.next_step(world.now),
        NextSessionStep::Attempt
    );
}

/// A lost conversation costs one attempt, and never causes an escalation or a loop.
#[test]
fn a_lost_conversation_is_replaced_at_once() {
    let mut world = World::new(standard(), []);
    world.failures = [(FailureKind::RateLimitTimed, in_conversation(10))].into();
    world.until_attempt(1);
    assert_eq!(world.recovery.next_attempt().resume.as_deref(), Some("abc"));
    world.start();
    let failed = AttemptFailed {
        lost_conversation: true,
        ..world.failed(FailureKind::InvalidArguments, AttemptUsage::default())
    };
    world.happen(Box::new(failed));
    assert_eq!(
        world.recovery.next_step(world.now),
        NextSessionStep::Attempt
    );
    let plan = world.recovery.next_attempt();
    assert_eq!((plan.resume, plan.after_interruption), (None, true));
    assert_eq!(world.run().finished().outcome, RunOutcome::Recovered);
}

/// The work is done; only the repaired check runs again.
#[test]
fn after_a_repair_only_the_failed_check_runs_again() {
    let mut world = World::new(standard(), []).offering([(GRANTED, 0)]);
    world.start();
    let failed = AttemptFailed {
        check: Some(FailedCheck {
            command: "npm test".into(),
            exit_code: 1,
            stdout: String::new(),
            stderr: String::new(),
        }),
        ..world.failed(FailureKind::MissingDependency, AttemptUsage::default())
    };
    world.happen(Box::new(failed));
    while world.recovery.pending_repair().is_some() || world.repairs.all().is_empty() {
        assert!(world.step());
    }
    assert_eq!(world.recovery.next_step(world.now), NextSessionStep::Check);
    world.start();
    world.crash();
    assert!(world.step());
    assert_eq!(
        world.recovery.next_step(world.now),
        NextSessionStep::Check,
        "after a crash, too"
    );
    assert_eq!(world.run().finished().outcome, RunOutcome::Recovered);
}

/// S1-26, S1-36: a timeout of 1200 s becomes 1800 s and stays so.
#[test]
fn changes_accumulate_from_attempt_to_attempt() {
    let policy = standard()
        .with_json(&serde_json::json!({"kinds": {"timeout": {"maxRetries": 3}}}))
        .unwrap();
    let mut world = World::new(&policy, [FailureKind::Timeout; 3]);
    let mut timeouts = Vec::new();
    while world.recovery.next_step(world.now) != NextSessionStep::Finished {
        if world.recovery.next_step(world.now) == NextSessionStep::Attempt {
            timeouts.push(world.recovery.next_attempt().timeout.unwrap().as_secs());
        }
        world.step();
    }
    assert!(
        timeouts.contains(&1800) && timeouts.is_sorted(),
        "{timeouts:?}"
    );
}

/// S3-38: after an approved repair that helped, the session continues.
#[test]
fn an_approved_repair_runs_before_any_other_strategy() {
    let world = World::new(standard(), [FailureKind::MissingDependency]);
    let world = world.offering([(GRANTED, 0)]).run();
    assert_eq!(world.finished().outcome, RunOutcome::Recovered);
    assert_eq!(world.finished().attempts, 2);
    let ran = world.repairs.all()[0].status;
    assert_eq!(ran, RepairStatus::Executed);
}

#[test]
fn the_agent_is_not_called_again_if_the_repair_itself_failed() {
    let failures = [
        FailureKind::MissingDependency,
        FailureKind::MissingDependency,
    ];
    let world = World::new(standard(), failures);
    let world = world.offering([(GRANTED, 1), (GRANTED, 0)]).run();
    let names: Vec<_> = world.log.iter().map(|one| one.event.name()).collect();
    let second = names.iter().rposition(|name| *name == "recovery_started");
    let attempts = names.iter().take(second.unwrap());
    let attempts = attempts.filter(|name| **name == "attempt_started");
    assert_eq!(attempts.count(), 1, "{names:?}");
}

/// S3-39: a repair without approval is escalated, and an open escalation waits.
#[test]
fn a_repair_someone_waits_for_escalates_at_once_and_any_other_last() {
    let asked = |leave| {
        let world = World::new(standard(), [FailureKind::CliCrash; 9]).offering([(leave, 0)]);
        let world = world.run();
        let mut made = world.log.iter().filter_map(|one| match &one.event {
            Event::DecisionMade(made) => Some(&made.decision),
            _ => None,
        });
        let last = made.next_back().unwrap();
        let RecoveryAction::Escalate { trigger, why, .. } = &last.action else {
            panic!("nobody was asked: {last:?}");
        };
        assert_eq!(
            (*trigger, *why),
            (EscalationTrigger::Recovery, EscalationReason::Repair)
        );
        world.finished().attempts
    };
    assert_eq!(asked(RepairPermission::AskNow), 1);
    assert!(asked(RepairPermission::AskLast) > 1);
}

#[test]
fn an_approved_repair_runs_once_and_then_the_attempt_starts() {
    let world = World::new(standard(), [FailureKind::MissingDependency]);
    let mut world = world.offering([(RepairPermission::AskNow, 0)]).run();
    assert_eq!(world.finished().outcome, RunOutcome::AwaitingHuman);
    world.happen(RunResumed::unchanged("a person said yes", 1));
    world.happen(EscalationResolved {
        method: "approve".into(),
        ..EscalationResolved::by_hand(None)
    });
    world.happen(RepairApproved {
        session: None,
        id: "p1".into(),
        source: ApprovalSource::Human,
        command: "fix 1".into(),
    });
    let world = world.run();
    assert_eq!(world.finished().outcome, RunOutcome::Recovered);
    let started = |one: &&EventRecord| matches!(one.event, Event::RepairStarted(_));
    assert_eq!(world.log.iter().filter(started).count(), 1);
}

/// An approved repair that cannot be run is an ordinary failure, and the session continues.
#[test]
fn an_approved_repair_that_cannot_run_does_not_stop_the_session() {
    let world = World::new(standard(), [FailureKind::MissingDependency]);
    let mut world = world.offering([(RepairPermission::AskNow, 0)]).run();
    world.offers.clear();
    world.happen(RunResumed::unchanged("a person said yes", 1));
    world.happen(EscalationResolved {
        method: "approve".into(),
        ..EscalationResolved::by_hand(None)
    });
    world.happen(RepairApproved {
        session: None,
        id: "p1".into(),
        source: ApprovalSource::Human,
        command: "fix 1".into(),
    });
    assert_eq!(world.recovery.next_step(world.now), NextSessionStep::Repair);
    world.happen(RepairFailed {
        session: None,
        id: "p1".into(),
        command: "fix 1".into(),
        exit_code: None,
        error: "it is not what was shown".into(),
        was_interrupted: false,
    });
    let world = world.run();
    assert!(world.recovery.run_finished().is_some());
}

#[test]
fn an_interrupted_repair_is_not_run_again() {
    let world = World::new(standard(), [FailureKind::MissingDependency]);
    let world = world.offering([(GRANTED, CRASH)]).run();
    assert_eq!(world.finished().outcome, RunOutcome::Recovered);
    let started = |one: &&EventRecord| matches!(one.event, Event::RepairStarted(_));
    assert_eq!(world.log.iter().filter(started).count(), 1);
}

#[test]
fn a_transient_failure_is_retried_before_a_repair() {
    let world = World::new(standard(), [FailureKind::NetworkError; 2]);
    let world = world.offering([(GRANTED, 0)]).run();
    let started = |one: &EventRecord| matches!(one.event, Event::RepairStarted(_));
    assert!(!world.log.iter().any(started));
}

proptest! {
    /// Whatever fails and wherever it crashes: a replay gives the same state, and every run ends.
    #[test]
    fn replay_equals_live_and_every_run_ends(
        failures in proptest::collection::vec(0..FailureKind::ALL.len(), 0..40),
        crashes in proptest::collection::vec(0..60_usize, 0..6),
        offers in proptest::collection::vec((0..3_u8, 0..2_i32), 0..6),
    ) {
        let kinds = failures.into_iter().map(|at| FailureKind::ALL[at]).filter(|kind| *kind != FailureKind::None);
        let leave = |number| match number {
            0 => GRANTED,
            1 => RepairPermission::AskNow,
            _ => RepairPermission::AskLast,
        };
        let offers = offers.into_iter().map(|(number, code)| (leave(number), code));
        let mut world = World::new(standard(), kinds).offering(offers);
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
        prop_assert!(world.finished().attempts <= SessionLimits::default().attempts + 1);
    }
}

/// A crash counter is only reset by a sign of health.
#[test]
fn consecutive_crashes_are_reset_by_a_sign_of_health() {
    let policy = template("standard").unwrap();
    let mut world = World::new(policy, [FailureKind::ServerError]);
    let crash = |world: &mut World, progressed: bool| {
        world.start();
        let session = world.recovery.spec().session.clone();
        world.happen(AttemptInterrupted {
            session,
            number: 1,
            by: InterruptionCause::Crash,
            agent_session: None,
            has_output: progressed,
        });
    };
    crash(&mut world, false);
    crash(&mut world, false);
    assert_eq!(consecutive_crashes(&world.log), 2);
    // A running attempt whose process is gone is included.
    world.start();
    assert_eq!(consecutive_crashes(&world.log), 3);
    crash(&mut world, true);
    assert_eq!(consecutive_crashes(&world.log), 0);
    crash(&mut world, false);
    assert_eq!(consecutive_crashes(&world.log), 1);
    // A failure without progress is no sign of health, one with progress is.
    world.attempt();
    assert_eq!(consecutive_crashes(&world.log), 1);
    world
        .failures
        .push_back((FailureKind::ServerError, AttemptUsage::default()));
    world.progress = Some(Duration::ZERO);
    world.attempt();
    assert_eq!(consecutive_crashes(&world.log), 0);
}

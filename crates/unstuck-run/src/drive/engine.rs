//! The loop: what is to be done next, until there is nothing more.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use unstuck_core::RunId;
use unstuck_core::agent::{Agent, Invocation};
use unstuck_core::decision::{AskWhy, Capability, Chosen, Draw, Repeat};
use unstuck_core::duration::in_millis;
use unstuck_core::event::{
    DecisionMade, InterruptedBy, ModelEscalated, Outcome, RunStarted, SessionSpec, Work,
};
use unstuck_core::question::Patience;
use unstuck_core::recovery::{Means, Next};
use unstuck_core::redact::Redactor;
use unstuck_store::{Store, StoreError};

use super::announce::Announcer;
use super::asking::Asking;
use super::error::RunError;
use super::finished::Finished;
use super::go_between::GoBetween;
use super::interruption::Interruption;
use super::journal::{Journal, Place, StoreState};
use super::knowledge::Knowledge;
use super::lease::Held;
use super::log::Log;
use super::repair::{Best, Repairer};
use super::report::Reporter;
use super::request::{Options, Request};
use super::role_work::RoleWork;
use super::supervisors::Supervisors;
use crate::clock::Clock;
use crate::process::{Stdin, Stop};
use unstuck_network::NetworkProbe;

/// The exit code when a question is open.
pub(super) const ASKED: i32 = 3;
/// The exit code when the time was up.
const TIMED_OUT: i32 = 124;

/// Drives runs.
pub struct Engine<'a> {
    /// Where everything is written down.
    pub store: &'a Store,
    /// What is known.
    pub knowledge: Knowledge<'a>,
    /// Takes secrets out of what is stored.
    pub redactor: &'a Redactor,
    /// Run the children.
    pub supervisors: &'a Supervisors,
    /// What comes on standard input.
    pub stdin: &'a mut Stdin,
    /// Is told what happens.
    pub reporter: &'a mut dyn Reporter,
    /// Whether to stop.
    pub stop: watch::Receiver<Stop>,
    /// The time.
    pub clock: Clock,
    /// The person's home folder, where agents keep their conversations.
    pub home: Option<&'a Path>,
    /// How often a log is told that a wait goes on.
    pub heartbeat: Duration,
    /// Whether there is a network.
    pub network: NetworkProbe,
    /// Chance.
    pub draws: &'a mut dyn FnMut() -> Draw,
    /// Where what is needed to take a run up again is kept, out of the agents' reach.
    pub state: &'a Path,
    /// The call of a role; none where the command line is all that is known.
    pub role: Option<RoleWork<'a>>,
    /// Repairs the environment, where that is allowed.
    pub repairer: Option<Repairer<'a>>,
    /// How long is waited for people.
    pub patience: &'a Patience,
    /// Knows what people are to be told; none where nobody is.
    pub announcer: Option<&'a dyn Announcer>,
    /// Stands between agents and their APIs; none where nobody does.
    pub go_between: Option<&'a dyn GoBetween>,
}

impl<'a> Engine<'a> {
    /// Where a run is written down.
    pub(super) fn place(&self) -> Place<'a> {
        Place {
            store: self.store,
            redactor: self.redactor,
            state: self.state,
        }
    }
}

impl Engine<'_> {
    /// Runs a command, from its beginning to its end.
    pub async fn start(&mut self, request: Request) -> Result<Finished, RunError> {
        let run = RunId::drawn((self.draws)());
        let held = Held::begin(self.store, &run, self.clock).await;
        let held = held.map_err(RunError::unbegun)?;
        let started = self.started(&run, request);
        let at = self.clock.at();
        let nothing = || RunError::NotResumable {
            run: run.clone(),
            why: "it has no beginning".into(),
        };
        let journal = Journal::begin(self.place(), &run, &started, at, held);
        let journal = journal.ok_or_else(nothing)?.announcing(self.announcer);
        let mut log = Log::begin(&journal, started, at).ok_or_else(nothing)?;
        self.drive(&mut log).await?;
        let (end, child) = (log.recovery().finished().cloned(), log.child());
        journal.close(end, child).await
    }

    /// The commit that is checked out now, where repairs may be made; empty where there is none.
    fn first_commit(&self) -> Option<String> {
        let committed = self.repairer.map(|one| one.workshop.committed);
        committed.map(|one| one.commit().unwrap_or_default())
    }

    fn started(&mut self, run: &RunId, request: Request) -> RunStarted {
        let agent = self.agent_of(&request.command, request.agent.as_deref());
        let (agent, model) = match agent {
            Some(agent) => (
                Some(agent.id().to_owned()),
                Invocation::read(agent, &request.command)
                    .model()
                    .map(str::to_owned),
            ),
            None => (None, None),
        };
        let command = self.redactor.redact_command(&request.command);
        let unrepeatable = (command != request.command)
            .then(|| "its command line holds a secret, which is not stored".to_owned());
        let spec = SessionSpec {
            cwd: request.cwd.display().to_string(),
            command: request.command,
            agent,
            model,
            session: run.session(1),
            policy: request.policy,
            origins: request.origins,
            timeout_ms: request.timeout.map(in_millis),
            idle_timeout_ms: request.idle_timeout.map(in_millis),
            options: json!(request.options),
            unrepeatable,
            knowledge: self.knowledge.version.to_owned(),
        };
        RunStarted {
            head: self.first_commit(),
            project: request.project.display().to_string(),
            work: Work::Command(Box::new(spec)),
        }
    }

    pub(super) fn agent_of(&self, command: &[String], named: Option<&str>) -> Option<&Agent> {
        let agents = self.knowledge.agents();
        match named {
            Some(name) => agents.get(name),
            None => agents.recognise(command),
        }
    }

    /// Whether a command line runs an agent without a person.
    pub(super) fn is_headless(&self, spec: &SessionSpec) -> bool {
        let agent = self.agent_of(&spec.command, spec.agent.as_deref());
        agent.is_some_and(|agent| Invocation::read(agent, &spec.command).is_headless())
    }

    /// The loop itself.
    pub(super) async fn drive(&mut self, log: &mut Log<'_, '_>) -> Result<(), RunError> {
        loop {
            let now = self.clock.at();
            match log.recovery().next(now) {
                Next::Attempt => self.attempt(log).await?,
                Next::Check => self.check_again(log).await?,
                Next::NoteInterruption => self.note_crash(log)?,
                Next::Decide => self.decide(log).await?,
                Next::Repair => self.repair(log).await?,
                Next::NoteCutRepair => self.note_cut_repair(log),
                Next::Wait(until) => {
                    self.flush(log).await?;
                    self.wait(log, until).await?;
                }
                Next::Finish(Outcome::AwaitingHuman) if self.is_optional() => {
                    self.finish(log, Outcome::Failed)?;
                }
                Next::Finish(Outcome::AwaitingHuman) if log.options().wait => {
                    self.wait_for_person(log).await?;
                }
                Next::Finish(outcome) => self.finish(log, outcome)?,
                Next::Nothing => break,
            }
        }
        self.flush(log).await?;
        self.record_the_rest(log).await?;
        self.forget_input(log);
        Ok(())
    }

    /// Tries once more to write what the store could not take; what is left is given to whoever started the run.
    async fn record_the_rest(&mut self, log: &Log<'_, '_>) -> Result<(), RunError> {
        let journal = log.journal();
        if journal.is_ahead_of_store() {
            journal.catch_up_with_store().await?;
        }
        Ok(())
    }

    /// Writes down what has been noted, then shows it.
    pub(super) async fn flush(&mut self, log: &mut Log<'_, '_>) -> Result<(), RunError> {
        let Some(written) = log.flush().await? else {
            return Ok(());
        };
        match &written.store {
            StoreState::Writable => self.forget_exits(log, &written.events),
            StoreState::StillUnwritable => {}
            StoreState::BecameUnwritable(error) => self.reporter.warn(&unrecorded(error)),
            StoreState::CaughtUp(count) => {
                self.forget_all_exits(log);
                self.reporter.warn(&recorded_again(*count));
            }
        }
        if let Some(warning) = &written.warning {
            self.reporter.warn(warning);
        }
        self.reporter.happened(&written.events, log.recovery());
        Ok(())
    }

    async fn decide(&mut self, log: &mut Log<'_, '_>) -> Result<(), RunError> {
        // What a budget of ours has refused is no failure that anything could be decided about.
        if let Some(reached) = log.take_budget_reached() {
            self.ask_about_budget(log, reached);
            return Ok(());
        }
        let odds = self.store.odds(self.clock.at()).await?;
        // What runs or costs more than a plain retry is on disk before it is done.
        let is_recorded = !log.journal().is_ahead_of_store();
        let best = match is_recorded {
            true => self.best_repair(log).await?,
            false => None,
        };
        let is_timed = log.recovery().spec().policy.give_up_after.is_some();
        let is_offline = is_timed
            && log.recovery().network_symptom().is_some()
            && self.network.is_offline().await;
        let spec = log.recovery().spec();
        let tool = spec.command.first().map(String::as_str);
        let means = Means {
            playbook: self.knowledge.playbook(),
            catalog: self.knowledge.catalog(),
            odds: &odds,
            can: match is_recorded {
                true => self.capabilities(spec),
                false => self.capabilities(spec).without(Capability::Model),
            },
            caps: log.options().caps(),
            tool,
            repeat: self.repeat(log.options()),
            repair: best.as_ref().map(Best::offer),
            is_offline,
            parks: log.options().parks,
        };
        let now = self.clock.at();
        let draw = (self.draws)();
        let Some(made) = log.recovery().decide(&means, now, draw) else {
            // It would be asked for ever.
            return Err(RunError::NotResumable {
                run: log.recovery().id().clone(),
                why: "nothing is known about its failure".into(),
            });
        };
        self.note_decision(log, made);
        Ok(())
    }

    /// Whether a further attempt may be made.
    fn repeat(&self, options: &Options) -> Repeat {
        if options.nested {
            Repeat::ByOuter
        } else if options.interactive {
            Repeat::ByPerson
        } else if self.stdin.is_replayable(options.wiring()) {
            Repeat::Safe
        } else {
            Repeat::InputSpent
        }
    }

    fn note_decision(&mut self, log: &mut Log<'_, '_>, made: DecisionMade) {
        let now = self.clock.at();
        let decision = made.decision.clone();
        log.note(now, Box::new(made));
        let session = Some(log.recovery().spec().session.clone());
        if let Some(change) = decision.escalation() {
            let session = session.clone();
            log.note(now, ModelEscalated { session, change });
        }
        match decision.action {
            Chosen::Retry { until, .. } | Chosen::Change { until, .. } if until > decision.at => {
                self.note_wait(log, &decision, until);
            }
            Chosen::Ask {
                trigger,
                why,
                proposed,
            } if !self.is_optional() => {
                let is_about_budget = why == AskWhy::MaxCost;
                let reached = log.recovery().cost_reached(now);
                self.ask(
                    log,
                    Asking {
                        question: trigger.into(),
                        why,
                        kind: decision.kind,
                        reason: decision.reason,
                        proposed,
                        cost: decision.cost,
                        budget: reached.filter(|_| is_about_budget),
                    },
                );
            }
            _ => {}
        }
    }

    /// Whether the others go on without it, so that nobody has to be asked.
    fn is_optional(&self) -> bool {
        self.role.is_some_and(|role| role.optional)
    }

    /// Notes that it was stopped from outside, or that its output is lost.
    pub(super) fn interrupted(&mut self, log: &mut Log<'_, '_>, attempt: Option<CutOff>) {
        let stop = *self.stop.borrow();
        let run = log.recovery().id();
        let why = Interruption::new(stop, &*self.reporter, self.state, run);
        self.interrupted_because(log, attempt, why);
    }

    /// Notes that it was stopped, and why.
    pub(super) fn interrupted_because(
        &mut self,
        log: &mut Log<'_, '_>,
        attempt: Option<CutOff>,
        why: Interruption,
    ) {
        let now = self.clock.at();
        if why.by == InterruptedBy::Output {
            self.reporter.warn(&why.reason);
        }
        if let Some(attempt) = attempt {
            log.note(now, log.interruption(why.by, attempt.conversation));
        }
        let recovery = log.recovery();
        let end = recovery.finish(Outcome::Interrupted, why.exit_code, why.reason, now);
        log.note_end(now, end, None);
    }

    fn finish(&mut self, log: &mut Log<'_, '_>, outcome: Outcome) -> Result<(), RunError> {
        let now = self.clock.at();
        let recovery = log.recovery();
        let (exit_code, reason) = match outcome {
            Outcome::AwaitingHuman => (ASKED, log.why_asked()),
            Outcome::Failed if self.is_optional() => {
                (log.failed_code(TIMED_OUT), log.what_failed())
            }
            Outcome::Failed => match recovery.given_up() {
                Some(why) => (log.failed_code(TIMED_OUT), why.to_owned()),
                None => (log.failed_code(TIMED_OUT), log.why_passed_on()),
            },
            _ => (log.childs_code(0), log.how_it_went()),
        };
        let end = recovery.finish(outcome, exit_code, reason, now);
        let output = match (&self.role, outcome.is_success()) {
            (Some(_), true) => Some(self.keep_output(log)?),
            _ => None,
        };
        log.note_end(now, end, output);
        Ok(())
    }
}

/// What is told when the store cannot be written any more.
pub(super) fn unrecorded(error: &StoreError) -> String {
    format!(
        "{error}: nothing is recorded until that is mended; plain retries go on, and nothing is repaired and no other \
         model used meanwhile"
    )
}

/// What is told when the store can be written again.
pub(super) fn recorded_again(count: usize) -> String {
    format!("the store can be written again: {count} events that had to wait are recorded")
}

/// An attempt that was cut off, and the conversation that there is to go on in.
#[derive(Default)]
pub(super) struct CutOff {
    pub(super) conversation: Option<String>,
}

/// Comes when somebody wants it to stop; never if nobody can.
pub(super) async fn stopped(stop: &mut watch::Receiver<Stop>) {
    if stop.wait_for(|stop| *stop != Stop::No).await.is_err() {
        std::future::pending::<()>().await;
    }
}

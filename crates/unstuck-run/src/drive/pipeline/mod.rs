//! Drives pipelines: roles that build on each other, side by side where they can, in a loop until the work is done.
//!
//! Where a pipeline stands is a fold over its events ([`Pipeline`]). Each role is a session that is driven like a
//! single command; what they have in common is the journal of the run.

mod between;
mod judge;
mod news;
mod part;
mod plan;
mod reload;
mod resume;
mod reuse;

pub use plan::{AcceptedSettings, LoopPlan, Plan, Promise, RolePlan, Until};
pub use resume::Again;
pub use reuse::Selection;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use unstuck_core::decision::{AskWhy, Draw};
use unstuck_core::duration::in_millis;
use unstuck_core::episode::RunFold;
use unstuck_core::event::{
    EscalationKind, IterationFinished, IterationStarted, Outcome, Part, RecoveryEscalated,
    RunFinished, RunStarted, Work,
};
use unstuck_core::pipeline::{LoopTrouble, Step};
use unstuck_core::question::Circumstances;
use unstuck_core::redact::Redactor;
use unstuck_core::settings::ProjectSettings;
use unstuck_core::{Event, Kind, Pipeline, Recorded, RunId};
use unstuck_store::Store;

use between::Between;
use news::News;

use super::announce::Announcer;
use super::asking::{Asking, of_run};
use super::engine::{ASKED, stopped};
use super::error::RunError;
use super::finished::Finished;
use super::go_between::GoBetween;
use super::interruption::Interruption;
use super::journal::{Journal, Place, StoreState};
use super::knowledge::Knowledge;
use super::lease::Held;
use super::repair::Workshop;
use super::report::RunReporter;
use super::supervisors::Supervisors;
use crate::clock::Clock;
use crate::process::{Stop, StopCause};
use crate::worktree::{Snapshots, Step as TreeStep};
use unstuck_network::NetworkProbe;

/// How often those who look are told where the run stands.
const TICK: Duration = Duration::from_millis(200);

/// How often a store that cannot be written is tried again.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// Drives pipelines.
pub struct Conductor<'a> {
    /// Where everything is written down.
    pub store: &'a Store,
    /// What is known.
    pub knowledge: Knowledge<'a>,
    /// Takes secrets out of what is stored.
    pub redactor: &'a Redactor,
    /// Run the children.
    pub supervisors: &'a Supervisors,
    /// Is told what happens.
    pub reporter: Mutex<&'a mut dyn RunReporter>,
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
    pub draws: RefCell<&'a mut dyn FnMut() -> Draw>,
    /// Where what is needed to take a run up again is kept, out of the agents' reach.
    pub state: &'a Path,
    /// What is to be run; a changed configuration may replace it between two iterations.
    pub plan: RefCell<Rc<Plan>>,
    /// Reads the configuration again and compares it with what was accepted, or tells why it cannot be taken over.
    pub reload: &'a dyn Fn(Option<&ProjectSettings>) -> Result<Plan, String>,
    /// What repairs need beside what the plan allows.
    pub workshop: Workshop<'a>,
    /// Knows what people are to be told; none where nobody is.
    pub announcer: Option<&'a dyn Announcer>,
    /// Stands between agents and their APIs; none where nobody does.
    pub go_between: Option<&'a dyn GoBetween>,
}

/// One run that is being conducted.
struct Stage<'s, 'a> {
    journal: &'s Journal<'a>,
    /// What had happened before this process took it up.
    past: Vec<Recorded>,
    /// The number of the newest session.
    sessions: Cell<u32>,
    snapshots: Option<Snapshots>,
    /// Whether it was told that they cannot be taken.
    told: Cell<bool>,
    /// When the configuration that counts was written.
    config_seen: Cell<Option<SystemTime>>,
    /// Why the configuration was refused when it was read last.
    rejected: RefCell<Option<String>>,
    /// How the newest iteration of this process was judged.
    judged: RefCell<Option<IterationFinished>>,
    /// What each role made of the work tree.
    steps: RefCell<Vec<TreeStep>>,
}

/// What ends a wait for the parts that are at work.
enum Woken<T> {
    /// One of them came to its end; none if nobody is at work.
    Ended(Option<T>),
    /// Something happened outside.
    News(News),
}

impl<'a> Conductor<'a> {
    /// Where a run is written down.
    pub(super) fn place(&self) -> Place<'a> {
        Place {
            store: self.store,
            redactor: self.redactor,
            state: self.state,
        }
    }
}

impl Conductor<'_> {
    /// Runs the pipeline, or the part of it that is selected, from its beginning to its end.
    pub async fn start(&self, selection: &Selection) -> Result<Finished, RunError> {
        let run = RunId::drawn((self.draws.borrow_mut())());
        let reused = self.reused(selection).await?;
        self.keep_settings(&self.plan());
        let held = Held::begin(self.store, &run, self.clock).await?;
        let started = RunStarted {
            head: Some(self.workshop.committed.commit().unwrap_or_default()),
            project: self.plan().project.display().to_string(),
            work: Work::Pipeline(Box::new(self.plan().described(self.knowledge.version))),
        };
        let at = self.clock.at();
        let journal = Journal::begin(self.place(), &run, &started, at, held);
        let journal = journal.ok_or_else(|| nothing(&run))?;
        let journal = journal.announcing(self.announcer);
        let mut events = vec![Event::from(Box::new(started))];
        if !reused.is_empty() {
            let (iteration, feedback) = (1, String::new());
            events.push(
                IterationStarted {
                    iteration,
                    feedback,
                }
                .into(),
            );
            events.extend(reused.into_iter().map(Event::from));
        }
        self.write(&journal, events).await?;
        Box::pin(self.conduct(journal, Vec::new())).await
    }

    /// The loop: what is to be done next, until there is nothing more.
    async fn conduct(
        &self,
        journal: Journal<'_>,
        past: Vec<Recorded>,
    ) -> Result<Finished, RunError> {
        let stage = Stage {
            sessions: Cell::new(self.know(&journal, Pipeline::sessions)),
            snapshots: self.snapshots(journal.run()),
            told: Cell::new(false),
            config_seen: Cell::new(self.config_written()),
            rejected: RefCell::default(),
            judged: RefCell::default(),
            steps: RefCell::default(),
            journal: &journal,
            past,
        };
        let mut running = FuturesUnordered::new();
        let mut parts = BTreeSet::new();
        loop {
            let step = journal.know(|run| match &run.pipeline {
                Some(pipeline) => pipeline.next(&parts),
                None => Step::Nothing,
            });
            match self.unless_stopped(step, &parts) {
                Step::Iterate(iteration) => match self.repaired(&stage, iteration).await? {
                    Between::Ready(told) => self.iterate(&journal, iteration, &told).await?,
                    Between::Undecided => {}
                },
                Step::Run(ready) => {
                    for part in ready {
                        parts.insert(part.clone());
                        running.push(self.part(&stage, part));
                    }
                }
                Step::Wait => {
                    let woken = async {
                        tokio::select! {
                            ended = running.next() => Ok(Woken::Ended(ended)),
                            news = self.news(&stage) => news.map(Woken::News),
                        }
                    };
                    let ended = match self.watching(&journal, woken).await? {
                        Woken::Ended(ended) => Vec::from_iter(ended),
                        Woken::News(news) => {
                            self.take_in_beside(&stage, news, &mut running).await?
                        }
                    };
                    for ended in ended {
                        let ended = ended?;
                        self.made_progress(&journal, &ended)?;
                        parts.remove(&ended);
                    }
                }
                Step::Judge => self.judge(&stage).await?,
                Step::AskAboutLoop(trouble) => self.ask(&journal, trouble).await?,
                Step::Finish(Outcome::AwaitingHuman) if self.stays() => {
                    self.wait_for_person(&stage).await?;
                }
                Step::Finish(outcome) => self.finish(&journal, outcome).await?,
                Step::Nothing => break,
            }
        }
        drop(running);
        drop(stage);
        let end = journal.know(|run| run.pipeline.as_ref()?.finished().cloned());
        journal.close(end, None).await
    }

    /// Makes sure that a part that was run is at its end: one that is not would be run again for ever.
    fn made_progress(&self, journal: &Journal<'_>, part: &Part) -> Result<(), RunError> {
        match self.know(journal, |pipeline| pipeline.is_open(part)) {
            false => Ok(()),
            true => Err(RunError::NotResumable {
                run: journal.run().clone(),
                why: format!("{} came to no end", part.role),
            }),
        }
    }

    /// Nothing new is begun once somebody wants it to stop.
    fn unless_stopped(&self, step: Step, running: &BTreeSet<Part>) -> Step {
        let is_stopped = *self.stop.borrow() != Stop::No;
        match step {
            Step::Run(_) | Step::Iterate(_) | Step::Judge if is_stopped => {
                match running.is_empty() {
                    true => Step::Finish(Outcome::Interrupted),
                    false => Step::Wait,
                }
            }
            step => step,
        }
    }

    /// Waits for something while whoever looks is told where the run stands.
    async fn watching<T>(&self, journal: &Journal<'_>, something: impl Future<Output = T>) -> T {
        tokio::pin!(something);
        let live = self.tell(|reporter| reporter.live());
        let mut stop = self.stop.clone();
        let mut is_told = *stop.borrow() != Stop::No;
        loop {
            tokio::select! {
                done = &mut something => return done,
                () = stopped(&mut stop), if !is_told => {
                    is_told = true;
                    let message = "Stopping… (Ctrl-C again ends it at once)";
                    self.tell(|reporter| reporter.note(message));
                }
                () = tokio::time::sleep(TICK), if live || journal.is_behind() => {
                    journal.catch_up();
                    if live {
                        let now = self.clock.at();
                        journal.know(|run| self.tell(|reporter| reporter.tick(run, now)));
                    }
                }
            }
        }
    }

    /// Whether the process stays when a person is needed, and nobody has stopped it.
    fn stays(&self) -> bool {
        let waits = self.plan().roles.iter().any(|role| role.options.wait);
        waits && *self.stop.borrow() == Stop::No
    }

    async fn iterate(
        &self,
        journal: &Journal<'_>,
        iteration: u32,
        repaired: &[String],
    ) -> Result<(), RunError> {
        let mut feedback = self.know(journal, |pipeline| {
            let judged = pipeline.judged();
            judged
                .map(|judged| judged.feedback.clone())
                .unwrap_or_default()
        });
        let words = self.know(journal, |pipeline| pipeline.words().to_vec());
        let words = words.iter().map(|words| format!("A person says: {words}"));
        for told in words.chain(repaired.iter().cloned()) {
            feedback = format!("{feedback}\n\n{told}").trim_start().to_owned();
        }
        let started = IterationStarted {
            iteration,
            feedback,
        };
        self.write(journal, vec![started.into()]).await?;
        Ok(())
    }

    async fn ask(&self, journal: &Journal<'_>, trouble: LoopTrouble) -> Result<(), RunError> {
        let (number, left) = self.know(journal, |pipeline| {
            let judged = pipeline.judged();
            let left = judged.map(|judged| in_short(&judged.feedback));
            let left = left.unwrap_or_default();
            let more = pipeline.plan().looping.as_ref();
            let more = more.map_or(0, |looping| looping.max_iterations);
            (pipeline.iteration(), (left, more))
        });
        let (left, more) = left;
        let (question, reason, iterations) = match trouble {
            LoopTrouble::Stuck { iterations } => (
                EscalationKind::Stuck,
                format!(
                    "{iterations} iterations changed nothing and left the same undone: {left}; resuming tries again"
                ),
                None,
            ),
            LoopTrouble::UsedUp { iterations } => (
                EscalationKind::Hiccup,
                format!(
                    "its {iterations} iterations are used up, and it is not done: {left}; resuming allows {more} more"
                ),
                Some(more),
            ),
        };
        let asking = Asking {
            kind: Kind::Stuck,
            ..Asking::about(question, AskWhy::Exhausted, reason)
        };
        let of = Circumstances {
            iterations,
            words: true,
            ..Circumstances::default()
        };
        let id = format!("{}-i{number}", journal.run());
        let asked = self.question(id, asking, &of, None);
        self.write(journal, vec![asked.into()]).await?;
        Ok(())
    }

    /// A question about the run as a whole.
    fn question(
        &self,
        id: String,
        asking: Asking,
        of: &Circumstances<'_>,
        repair: Option<String>,
    ) -> Box<RecoveryEscalated> {
        let plan = self.plan();
        let doing = in_short(&plan.task);
        Box::new(RecoveryEscalated {
            session: None,
            id,
            question: asking.question,
            trigger: asking.question.trigger().into(),
            kind: asking.kind,
            why: asking.why,
            shown: of_run(&asking, doing, of, &plan.patience, self.clock.at()),
            reason: asking.reason,
            awaiting: "human".into(),
            proposed: None,
            cost: None,
            repair,
            budget: asking.budget,
        })
    }

    async fn finish(&self, journal: &Journal<'_>, outcome: Outcome) -> Result<(), RunError> {
        let (now, plan) = (self.clock.at(), self.plan());
        let cause = self.stop.borrow().cause().unwrap_or(StopCause::Interrupt);
        let interruption = Interruption::by_signal(cause, self.state, journal.run());
        let end = journal.know(|run| {
            let view = &run.view;
            let stopped = run
                .pipeline
                .as_ref()
                .into_iter()
                .flat_map(|one| one.stopped());
            let is_needed = |part: &&Part| !plan.role(&part.role).is_some_and(|role| role.optional);
            let stopped = stopped.map(|(part, _)| part).filter(is_needed);
            let stopped: Vec<&Part> = stopped.collect();
            let mut failed = run.sessions.iter().filter(|session| {
                session
                    .part
                    .as_ref()
                    .is_some_and(|part| stopped.contains(&part))
            });
            let failed = failed.next();
            let given_up = run.pipeline.as_ref().and_then(Pipeline::given_up);
            let given_up = given_up.map(str::to_owned);
            let said = failed.map(|session| {
                let role = session.part.as_ref().map_or("", |part| part.role.as_str());
                let why = session.reason.as_deref().unwrap_or("it failed");
                format!("{role}: {why}")
            });
            let reason = match outcome {
                Outcome::Interrupted => interruption.reason,
                Outcome::Succeeded | Outcome::Recovered => how_it_went(view.error_count),
                Outcome::AwaitingHuman if said.is_none() => view.reason.clone().unwrap_or_default(),
                Outcome::Failed if given_up.is_some() => given_up.unwrap_or_default(),
                _ => said
                    .or_else(|| stuck(run))
                    .or(view.reason.clone())
                    .unwrap_or_default(),
            };
            RunFinished {
                outcome,
                exit_code: match outcome {
                    Outcome::Succeeded | Outcome::Recovered => 0,
                    Outcome::AwaitingHuman => ASKED,
                    Outcome::Interrupted => interruption.exit_code,
                    Outcome::Failed => 1,
                },
                reason,
                attempts: view.attempts,
                retry_count: view.retry_count,
                recovery_level: view.recovery_level,
                cost_usd: run.known_cost(),
                duration_ms: in_millis(now.since(view.started)),
            }
        });
        self.write(journal, vec![end.into()]).await?;
        Ok(())
    }

    /// Waits until the store can be written again: what a pipeline begins next would cost money that nobody counts.
    async fn wait_for_store(
        &self,
        journal: &Journal<'_>,
        state: &StoreState,
    ) -> Result<(), RunError> {
        if let StoreState::BecameUnwritable(error) = state {
            let message = format!("{error}: nothing more is begun until that is mended");
            self.tell(|reporter| reporter.warn(&message));
        }
        let mut stop = self.stop.clone();
        while !journal.catch_up_with_store().await? {
            tokio::select! {
                () = tokio::time::sleep(STORE_RETRY) => {}
                () = stopped(&mut stop) => return Ok(()),
            }
        }
        let message = "the store can be written again";
        self.tell(|reporter| reporter.warn(message));
        Ok(())
    }

    /// Writes down what happened to the run as a whole, then shows it.
    async fn write(
        &self,
        journal: &Journal<'_>,
        events: Vec<Event>,
    ) -> Result<Vec<Recorded>, RunError> {
        let written = journal.write(self.clock.at(), events).await?;
        if journal.is_ahead_of_store() {
            self.wait_for_store(journal, &written.store).await?;
        }
        journal.know(|run| self.tell(|reporter| reporter.happened(&written.events, run)));
        if let Some(warning) = &written.warning {
            self.tell(|reporter| reporter.warn(warning));
        }
        Ok(written.events)
    }

    fn know<T>(&self, journal: &Journal<'_>, look: impl FnOnce(&Pipeline) -> T) -> T
    where
        T: Default,
    {
        journal.know(|run| run.pipeline.as_ref().map(look).unwrap_or_default())
    }

    /// What is to be run, as it is now.
    fn plan(&self) -> Rc<Plan> {
        Rc::clone(&self.plan.borrow())
    }

    fn tell<T>(&self, say: impl FnOnce(&mut dyn RunReporter) -> T) -> T {
        match self.reporter.lock() {
            Ok(mut reporter) => say(&mut **reporter),
            // Nobody panics while they hold it, and if they did, telling goes on.
            Err(poisoned) => say(&mut **poisoned.into_inner()),
        }
    }

    /// Where the changes of each attempt are kept, if they can be.
    fn snapshots(&self, run: &RunId) -> Option<Snapshots> {
        if !self.plan().snapshots {
            return None;
        }
        match Snapshots::open(&self.plan().project, run, self.state) {
            Ok(snapshots) => Some(snapshots),
            Err(error) => {
                if self.plan().rollback {
                    let message = format!("a failed attempt cannot be rolled back here: {error}");
                    self.tell(|reporter| reporter.warn(&message));
                }
                None
            }
        }
    }
}

fn nothing(run: &RunId) -> RunError {
    RunError::NotResumable {
        run: run.clone(),
        why: "it has no beginning".into(),
    }
}

fn how_it_went(failures: u32) -> String {
    match failures {
        0 => "done without a failure".to_owned(),
        1 => "done after one failure".to_owned(),
        n => format!("done after {n} failures"),
    }
}

/// Why a loop was given up that nobody is asked about.
fn stuck(run: &RunFold) -> Option<String> {
    let judged = run.pipeline.as_ref()?.judged()?;
    Some(format!(
        "{} iterations changed nothing and left the same undone: {}",
        judged.unchanged,
        in_short(&judged.feedback)
    ))
}

/// The first line of a text; where that only announces something, the last line of it too.
fn in_short(text: &str) -> String {
    let mut lines = text.trim().lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    match lines.rfind(|line| !line.is_empty()) {
        Some(last) if first.ends_with(':') => {
            let most = last
                .char_indices()
                .nth(160)
                .map_or(last.len(), |(at, _)| at);
            format!("{first} {}", &last[..most])
        }
        _ => first.to_owned(),
    }
}

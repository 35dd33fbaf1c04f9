//! The lines that tell what happens in a pipeline.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use unstuck_core::action::Prompts;
use unstuck_core::duration::Human;
use unstuck_core::episode::{RunFold, SessionView};
use unstuck_core::event::{
    AttemptFailed, AttemptStarted, DecisionMade, Event, InterruptedBy, IterationFinished,
    IterationStarted, Outcome, Part, RecoveryEscalated, RunFinished, RunResumed, SessionFinished,
    SessionId,
};
use unstuck_core::pipeline::{Pipeline, Step};
use unstuck_core::{Kind, Recorded, Timestamp};
use unstuck_run::folder;

use super::change_words;
use crate::clock;
use crate::output::{BOLD, DIM, GREEN, RED, YELLOW};
use crate::place::homely;
use crate::repair_words;
use crate::show_text::{one_line, plain_width};

/// How much of a text is shown where no terminal bounds it.
const LONGEST: usize = 160;
/// How much of a text is shown at least, however narrow the terminal is.
const SHORTEST: usize = 20;

/// The attempt that a session makes at present, or made last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trying {
    /// When it began.
    pub(super) since: Timestamp,
    timeout_ms: Option<u64>,
}

/// Tells what happens in a pipeline, and keeps what later lines need.
#[derive(Debug)]
pub(super) struct Story {
    /// What belongs behind every command that is proposed.
    option: String,
    /// The folder from which paths are shown.
    here: PathBuf,
    prompts: Prompts,
    tries: BTreeMap<SessionId, Trying>,
    /// Whether the process stays when a person is needed.
    waits_for_person: bool,
    /// Whether it is told that an attempt has begun, since nothing else shows it.
    tells_starts: bool,
    /// Why the configuration was last refused: it is told once, however often it is read.
    rejected: Option<String>,
}

impl Story {
    pub(super) fn new(option: String, here: PathBuf, prompts: Prompts) -> Self {
        Self {
            option,
            here,
            prompts,
            tries: BTreeMap::new(),
            waits_for_person: false,
            tells_starts: false,
            rejected: None,
        }
    }

    /// Tells also that an attempt has begun, for those who see no live view.
    pub(super) fn telling_starts(self, tells_starts: bool) -> Self {
        Self {
            tells_starts,
            ..self
        }
    }

    /// The newest attempt of a session, if this process saw it begin.
    pub(super) fn trying(&self, session: &SessionId) -> Option<Trying> {
        self.tries.get(session).copied()
    }

    /// What there is to tell about events that happened together, in lines of about so many columns.
    pub(super) fn lines(
        &mut self,
        events: &[Recorded],
        run: &RunFold,
        columns: Option<usize>,
    ) -> Vec<String> {
        let Some(pipeline) = &run.pipeline else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for recorded in events {
            let scene = Scene {
                story: self,
                run,
                pipeline,
                columns,
            };
            lines.extend(scene.tell(&recorded.event));
            self.remember(recorded);
        }
        let reuses = |recorded: &Recorded| {
            matches!(
                recorded.event,
                Event::RunResumed(_) | Event::OutputReused(_)
            )
        };
        if events.iter().any(reuses) {
            lines.extend(reused(events, pipeline));
            lines.extend(
                run.sessions
                    .iter()
                    .filter_map(|session| waits(session, pipeline)),
            );
        }
        lines
    }

    fn remember(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::SessionStarted(started) => {
                self.waits_for_person |= started.spec.options["wait"] == true;
            }
            Event::AttemptStarted(attempt) => self.began(attempt, recorded.at),
            Event::ConfigRejected(rejected) => self.rejected = Some(rejected.error.clone()),
            Event::ConfigReloaded(_) => self.rejected = None,
            _ => {}
        }
    }

    fn began(&mut self, attempt: &AttemptStarted, since: Timestamp) {
        let trying = Trying {
            since,
            timeout_ms: attempt.timeout_ms,
        };
        self.tries.insert(attempt.session.clone(), trying);
    }
}

/// The name of a part for people.
pub(super) fn name_of(part: &Part, pipeline: &Pipeline) -> String {
    let role = pipeline.role(&part.role);
    part.name(role.map_or(1, |role| role.instances))
}

/// What is taken over, and what begins.
fn reused(events: &[Recorded], pipeline: &Pipeline) -> Option<String> {
    // Of an earlier run outputs are taken over whose roles are no part of this one.
    let mut done: Vec<_> = events.iter().filter_map(taken_over).collect();
    done.extend(pipeline.completed());
    let mut seen = BTreeSet::new();
    done.retain(|role| seen.insert(*role));
    let starting = match pipeline.next(&BTreeSet::new()) {
        Step::Run(parts) => {
            let mut roles: Vec<_> = parts.into_iter().map(|part| part.role).collect();
            roles.dedup();
            roles.join(", ")
        }
        Step::Iterate(iteration) => format!("iteration {iteration}"),
        _ => return None,
    };
    Some(match done.is_empty() {
        true => format!("Starting: {starting}"),
        false => {
            let from = events.iter().find_map(source);
            let from = from.map(|run| format!(" (from run {})", run.get(..6).unwrap_or(run)));
            let (done, from) = (done.join(", "), from.unwrap_or_default());
            format!("Reusing: {done}{from}. Starting: {starting}")
        }
    })
}

fn taken_over(recorded: &Recorded) -> Option<&str> {
    match &recorded.event {
        Event::OutputReused(reused) => Some(&reused.part.role),
        _ => None,
    }
}

/// The earlier run that an output comes from.
fn source(recorded: &Recorded) -> Option<&str> {
    match &recorded.event {
        Event::OutputReused(reused) => Some(&reused.from_run),
        _ => None,
    }
}

/// How long a session that was taken up again still waits.
fn waits(session: &SessionView, pipeline: &Pipeline) -> Option<String> {
    let (part, until) = (session.part.as_ref()?, session.until?);
    let current = part.iteration == pipeline.iteration();
    current.then(|| {
        let name = name_of(part, pipeline);
        format!("{name} waits until {}", clock::shown(until))
    })
}

/// What one event is told from.
struct Scene<'a> {
    story: &'a Story,
    run: &'a RunFold,
    pipeline: &'a Pipeline,
    columns: Option<usize>,
}

impl Scene<'_> {
    fn tell(&self, event: &Event) -> Vec<String> {
        match event {
            Event::RunStarted(_) => vec![self.began()],
            Event::RunResumed(resumed) => vec![self.resumed(resumed)],
            Event::IterationStarted(started) => self.iteration(started).into_iter().collect(),
            Event::IterationFinished(end) => self.judged(end).into_iter().collect(),
            Event::AttemptFailed(attempt) => vec![self.failed(attempt)],
            Event::AttemptSucceeded(attempt) => {
                let before = self.attempt(&attempt.end.session, attempt.end.number);
                let cut = match attempt.truncated {
                    true => ", but its output was cut: it is too long",
                    false => "",
                };
                vec![format!("{before} → {GREEN}success{GREEN:#}{cut}")]
            }
            Event::AttemptInterrupted(attempt) if attempt.by == InterruptedBy::Crash => {
                let before = self.attempt(&attempt.session, attempt.number);
                vec![format!(
                    "{before} → {YELLOW}cut off{YELLOW:#}, it is made again"
                )]
            }
            Event::AttemptStarted(attempt) if self.story.tells_starts => {
                vec![self.started(attempt)]
            }
            Event::ConfigReloaded(reloaded) => {
                let before = format!("{BOLD}Configuration{BOLD:#} taken over as it is now");
                match reloaded.changes.is_empty() {
                    true => vec![before],
                    false => vec![format!("{before}: {}", reloaded.changes.join("; "))],
                }
            }
            Event::ConfigRejected(rejected)
                if self.story.rejected.as_ref() == Some(&rejected.error) =>
            {
                Vec::new()
            }
            Event::ConfigRejected(rejected) => vec![format!(
                "{YELLOW}config reload failed{YELLOW:#}; keeping the previous configuration: {}",
                rejected.error
            )],
            Event::DecisionMade(made) => self.decided(made).into_iter().collect(),
            Event::RecoveryEscalated(asked) => self.question(asked),
            Event::SessionFinished(end) => self.role_ended(end).into_iter().collect(),
            Event::RunFinished(end) => self.finished(end),
            other => self.repair(other).into_iter().collect(),
        }
    }

    /// The name of the role that a session plays.
    fn name(&self, session: &SessionId) -> String {
        let part = self
            .session(session)
            .and_then(|session| session.part.as_ref());
        part.map_or_else(
            || session.as_str().to_owned(),
            |part| name_of(part, self.pipeline),
        )
    }

    fn session(&self, id: &SessionId) -> Option<&SessionView> {
        self.run.session(Some(id))
    }

    /// A text on one line, behind what stands before it.
    fn behind(&self, before: &str, text: &str) -> String {
        let room = self.columns.map_or(LONGEST, |columns| {
            columns.saturating_sub(plain_width(before)).max(SHORTEST)
        });
        format!("{before}{}", one_line(text, room))
    }

    fn command(&self, words: &str) -> String {
        let short = self.pipeline.id().short();
        format!("unstuck {words} {short}{}", self.story.option)
    }

    fn began(&self) -> String {
        let plan = self.pipeline.plan();
        let roles = counted(plan.roles.len(), "role");
        let before = format!("{BOLD}Run {}{BOLD:#}: {roles}", self.pipeline.id().short());
        match plan.task.trim() {
            "" => before,
            task => self.behind(&format!("{before} · "), task),
        }
    }

    fn resumed(&self, resumed: &RunResumed) -> String {
        let short = self.pipeline.id().short();
        let before = format!("{BOLD}Run {short}{BOLD:#} goes on; it had stopped: ");
        self.behind(&before, &resumed.after)
    }

    fn iteration(&self, started: &IterationStarted) -> Option<String> {
        self.pipeline.plan().looping.as_ref()?;
        let before = self.iteration_name(started.iteration);
        Some(match started.feedback.trim() {
            "" => before,
            feedback => self.behind(&format!("{before} · "), feedback),
        })
    }

    fn iteration_name(&self, number: u32) -> String {
        let most = self.pipeline.most_iterations();
        format!("{BOLD}Iteration {number} of {most}{BOLD:#}")
    }

    fn judged(&self, end: &IterationFinished) -> Option<String> {
        let looping = self.pipeline.plan().looping.as_ref()?;
        let name = self.iteration_name(end.iteration);
        if end.done {
            return Some(format!("{name} → {GREEN}done{GREEN:#}"));
        }
        (end.unchanged > 1 && looping.stuck_after > 0).then(|| {
            let (same, most) = (end.unchanged, looping.stuck_after);
            format!(
                "{name} → {YELLOW}no change{YELLOW:#} for {same} iterations (stuck after {most})"
            )
        })
    }

    fn attempt(&self, session: &SessionId, number: u32) -> String {
        format!("{DIM}[Attempt {number}]{DIM:#} {}", self.name(session))
    }

    fn started(&self, attempt: &AttemptStarted) -> String {
        let before = self.attempt(&attempt.session, attempt.number);
        format!("{before}{} started", timeout(attempt.timeout_ms))
    }

    fn failed(&self, attempt: &AttemptFailed) -> String {
        let (end, kind) = (&attempt.end, attempt.diagnosis.kind);
        let before = self.attempt(&end.session, end.number);
        // Of a child that was stopped, the last line says nothing about why.
        match end.limit.as_deref() {
            Some("idle_timeout") => {
                return format!("{before} (silent for too long) → {YELLOW}{kind}{YELLOW:#}");
            }
            Some(_) => {
                let allowed = self.allowed(&end.session);
                return format!("{before}{allowed} → {YELLOW}{kind}{YELLOW:#}");
            }
            None => {}
        }
        let before = match kind {
            Kind::None => format!("{before} → {YELLOW}failed{YELLOW:#}"),
            // An agent may tell by its exit code that its time was up.
            Kind::Timeout => {
                let allowed = self.allowed(&end.session);
                format!("{before}{allowed} → {YELLOW}{kind}{YELLOW:#}")
            }
            kind => format!("{before} → {YELLOW}{kind}{YELLOW:#}"),
        };
        let before = format!("{before}{}", how_it_ended(attempt));
        match attempt.diagnosis.evidence.line.trim() {
            "" => before,
            line => self.behind(&format!("{before}: "), line),
        }
    }

    /// How long the newest attempt of a session was allowed to take.
    fn allowed(&self, session: &SessionId) -> String {
        let trying = self.story.trying(session);
        timeout(trying.and_then(|trying| trying.timeout_ms))
    }

    fn decided(&self, made: &DecisionMade) -> Option<String> {
        let decision = &made.decision;
        let session = self.run.session(made.session.as_ref());
        let diagnosis = session.and_then(|session| session.diagnosis.as_deref());
        let asked = diagnosis.is_some_and(|diagnosis| diagnosis.retry_after.is_some());
        let next = change_words::next_try(decision, &self.story.prompts, asked)?;
        let count = match decision.give_up_at {
            Some(_) => format!("{}", decision.attempt),
            None => {
                let of = made.made_from.limits.retries.max(decision.attempt);
                format!("{}/{of}", decision.attempt)
            }
        };
        let who = made.session.as_ref().filter(|_| self.open_sessions() > 1);
        let who = who.map(|session| format!("{}: ", self.name(session)));
        Some(format!(
            "{DIM}[Auto-retry {count}]{DIM:#} {}{next}",
            who.unwrap_or_default(),
        ))
    }

    /// How many sessions are at work, so that it must be said which of them is meant.
    fn open_sessions(&self) -> usize {
        let open = |session: &&SessionView| session.finished.is_none();
        self.run.sessions.iter().filter(open).count()
    }

    fn question(&self, asked: &RecoveryEscalated) -> Vec<String> {
        let about = match &asked.session {
            Some(session) => self.name(session),
            None => "the loop".to_owned(),
        };
        let mut lines = vec![format!(
            "{RED}{about} needs a person{RED:#}: {}",
            asked.reason
        )];
        let session = asked.session.as_ref().and_then(|id| self.session(id));
        if let Some(found) = session.and_then(|session| session.diagnosis.as_deref()) {
            if !found.evidence.line.trim().is_empty() {
                lines.push(self.behind("  seen: ", &found.evidence.line));
            }
            if !found.hint.is_empty() {
                lines.push(format!("  {BOLD}hint{BOLD:#}: {}", found.hint));
            }
        }
        if asked.repair.is_some() {
            let (short, option) = (self.pipeline.id().short(), &self.story.option);
            let repair = asked.shown.command.as_deref().unwrap_or_default();
            let conditions = asked
                .shown
                .conditions
                .iter()
                .flat_map(repair_words::conditions);
            lines.extend(conditions.map(|(name, text)| format!("  {name}: {text}")));
            let answers = repair_words::answers(repair, short, option);
            lines.extend(answers.map(|line| format!("  {line}")));
        }
        if self.story.waits_for_person {
            let then = match asked.is_about_budget() {
                true => format!("unstuck approve {}{}", asked.id, self.story.option),
                false => self.command("resume"),
            };
            lines.push(format!(
                "  waiting until you have seen to it: {then} in another terminal (Ctrl-C stops)"
            ));
        }
        let about = asked.session.as_ref().map(|_| format!("/{about}"));
        let (short, option) = (self.pipeline.id().short(), &self.story.option);
        let about = about.unwrap_or_default();
        lines.push(format!("  why: unstuck explain {short}{about}{option}"));
        lines
    }

    fn repair(&self, event: &Event) -> Option<String> {
        let line = repair_words::line(event)?;
        Some(match event.session() {
            Some(session) => format!("{}: {line}", self.name(session)),
            None => format!("{BOLD}Environment{BOLD:#}: {line}"),
        })
    }

    fn role_ended(&self, end: &SessionFinished) -> Option<String> {
        let name = name_of(&end.part, self.pipeline);
        match end.outcome {
            Outcome::Succeeded | Outcome::Recovered => {
                end.output.as_ref()?;
                let path = self.output_file(&end.part);
                Some(format!("{name} → {path}"))
            }
            Outcome::Failed => {
                let role = self.pipeline.role(&end.part.role);
                let optional = role.is_some_and(|role| role.optional);
                let so = if optional {
                    " (optional, the others go on)"
                } else {
                    ""
                };
                let before = format!("{RED}{name} failed{RED:#}{so}: ");
                Some(self.behind(&before, &end.reason))
            }
            // The question, or the end of the run, tells it.
            Outcome::AwaitingHuman | Outcome::Interrupted => None,
        }
    }

    /// The newest output of a part, as a path that can be opened from here.
    fn output_file(&self, part: &Part) -> String {
        let run = folder::copies_of(Path::new(&self.run.run.project), self.pipeline.id());
        let path =
            folder::role_of(&run, part, self.run.run.instances(Some(part))).join("output.md");
        match path.strip_prefix(&self.story.here) {
            Ok(below) => below.display().to_string(),
            Err(_) => homely(&path.display().to_string()),
        }
    }

    fn finished(&self, end: &RunFinished) -> Vec<String> {
        let facts = self.facts(end);
        let show = self.command("show");
        match end.outcome {
            Outcome::Succeeded => vec![
                format!("{GREEN}Done{GREEN:#}: {facts}"),
                format!("  more: {show}"),
            ],
            Outcome::Recovered => vec![
                format!("{GREEN}Done after recovery{GREEN:#}: {facts}"),
                format!("  more: {show}"),
            ],
            Outcome::Failed => vec![
                self.behind(&format!("{RED}Failed{RED:#}: "), &end.reason),
                format!("  {facts}"),
                format!("  more: {show}"),
            ],
            Outcome::Interrupted => vec![
                format!("{YELLOW}Stopped{YELLOW:#}: {facts}"),
                format!("  go on: {}", self.command("resume")),
            ],
            Outcome::AwaitingHuman => vec![
                format!("{RED}Waiting for you{RED:#}: {facts}"),
                match self.pipeline.waits_for_money(&[]) {
                    Some((question, _)) => {
                        let option = &self.story.option;
                        format!("  allow more: unstuck approve {question}{option}")
                    }
                    None => format!("  go on: {}", self.command("resume")),
                },
            ],
        }
    }

    /// What a run came to, in figures.
    fn facts(&self, end: &RunFinished) -> String {
        let (done, all) = (
            self.pipeline.completed().len(),
            self.pipeline.plan().roles.len(),
        );
        let mut facts = vec![match done == all {
            true => counted(all, "role"),
            false => format!("{done} of {}", counted(all, "role")),
        }];
        if self.pipeline.plan().looping.is_some() {
            facts.push(counted(self.pipeline.iteration() as usize, "iteration"));
        }
        facts.push(counted(end.attempts as usize, "attempt"));
        facts.push(Human(Duration::from_millis(end.duration_ms)).to_string());
        match end.cost_usd {
            Some(usd) if usd > 0.0 => {
                let few = if usd < 0.1 { 4 } else { 2 };
                facts.push(format!("${usd:.few$}"));
            }
            Some(_) => {}
            None => facts.push("cost unknown".to_owned()),
        }
        facts.join(", ")
    }
}

/// How long an attempt may take, behind its name.
fn timeout(millis: Option<u64>) -> String {
    match millis {
        Some(millis) if millis % 1000 == 0 => format!(" (timeout={}s)", millis / 1000),
        Some(millis) => format!(" (timeout={millis}ms)"),
        None => String::new(),
    }
}

/// How a child ended, where what it wrote does not tell.
fn how_it_ended(attempt: &AttemptFailed) -> String {
    let said_little = [Kind::EmptyOutput, Kind::CliCrash, Kind::Unknown, Kind::None];
    match (attempt.end.exit_code, attempt.end.signal) {
        _ if !said_little.contains(&attempt.diagnosis.kind) => String::new(),
        (_, Some(signal)) => format!(" (ended by signal {signal})"),
        (Some(code), _) if code != 0 => format!(" (exit code {code})"),
        _ => String::new(),
    }
}

fn counted(number: usize, of: &str) -> String {
    match number {
        1 => format!("1 {of}"),
        n => format!("{n} {of}s"),
    }
}

#[cfg(test)]
pub(super) mod tests;

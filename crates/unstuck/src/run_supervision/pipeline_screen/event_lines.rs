//! Renders the events of a pipeline.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use unstuck_core::duration::HumanDuration;
use unstuck_core::event::{
    AttemptFailed, AttemptStarted, DecisionMade, EscalationOpened, Event, InterruptionCause,
    IterationFinished, IterationStarted, RoleInstance, RunFinished, RunOutcome, RunResumed,
    SessionFinished, SessionId,
};
use unstuck_core::pipeline::{NextPipelineStep, PipelineState};
use unstuck_core::recovery_plan::PromptNoteTemplates;
use unstuck_core::views::{RunProjection, SessionSummary};
use unstuck_core::{EventRecord, FailureKind, Timestamp};
use unstuck_run::run_dir;

use super::next_attempt_summary;
use crate::clock;
use crate::output::{BOLD, DIM, GREEN, RED, YELLOW};
use crate::project_lookup::abbreviate_home;
use crate::repair_rendering;
use crate::sanitized_text::{one_line, visible_width};

/// Maximum length of a text if the terminal width is unknown.
const MAX_TEXT: usize = 160;
/// Minimum length of a text, however narrow the terminal is.
const MIN_TEXT: usize = 20;

/// The current or latest attempt of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptProgress {
    /// Start time.
    pub(super) since: Timestamp,
    timeout_ms: Option<u64>,
}

/// Renders the events of a pipeline, and keeps state needed by later lines.
#[derive(Debug)]
pub(super) struct PipelineEventLines {
    /// Option appended to every suggested command.
    option: String,
    /// Directory that shown paths are relative to.
    here: PathBuf,
    prompts: PromptNoteTemplates,
    attempts: BTreeMap<SessionId, AttemptProgress>,
    /// True if the process keeps waiting for human input.
    waits_for_person: bool,
    /// If set, the start of an attempt is reported, because there is no live view.
    shows_starts: bool,
    /// Latest configuration error, to report it only once.
    rejected: Option<String>,
}

impl PipelineEventLines {
    pub(super) fn new(option: String, here: PathBuf, prompts: PromptNoteTemplates) -> Self {
        Self {
            option,
            here,
            prompts,
            attempts: BTreeMap::new(),
            waits_for_person: false,
            shows_starts: false,
            rejected: None,
        }
    }

    /// Also reports the start of attempts, if there is no live view.
    pub(super) fn with_starts(self, tells_starts: bool) -> Self {
        Self {
            shows_starts: tells_starts,
            ..self
        }
    }

    /// Returns the newest attempt of a session that this process has seen.
    pub(super) fn attempt_of(&self, session: &SessionId) -> Option<AttemptProgress> {
        self.attempts.get(session).copied()
    }

    /// Renders events that happened together, in lines of about `columns` columns.
    pub(super) fn lines(
        &mut self,
        events: &[EventRecord],
        run: &RunProjection,
        columns: Option<usize>,
    ) -> Vec<String> {
        let Some(pipeline) = &run.pipeline else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        for recorded in events {
            let scene = EventLineContext {
                story: self,
                run,
                pipeline,
                columns,
            };
            lines.extend(scene.event_lines(&recorded.event));
            self.update(recorded);
        }
        let reuses = |recorded: &EventRecord| {
            matches!(
                recorded.event,
                Event::RunResumed(_) | Event::OutputReused(_)
            )
        };
        if events.iter().any(reuses) {
            lines.extend(reused_line(events, pipeline));
            lines.extend(
                run.sessions
                    .iter()
                    .filter_map(|session| remaining_wait_line(session, pipeline)),
            );
        }
        lines
    }

    fn update(&mut self, recorded: &EventRecord) {
        match &recorded.event {
            Event::SessionStarted(started) => {
                self.waits_for_person |= started.spec.options["wait"] == true;
            }
            Event::AttemptStarted(attempt) => self.attempt_started(attempt, recorded.at),
            Event::ConfigRejected(rejected) => self.rejected = Some(rejected.error.clone()),
            Event::ConfigReloaded(_) => self.rejected = None,
            _ => {}
        }
    }

    fn attempt_started(&mut self, attempt: &AttemptStarted, since: Timestamp) {
        let trying = AttemptProgress {
            since,
            timeout_ms: attempt.timeout_ms,
        };
        self.attempts.insert(attempt.session.clone(), trying);
    }
}

/// Returns the display name of a role instance.
pub(super) fn part_label(part: &RoleInstance, pipeline: &PipelineState) -> String {
    let role = pipeline.role(&part.role);
    part.display_name(role.map_or(1, |role| role.instances))
}

/// Lists the reused outputs and the roles that start.
fn reused_line(events: &[EventRecord], pipeline: &PipelineState) -> Option<String> {
    // Outputs reused from an earlier run may belong to roles that are not selected in this one.
    let mut done: Vec<_> = events.iter().filter_map(reused_session).collect();
    done.extend(pipeline.completed_roles());
    let mut seen = BTreeSet::new();
    done.retain(|role| seen.insert(*role));
    let starting = match pipeline.next(&BTreeSet::new()) {
        NextPipelineStep::Run(parts) => {
            let mut roles: Vec<_> = parts.into_iter().map(|part| part.role).collect();
            roles.dedup();
            roles.join(", ")
        }
        NextPipelineStep::BeginIteration(iteration) => format!("iteration {iteration}"),
        _ => return None,
    };
    Some(if done.is_empty() {
        format!("Starting: {starting}")
    } else {
        let from = events.iter().find_map(source_run);
        let from = from.map(|run| format!(" (from run {})", run.get(..6).unwrap_or(run)));
        let (done, from) = (done.join(", "), from.unwrap_or_default());
        format!("Reusing: {done}{from}. Starting: {starting}")
    })
}

fn reused_session(recorded: &EventRecord) -> Option<&str> {
    match &recorded.event {
        Event::OutputReused(reused) => Some(&reused.part.role),
        _ => None,
    }
}

/// Returns the earlier run that an output comes from.
fn source_run(recorded: &EventRecord) -> Option<&str> {
    match &recorded.event {
        Event::OutputReused(reused) => Some(&reused.from_run),
        _ => None,
    }
}

/// Renders the remaining wait of a resumed session.
fn remaining_wait_line(session: &SessionSummary, pipeline: &PipelineState) -> Option<String> {
    let (part, until) = (session.part.as_ref()?, session.until?);
    let current = part.iteration == pipeline.iteration();
    current.then(|| {
        let name = part_label(part, pipeline);
        format!("{name}: waiting until {}", clock::format_time(until))
    })
}

/// Context for rendering one event.
struct EventLineContext<'a> {
    story: &'a PipelineEventLines,
    run: &'a RunProjection,
    pipeline: &'a PipelineState,
    columns: Option<usize>,
}

impl EventLineContext<'_> {
    fn event_lines(&self, event: &Event) -> Vec<String> {
        match event {
            Event::RunStarted(_) => vec![self.run_started_line()],
            Event::RunResumed(resumed) => vec![self.run_resumed_line(resumed)],
            Event::IterationStarted(started) => {
                self.iteration_started_line(started).into_iter().collect()
            }
            Event::IterationFinished(end) => {
                self.iteration_finished_line(end).into_iter().collect()
            }
            Event::AttemptFailed(attempt) => vec![self.attempt_failed_line(attempt)],
            Event::AttemptSucceeded(attempt) => {
                let before = self.attempt_label(&attempt.end.session, attempt.end.number);
                let cut = if attempt.truncated {
                    ", but its output was truncated (too long)"
                } else {
                    ""
                };
                vec![format!("{before} → {GREEN}success{GREEN:#}{cut}")]
            }
            Event::AttemptInterrupted(attempt) if attempt.by == InterruptionCause::Crash => {
                let before = self.attempt_label(&attempt.session, attempt.number);
                vec![format!(
                    "{before} → {YELLOW}interrupted{YELLOW:#}; re-running"
                )]
            }
            Event::AttemptStarted(attempt) if self.story.shows_starts => {
                vec![self.attempt_started_line(attempt)]
            }
            Event::ConfigReloaded(reloaded) => {
                let before = format!("{BOLD}Configuration{BOLD:#} reloaded");
                if reloaded.changes.is_empty() {
                    vec![before]
                } else {
                    vec![format!("{before}: {}", reloaded.changes.join("; "))]
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
            Event::DecisionMade(made) => self.decision_line(made).into_iter().collect(),
            Event::EscalationOpened(asked) => self.escalation_lines(asked),
            Event::SessionFinished(end) => self.session_finished_line(end).into_iter().collect(),
            Event::RunFinished(end) => self.run_finished_lines(end),
            other => self.repair_line(other).into_iter().collect(),
        }
    }

    /// Returns the role name of a session.
    fn role_name(&self, session: &SessionId) -> String {
        let part = self
            .session(session)
            .and_then(|session| session.part.as_ref());
        part.map_or_else(
            || session.as_str().to_owned(),
            |part| part_label(part, self.pipeline),
        )
    }

    fn session(&self, id: &SessionId) -> Option<&SessionSummary> {
        self.run.session(Some(id))
    }

    /// Appends a text, truncated to the line width.
    fn append_fitted(&self, before: &str, text: &str) -> String {
        let room = self.columns.map_or(MAX_TEXT, |columns| {
            columns.saturating_sub(visible_width(before)).max(MIN_TEXT)
        });
        format!("{before}{}", one_line(text, room))
    }

    fn command(&self, words: &str) -> String {
        let short = self.pipeline.id().short();
        format!("unstuck {words} {short}{}", self.story.option)
    }

    fn run_started_line(&self) -> String {
        let plan = self.pipeline.plan();
        let roles = pluralize(plan.roles.len(), "role");
        let before = format!("{BOLD}Run {}{BOLD:#}: {roles}", self.pipeline.id().short());
        match plan.task.trim() {
            "" => before,
            task => self.append_fitted(&format!("{before} · "), task),
        }
    }

    fn run_resumed_line(&self, resumed: &RunResumed) -> String {
        let short = self.pipeline.id().short();
        let before = format!("{BOLD}Resuming run {short}{BOLD:#}; stopped: ");
        self.append_fitted(&before, &resumed.stop_reason)
    }

    fn iteration_started_line(&self, started: &IterationStarted) -> Option<String> {
        self.pipeline.plan().loop_settings.as_ref()?;
        let before = self.iteration_name(started.iteration);
        Some(match started.feedback.trim() {
            "" => before,
            feedback => self.append_fitted(&format!("{before} · "), feedback),
        })
    }

    fn iteration_name(&self, number: u32) -> String {
        let most = self.pipeline.max_iterations();
        format!("{BOLD}Iteration {number} of {most}{BOLD:#}")
    }

    fn iteration_finished_line(&self, end: &IterationFinished) -> Option<String> {
        let looping = self.pipeline.plan().loop_settings.as_ref()?;
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

    fn attempt_label(&self, session: &SessionId, number: u32) -> String {
        format!("{DIM}[Attempt {number}]{DIM:#} {}", self.role_name(session))
    }

    fn attempt_started_line(&self, attempt: &AttemptStarted) -> String {
        let before = self.attempt_label(&attempt.session, attempt.number);
        format!("{before}{} started", timeout_text(attempt.timeout_ms))
    }

    fn attempt_failed_line(&self, attempt: &AttemptFailed) -> String {
        let (end, kind) = (&attempt.end, attempt.diagnosis.kind);
        let before = self.attempt_label(&end.session, end.number);
        // The last output line of a stopped child does not explain the stop.
        match end.limit.as_deref() {
            Some("idle_timeout") => {
                return format!("{before} (no output for too long) → {YELLOW}{kind}{YELLOW:#}");
            }
            Some(_) => {
                let allowed = self.allowed_time(&end.session);
                return format!("{before}{allowed} → {YELLOW}{kind}{YELLOW:#}");
            }
            None => {}
        }
        let before = match kind {
            FailureKind::None => format!("{before} → {YELLOW}failed{YELLOW:#}"),
            // Some agents report a timeout by their exit code.
            FailureKind::Timeout => {
                let allowed = self.allowed_time(&end.session);
                format!("{before}{allowed} → {YELLOW}{kind}{YELLOW:#}")
            }
            kind => format!("{before} → {YELLOW}{kind}{YELLOW:#}"),
        };
        let before = format!("{before}{}", exit_text(attempt));
        match attempt.diagnosis.evidence.line.trim() {
            "" => before,
            line => self.append_fitted(&format!("{before}: "), line),
        }
    }

    /// Renders the timeout of a session's newest attempt.
    fn allowed_time(&self, session: &SessionId) -> String {
        let trying = self.story.attempt_of(session);
        timeout_text(trying.and_then(|trying| trying.timeout_ms))
    }

    fn decision_line(&self, made: &DecisionMade) -> Option<String> {
        let decision = &made.decision;
        let session = self.run.session(made.session.as_ref());
        let diagnosis = session.and_then(|session| session.diagnosis.as_deref());
        let asked = diagnosis.is_some_and(|diagnosis| diagnosis.retry_after.is_some());
        let next = next_attempt_summary::next_attempt_text(decision, &self.story.prompts, asked)?;
        let count = match decision.give_up_at {
            Some(_) => format!("{}", decision.attempt),
            None => {
                let of = made.inputs.limits.retries.max(decision.attempt);
                format!("{}/{of}", decision.attempt)
            }
        };
        let who = made.session.as_ref().filter(|_| self.open_sessions() > 1);
        let who = who.map(|session| format!("{}: ", self.role_name(session)));
        Some(format!(
            "{DIM}[Auto-retry {count}]{DIM:#} {}{next}",
            who.unwrap_or_default(),
        ))
    }

    /// Number of open sessions; with several, lines must name the session.
    fn open_sessions(&self) -> usize {
        let open = |session: &&SessionSummary| session.finished.is_none();
        self.run.sessions.iter().filter(open).count()
    }

    fn escalation_lines(&self, asked: &EscalationOpened) -> Vec<String> {
        let about = match &asked.session {
            Some(session) => self.role_name(session),
            None => "the loop".to_owned(),
        };
        let mut lines = vec![format!(
            "{RED}{about} needs your input{RED:#}: {}",
            asked.reason
        )];
        let session = asked.session.as_ref().and_then(|id| self.session(id));
        if let Some(found) = session.and_then(|session| session.diagnosis.as_deref()) {
            if !found.evidence.line.trim().is_empty() {
                lines.push(self.append_fitted("  evidence: ", &found.evidence.line));
            }
            if !found.hint.is_empty() {
                lines.push(format!("  {BOLD}hint{BOLD:#}: {}", found.hint));
            }
        }
        if asked.repair.is_some() {
            let (short, option) = (self.pipeline.id().short(), &self.story.option);
            let repair = asked.details.command.as_deref().unwrap_or_default();
            let conditions = asked
                .details
                .conditions
                .iter()
                .flat_map(repair_rendering::condition_lines);
            lines.extend(conditions.map(|(name, text)| format!("  {name}: {text}")));
            let answers = repair_rendering::answer_commands(repair, short, option);
            lines.extend(answers.map(|line| format!("  {line}")));
        }
        if self.story.waits_for_person {
            let then = if asked.is_about_budget() {
                format!("unstuck approve {}{}", asked.id, self.story.option)
            } else {
                self.command("resume")
            };
            lines.push(format!(
                "  waiting for you to fix this, then run in another terminal: {then} (Ctrl-C to stop)"
            ));
        }
        let about = asked.session.as_ref().map(|_| format!("/{about}"));
        let (short, option) = (self.pipeline.id().short(), &self.story.option);
        let about = about.unwrap_or_default();
        lines.push(format!("  details: unstuck explain {short}{about}{option}"));
        lines
    }

    fn repair_line(&self, event: &Event) -> Option<String> {
        let line = repair_rendering::event_line(event)?;
        Some(match event.session() {
            Some(session) => format!("{}: {line}", self.role_name(session)),
            None => format!("{BOLD}Environment{BOLD:#}: {line}"),
        })
    }

    fn session_finished_line(&self, end: &SessionFinished) -> Option<String> {
        let name = part_label(&end.part, self.pipeline);
        match end.outcome {
            RunOutcome::Succeeded | RunOutcome::Recovered => {
                end.output.as_ref()?;
                let path = self.output_file(&end.part);
                Some(format!("{name} → {path}"))
            }
            RunOutcome::Failed => {
                let role = self.pipeline.role(&end.part.role);
                let optional = role.is_some_and(|role| role.optional);
                let so = if optional {
                    " (optional; other roles continue)"
                } else {
                    ""
                };
                let before = format!("{RED}{name} failed{RED:#}{so}: ");
                Some(self.append_fitted(&before, &end.reason))
            }
            // Reported by the escalation or the end of the run.
            RunOutcome::AwaitingHuman | RunOutcome::Interrupted => None,
        }
    }

    /// Returns the newest output of a role instance as a path relative to the current directory.
    fn output_file(&self, part: &RoleInstance) -> String {
        let run = run_dir::project_copy_dir(Path::new(&self.run.run.project), self.pipeline.id());
        let path =
            run_dir::role_dir(&run, part, self.run.run.instances(Some(part))).join("output.md");
        match path.strip_prefix(&self.story.here) {
            Ok(below) => below.display().to_string(),
            Err(_) => abbreviate_home(&path.display().to_string()),
        }
    }

    fn run_finished_lines(&self, end: &RunFinished) -> Vec<String> {
        let facts = self.run_figures(end);
        let show = self.command("show");
        match end.outcome {
            RunOutcome::Succeeded => vec![
                format!("{GREEN}Done{GREEN:#}: {facts}"),
                format!("  details: {show}"),
            ],
            RunOutcome::Recovered => vec![
                format!("{GREEN}Done after recovery{GREEN:#}: {facts}"),
                format!("  details: {show}"),
            ],
            RunOutcome::Failed => vec![
                self.append_fitted(&format!("{RED}Failed{RED:#}: "), &end.reason),
                format!("  {facts}"),
                format!("  details: {show}"),
            ],
            RunOutcome::Interrupted => vec![
                format!("{YELLOW}Stopped{YELLOW:#}: {facts}"),
                format!("  continue: {}", self.command("resume")),
            ],
            RunOutcome::AwaitingHuman => vec![
                format!("{RED}Waiting for your input{RED:#}: {facts}"),
                match self.pipeline.blocking_budget_escalation(&[]) {
                    Some((question, _)) => {
                        let option = &self.story.option;
                        format!("  raise the budget: unstuck approve {question}{option}")
                    }
                    None => format!("  continue: {}", self.command("resume")),
                },
            ],
        }
    }

    /// Renders the totals of a run.
    fn run_figures(&self, end: &RunFinished) -> String {
        let (done, all) = (
            self.pipeline.completed_roles().len(),
            self.pipeline.plan().roles.len(),
        );
        let mut facts = vec![if done == all {
            pluralize(all, "role")
        } else {
            format!("{done} of {}", pluralize(all, "role"))
        }];
        if self.pipeline.plan().loop_settings.is_some() {
            facts.push(pluralize(self.pipeline.iteration() as usize, "iteration"));
        }
        facts.push(pluralize(end.attempts as usize, "attempt"));
        facts.push(HumanDuration(Duration::from_millis(end.duration_ms)).to_string());
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

/// Renders the timeout of an attempt, appended to its name.
fn timeout_text(millis: Option<u64>) -> String {
    match millis {
        Some(millis) if millis % 1000 == 0 => format!(" (timeout={}s)", millis / 1000),
        Some(millis) => format!(" (timeout={millis}ms)"),
        None => String::new(),
    }
}

/// Describes how a child ended, if its output does not tell.
fn exit_text(attempt: &AttemptFailed) -> String {
    let said_little = [
        FailureKind::EmptyOutput,
        FailureKind::CliCrash,
        FailureKind::Unknown,
        FailureKind::None,
    ];
    match (attempt.end.exit_code, attempt.end.signal) {
        _ if !said_little.contains(&attempt.diagnosis.kind) => String::new(),
        (_, Some(signal)) => format!(" (killed by signal {signal})"),
        (Some(code), _) if code != 0 => format!(" (exit code {code})"),
        _ => String::new(),
    }
}

fn pluralize(number: usize, of: &str) -> String {
    match number {
        1 => format!("1 {of}"),
        n => format!("{n} {of}s"),
    }
}

#[cfg(test)]
pub(super) mod tests;

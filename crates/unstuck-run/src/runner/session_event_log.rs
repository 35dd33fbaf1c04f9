//! The event log of a session: events are noted at once and written before any action that depends on them.

use std::cell::OnceCell;
use std::path::Path;

use unstuck_core::event::{
    AttemptInterrupted, BudgetReached, InterruptionCause, RoleInstance, RunFinished, RunOutcome,
    RunStarted, SessionFinished, SessionSpec, SessionStarted, VERSION,
};
use unstuck_core::views::SessionSummary;
use unstuck_core::{Event, EventRecord, Failure, FailureKind, SessionState, Timestamp};

use super::error::RunError;
use super::evaluate_attempt::AttemptEvaluation;
use super::run_event_log::{AppendOutcome, RunEventLog};
use super::run_request::RunAttemptOptions;
use super::run_result::AttemptProcessExit;
use crate::process::ChildExitStatus;
use crate::worktree::{SnapshotStore, WorktreeError};

/// The event log of one session of a run.
pub(super) struct SessionEventLog<'j, 'a> {
    journal: &'j RunEventLog<'a>,
    recovery: SessionState,
    view: SessionSummary,
    instance: Option<RoleInstance>,
    options: RunAttemptOptions,
    /// The final answer of the newest attempt.
    answer: String,
    /// The complete failure of the newest attempt, if it ran in this process.
    failure: Option<Failure>,
    /// The exit of the newest attempt's process, if it ran in this process.
    child: Option<AttemptProcessExit>,
    /// The snapshot store, once it was looked for.
    snapshots: OnceCell<Option<SnapshotStore>>,
    /// The budget that stopped the newest attempt, if one did.
    budget_reached: Option<BudgetReached>,
    pending: Vec<Event>,
    /// Timestamp of the first pending event; all events of one write share it.
    at: Option<Timestamp>,
}

impl<'j, 'a> SessionEventLog<'j, 'a> {
    /// Begins the log of a run that is one session.
    pub(super) fn begin(
        journal: &'j RunEventLog<'a>,
        started: RunStarted,
        at: Timestamp,
    ) -> Option<Self> {
        let spec = started.sole_session()?.clone();
        let event = Event::from(Box::new(started));
        Some(Self::from_first_event(journal, &spec, None, event, at))
    }

    /// Begins the log of a role instance.
    pub(super) fn begin_instance(
        journal: &'j RunEventLog<'a>,
        started: SessionStarted,
        at: Timestamp,
    ) -> Self {
        let (spec, part) = (started.spec.clone(), started.part.clone());
        let event = Event::from(Box::new(started));
        Self::from_first_event(journal, &spec, Some(part), event, at)
    }

    fn from_first_event(
        journal: &'j RunEventLog<'a>,
        spec: &SessionSpec,
        instance: Option<RoleInstance>,
        first: Event,
        at: Timestamp,
    ) -> Self {
        Self {
            journal,
            recovery: SessionState::new(journal.run(), spec, at),
            view: SessionSummary::new(spec, instance.clone(), at),
            instance,
            options: options_from_spec(spec),
            answer: String::new(),
            failure: None,
            child: None,
            snapshots: OnceCell::new(),
            budget_reached: None,
            pending: vec![first],
            at: Some(at),
        }
    }

    /// Reopens the log of a run that is one session; `None` if its first event is missing.
    pub(super) fn reopen(journal: &'j RunEventLog<'a>, events: &[EventRecord]) -> Option<Self> {
        let recovery = SessionState::from_events(events)?;
        let view = SessionSummary::from_events(events).into_iter().next()?;
        Some(Self::from_parts(journal, recovery, view))
    }

    /// Reopens the log of a role instance; `None` if it never began.
    pub(super) fn reopen_instance(
        journal: &'j RunEventLog<'a>,
        session: &unstuck_core::SessionId,
        events: &[EventRecord],
    ) -> Option<Self> {
        let is_first = |recorded: &&EventRecord| matches!(&recorded.event, Event::SessionStarted(one) if one.spec.session == *session);
        let first = events.iter().find(is_first)?;
        let mut recovery = SessionState::from_first_event(first)?;
        let later = events.iter().filter(|one| one.seq > first.seq);
        later.for_each(|recorded| recovery.apply(recorded));
        let mut views = SessionSummary::from_events(events).into_iter();
        let view = views.find(|view| view.id == *session)?;
        Some(Self::from_parts(journal, recovery, view))
    }

    fn from_parts(
        journal: &'j RunEventLog<'a>,
        recovery: SessionState,
        view: SessionSummary,
    ) -> Self {
        Self {
            journal,
            options: options_from_spec(recovery.spec()),
            instance: view.part.clone(),
            answer: String::new(),
            failure: None,
            child: None,
            snapshots: OnceCell::new(),
            budget_reached: None,
            pending: Vec::new(),
            at: None,
            recovery,
            view,
        }
    }

    /// Records the budget that stopped an attempt.
    pub(super) fn set_budget_reached(&mut self, reached: Option<BudgetReached>) {
        self.budget_reached = reached;
    }

    /// Takes the budget that stopped the newest attempt.
    pub(super) fn take_budget_reached(&mut self) -> Option<BudgetReached> {
        self.budget_reached.take()
    }

    pub(super) fn journal(&self) -> &'j RunEventLog<'a> {
        self.journal
    }

    pub(super) fn recovery(&self) -> &SessionState {
        &self.recovery
    }

    pub(super) fn options(&self) -> &RunAttemptOptions {
        &self.options
    }

    pub(super) fn role_instance(&self) -> Option<&RoleInstance> {
        self.instance.as_ref()
    }

    /// Returns the snapshot store of a command's attempts; the first call returns `Err` with the reason if snapshots
    /// are not possible, unless there is nothing to keep.
    pub(super) fn snapshots(&self, state: &Path) -> Result<Option<&SnapshotStore>, WorktreeError> {
        if let Some(known) = self.snapshots.get() {
            return Ok(known.as_ref());
        }
        let (run, project) = (self.recovery.id(), self.journal.project());
        let opened = self
            .options
            .snapshots
            .then(|| SnapshotStore::open(project, run, state));
        let (found, error) = match opened.transpose() {
            Ok(snapshots) => (snapshots, None),
            Err(WorktreeError::GitNotFound | WorktreeError::NoRepository { .. }) => (None, None),
            Err(error) => (None, Some(error)),
        };
        let found = self.snapshots.get_or_init(|| found).as_ref();
        match error {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }

    /// Disables further snapshots.
    pub(super) fn disable_snapshots(&mut self) {
        self.snapshots = OnceCell::from(None);
    }

    /// Returns the reasons why proposals of the newest attempt were refused.
    pub(super) fn refused_proposals(&self) -> Vec<String> {
        let session = &self.recovery.spec().session;
        self.journal.with_view(|run| {
            run.repairs
                .refusals_for(session)
                .map(str::to_owned)
                .collect()
        })
    }

    /// Notes an event. It is in effect at once and is written by the next flush.
    pub(super) fn note(&mut self, at: Timestamp, event: impl Into<Event>) {
        let recorded = EventRecord {
            version: VERSION,
            run: self.recovery.id().clone(),
            seq: 0,
            at: *self.at.get_or_insert(at),
            event: event.into(),
        };
        self.apply(&recorded);
        self.pending.push(recorded.event);
    }

    /// Notes the evaluation of an attempt.
    pub(super) fn note_evaluation(&mut self, at: Timestamp, judged: AttemptEvaluation) {
        self.answer = judged.answer;
        self.failure = judged.failure;
        self.note(at, judged.event);
    }

    /// Records the exit of an attempt's process.
    pub(super) fn note_child_exit(&mut self, status: &ChildExitStatus) {
        self.child = Some(status.into());
    }

    /// Returns the exit of the newest attempt's process, if known.
    pub(super) fn child_exit(&self) -> Option<AttemptProcessExit> {
        self.child.or_else(|| {
            self.recovery
                .last_attempt_end()
                .map(AttemptProcessExit::from)
        })
    }

    /// Returns the newest failure, if known.
    pub(super) fn failure(&self) -> Option<Failure> {
        let kept = || {
            Some(
                self.recovery
                    .last_failure()?
                    .to_failure(&self.recovery.spec().command),
            )
        };
        self.failure.clone().or_else(kept)
    }

    /// Returns the final answer of the newest attempt.
    pub(super) fn answer(&self) -> &str {
        &self.answer
    }

    /// Notes that the session continues with a changed configuration.
    pub(super) fn note_reconfigured(&mut self, at: Timestamp, started: SessionStarted) {
        self.options = options_from_spec(&started.spec);
        self.note(at, Box::new(started));
    }

    fn apply(&mut self, recorded: &EventRecord) {
        self.recovery.apply(recorded);
        let mut views = vec![self.view.clone()];
        SessionSummary::apply_to_all(&mut views, recorded);
        if let Some(view) = views.pop() {
            self.view = view;
        }
    }

    /// Applies events that other processes wrote to this run.
    pub(super) fn apply_external_events(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|recorded| self.apply(recorded));
    }

    /// Writes the pending events; returns `None` if there are none.
    pub(super) async fn flush(&mut self) -> Result<Option<AppendOutcome>, RunError> {
        let Some(at) = self.at.take() else {
            return Ok(None);
        };
        let events = std::mem::take(&mut self.pending);
        self.journal.write(at, events).await.map(Some)
    }

    pub(super) fn interruption_event(
        &self,
        by: InterruptionCause,
        agent_session: Option<String>,
    ) -> AttemptInterrupted {
        AttemptInterrupted {
            session: self.recovery.spec().session.clone(),
            number: self.recovery.attempt_count(),
            by,
            agent_session,
            has_output: false,
        }
    }

    /// Notes the end of the session, which also ends the run if it is the only session.
    pub(super) fn note_end(&mut self, at: Timestamp, end: RunFinished, output: Option<String>) {
        let session = self.recovery.spec().session.clone();
        match self.instance.clone() {
            Some(part) => {
                let end = SessionFinished::new(session, part, end, output);
                self.note(at, Box::new(end));
            }
            None => self.note(at, end),
        }
    }

    /// Returns the exit code of the child, as the shell would show it.
    pub(super) fn child_exit_code(&self, timed_out: i32) -> i32 {
        let Some(end) = self.recovery.last_attempt_end() else {
            return 1;
        };
        match (end.limit.is_some(), end.exit_code, end.signal) {
            (true, ..) => timed_out,
            (_, Some(code), _) => code,
            (_, _, signal) => 128 + signal.unwrap_or(0),
        }
    }

    pub(super) fn escalation_reason(&self) -> String {
        self.view.reason.clone().unwrap_or_default()
    }

    /// Summarizes the newest failure.
    pub(super) fn failure_summary(&self) -> String {
        let failed = self.recovery.last_failure();
        failed.map_or_else(
            || self.escalation_reason(),
            |failed| failed.diagnosis.message.clone(),
        )
    }

    pub(super) fn passthrough_reason(&self) -> String {
        let failed = self.recovery.last_failure();
        if failed.is_some_and(|failed| failed.diagnosis.kind == FailureKind::None) {
            let code = self.child_exit_code(1);
            return format!("exited with code {code} without an error message; passed through");
        }
        self.escalation_reason()
    }

    pub(super) fn outcome_summary(&self) -> String {
        let times = |count: u32| match count {
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        let cut_offs = self.recovery.interruption_count();
        let cut_off = format!("interrupted {} and resumed", times(cut_offs));
        match (self.view.error_count, cut_offs) {
            (0, 0) => "succeeded on the first attempt".to_owned(),
            (0, _) => format!("succeeded; {cut_off}"),
            (1, 0) => "succeeded after 1 failure".to_owned(),
            (n, 0) => format!("succeeded after {n} failures"),
            (1, _) => format!("succeeded after 1 failure; {cut_off}"),
            (n, _) => format!("succeeded after {n} failures; {cut_off}"),
        }
    }

    /// Returns the exit code of a failed child; a failure is never reported as 0.
    pub(super) fn failure_exit_code(&self, timed_out: i32) -> i32 {
        match self.child_exit_code(timed_out) {
            0 => 1,
            code => code,
        }
    }

    /// Returns true if it ended in a way that cannot be resumed.
    pub(super) fn is_finished(&self) -> bool {
        let end = self.recovery.run_finished();
        end.is_some_and(|end| !end.outcome.is_resumable() && end.outcome != RunOutcome::Failed)
    }
}

fn options_from_spec(spec: &SessionSpec) -> RunAttemptOptions {
    serde_json::from_value(spec.options.clone()).unwrap_or_default()
}

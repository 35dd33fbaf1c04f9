//! Retries of sessions requested by a human: changes, preview of the prompt, and the request itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use unstuck_core::decision::ConcreteAttemptChange;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::{EarlyWaitEndCause, Event, EventRecord, SessionId, WaitEnded};
use unstuck_core::views::{RunStatus, RunSummary, SessionSummary};
use unstuck_core::{RunId, SessionState};
use unstuck_run::runner::{
    NotificationBuilder, NotifyingEventWriter, RetryPreviewInput, RetryPromptPreview,
    SessionRetryRequest, request_retry,
};
use unstuck_store::{EscalationFilter, EscalationRow, RunEventBatch};

use crate::command_context::CommandContext;
use crate::config::Config;
use crate::error_report::refusal;
use crate::escalation_answers::{self, AnswerEffect, AnswerInput};
use crate::human_only_commands::human_only_error;
use crate::notifications::ConfiguredNotifier;
use crate::project_setting_changes::load_for_answers;
use crate::run_history::RunHistory;
use crate::run_supervision::{ConfiguredKnowledge, state_dir};
use crate::run_title::is_gateway_client;
use crate::{async_runtime, clock, environment_variables, project_trust};

/// Template that adds the failure to the prompt.
const ERROR_CONTEXT: &str = "error_context";

/// Changes that the user requests for a retry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RetryChanges {
    /// If set, the prompt includes the failure.
    pub(crate) context: bool,
    /// Message of the user.
    pub(crate) message: String,
    /// Full prompt written by the user.
    pub(crate) prompt: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) timeout: Option<Duration>,
}

impl RetryChanges {
    /// Returns the changes without the message.
    fn changes_without_message(&self, recovery: &SessionState) -> Vec<ConcreteAttemptChange> {
        let context = self.context && self.prompt.is_none();
        let mut changes = Vec::new();
        changes.extend(context.then(|| ConcreteAttemptChange::Prompt(ERROR_CONTEXT.to_owned())));
        changes.extend(self.prompt.clone().map(ConcreteAttemptChange::PromptText));
        let from = recovery.model().unwrap_or("unknown");
        let model = self.model.as_deref().filter(|model| *model != from);
        changes.extend(model.map(|to| ConcreteAttemptChange::Model {
            from: from.to_owned(),
            to: to.to_owned(),
        }));
        let before = recovery.spec().timeout_ms.map(|millis| millis / 1000);
        changes.extend(self.timeout.map(|time| ConcreteAttemptChange::Timeout {
            from_seconds: before,
            to_seconds: time.as_secs().max(1),
        }));
        changes
    }

    /// Returns all changes.
    fn changes(&self, recovery: &SessionState) -> Vec<ConcreteAttemptChange> {
        let mut changes = self.changes_without_message(recovery);
        // A full prompt already contains the message.
        if !self.message.trim().is_empty() && self.prompt.is_none() {
            changes.insert(0, ConcreteAttemptChange::UserMessage(self.message.clone()));
        }
        changes
    }

    fn changes_prompt(&self) -> bool {
        self.context || self.prompt.is_some() || !self.message.trim().is_empty()
    }
}

/// Effect of a retry request.
#[derive(Debug)]
pub(crate) enum RetryEffect {
    /// The process that supervises the run receives it.
    Delivered,
    /// The run must be resumed, re-running these roles.
    NeedsResume { restart: Vec<String> },
}

/// A session to retry, with its state.
pub(crate) struct RetryTarget {
    pub(crate) run: RunSummary,
    pub(crate) session: SessionSummary,
    events: Vec<EventRecord>,
    is_driven: bool,
    /// The escalation that it waits for.
    escalation: Option<EscalationRow>,
    config: Config,
}

impl RetryTarget {
    /// Finds the session by its id.
    pub(crate) fn find(id: &SessionId, session: &CommandContext<'_>) -> Result<Self> {
        let none = || {
            refusal(
                format!("session {} not found", id.as_str()),
                "`unstuck show RUN` lists the sessions of a run",
            )
        };
        let (run, _) = id.as_str().rsplit_once('-').ok_or_else(none)?;
        Self::find_in_run(&RunId::new(run), Some(id), session)
    }

    /// Finds a session of a run: the named one, or the newest that did not succeed.
    pub(crate) fn find_in_run(
        run: &RunId,
        id: Option<&SessionId>,
        session: &CommandContext<'_>,
    ) -> Result<Self> {
        let (run, events, is_driven) = async_runtime::block_on(async {
            let history = RunHistory::open(session.store).await?;
            let found = history.find(Some(run.as_str())).await?;
            let events = history.events(&found.id).await?;
            let is_driven = history.is_driven(&found.id, clock::now().at).await?;
            Ok((found, events, is_driven))
        })?;
        let mut sessions = SessionSummary::from_events(&events).into_iter();
        let is_success = |one: &SessionSummary| {
            matches!(one.status, RunStatus::Succeeded | RunStatus::Recovered)
        };
        let meant = match id {
            Some(id) => sessions.find(|one| one.id == *id),
            None => sessions.rfind(|one| !is_success(one)),
        };
        let none = || {
            refusal(
                format!("run {} succeeded; nothing to retry", run.id.short()),
                "`unstuck resume --restart ROLE` re-runs a role; `unstuck exec` starts a new run",
            )
        };
        let meant = meant.ok_or_else(none)?;
        let question = open_escalation_of(&meant, &run.id, session)?;
        Ok(Self {
            config: load_for_answers(&run.id, &run.project, session)?,
            session: meant,
            run,
            events,
            is_driven,
            escalation: question,
        })
    }

    /// Returns the open escalation of the session, if any.
    pub(crate) fn escalation(&self) -> Option<&EscalationRow> {
        self.escalation.as_ref()
    }

    /// True if a process currently supervises its run.
    pub(crate) fn is_driven(&self) -> bool {
        self.is_driven
    }

    /// Returns the configuration of its project.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns all events of its run.
    pub(crate) fn events(&self) -> &[EventRecord] {
        &self.events
    }

    /// Returns the root directory of its project.
    pub(crate) fn project(&self) -> PathBuf {
        PathBuf::from(&self.run.project)
    }

    /// Previews the prompt that would be sent.
    pub(crate) fn preview_prompt(
        &self,
        different: &RetryChanges,
        session: &CommandContext<'_>,
    ) -> Result<RetryPromptPreview> {
        let (recovery, would) = self.preview(different, session)?;
        self.check_possible(different, &recovery, &would)?;
        Ok(would)
    }

    fn preview(
        &self,
        different: &RetryChanges,
        session: &CommandContext<'_>,
    ) -> Result<(SessionState, RetryPromptPreview)> {
        let known = ConfiguredKnowledge::new(&self.config, self.config.agents());
        let foresight = RetryPreviewInput {
            knowledge_source: &known,
            state: &state_dir(session.store),
            project: Path::new(&self.run.project),
            events: &self.events,
        };
        let recovery = foresight.session_state(&self.session.id).ok_or_else(|| {
            refusal(
                format!(
                    "session {} belongs to a gateway client",
                    self.session.id.as_str()
                ),
                "only the client can retry it",
            )
        })?;
        let would =
            foresight.preview_prompt(&recovery, &different.changes(&recovery), clock::now().at)?;
        Ok((recovery, would))
    }

    /// Checks that the changes can be applied to the session's command.
    fn check_possible(
        &self,
        different: &RetryChanges,
        recovery: &SessionState,
        would: &RetryPromptPreview,
    ) -> Result<()> {
        if let Some(why) = &recovery.spec().unrepeatable_reason {
            return Err(refusal(
                format!("cannot retry session {}: {why}", self.session.id.as_str()),
                "start a new run",
            ));
        }
        if different.changes_prompt() && !would.accepts_prompt {
            return Err(refusal(
                "cannot add instructions: not a recognized agent",
                "omit the message and the error context to retry the same command",
            ));
        }
        if different.model.is_some() && !would.accepts_model {
            return Err(refusal(
                "cannot set the model of this command",
                "omit the model, or change the command",
            ));
        }
        Ok(())
    }

    /// Retries the session: answers its escalation, or records the request.
    pub(crate) fn retry(
        &self,
        different: &RetryChanges,
        who: &str,
        session: &CommandContext<'_>,
    ) -> Result<RetryEffect> {
        if let Some(why) = project_trust::agent_evidence() {
            return Err(human_only_error("request a retry", &why));
        }
        if is_gateway_client(&self.run) && self.escalation.is_none() {
            return Err(refusal(
                format!(
                    "session {} belongs to a gateway client",
                    self.session.id.as_str()
                ),
                "only the client can retry it",
            ));
        }
        let (recovery, would) = self.preview(different, session)?;
        self.check_possible(different, &recovery, &would)?;
        match &self.escalation {
            Some(question) => self.answer_escalation(question, different, &recovery, who, session),
            None => self.request_retry(different, &recovery, who, session),
        }
    }

    fn answer_escalation(
        &self,
        question: &EscalationRow,
        different: &RetryChanges,
        recovery: &SessionState,
        who: &str,
        session: &CommandContext<'_>,
    ) -> Result<RetryEffect> {
        let words = match different.prompt {
            Some(_) => "",
            None => different.message.as_str(),
        };
        let giving = AnswerInput {
            answer: if words.trim().is_empty() {
                EscalationAnswer::Resolve
            } else {
                EscalationAnswer::Retry
            },
            note: words,
            who,
            changes: &different.changes_without_message(recovery),
        };
        let given = escalation_answers::answer_as(question, &giving, session)?;
        Ok(match given {
            AnswerEffect::Delivered | AnswerEffect::Recorded | AnswerEffect::Ended(_) => {
                RetryEffect::Delivered
            }
            AnswerEffect::NeedsResume => RetryEffect::NeedsResume {
                restart: Vec::new(),
            },
        })
    }

    /// Refuses a session of a past iteration: the loop has advanced and would continue instead.
    fn check_current(&self) -> Result<()> {
        let newest = self.run.iteration;
        let own = self.session.part.as_ref().map(|part| part.iteration);
        let (Some(own), Some(newest)) = (own, newest.filter(|_| own != newest)) else {
            return Ok(());
        };
        Err(refusal(
            format!(
                "{} belongs to iteration {own}, but its run is at iteration {newest}",
                self.session.id.as_str()
            ),
            format!("`unstuck resume {}` continues the run", self.run.id.short()),
        ))
    }

    fn request_retry(
        &self,
        different: &RetryChanges,
        recovery: &SessionState,
        who: &str,
        session: &CommandContext<'_>,
    ) -> Result<RetryEffect> {
        let id = self.session.id.as_str();
        let is_same = different == &RetryChanges::default();
        if self.is_driven && self.session.wait.is_for_conversation {
            return Err(refusal(
                format!("session {id} waits for its conversation, which is in use elsewhere"),
                format!(
                    "end the other process; the session then continues. `unstuck stop {}` stops it",
                    self.run.id.short()
                ),
            ));
        }
        if self.is_driven && self.session.status == RunStatus::Waiting && is_same {
            return self.end_wait(session);
        }
        if self.is_driven {
            return Err(refusal(
                format!("session {id} is running"),
                "stop its run first, or wait until it ends",
            ));
        }
        self.check_current()?;
        let changes = different.changes(recovery);
        if matches!(
            self.session.status,
            RunStatus::Succeeded | RunStatus::Recovered
        ) {
            let role = self.session.part.as_ref().map(|part| part.role.clone());
            return match role {
                Some(role) if changes.is_empty() => Ok(RetryEffect::NeedsResume {
                    restart: vec![role],
                }),
                Some(_) => Err(refusal(
                    format!("session {id} succeeded and can only be re-run unchanged"),
                    "re-run it without options; this also re-runs the roles that depend on it",
                )),
                None => Err(refusal(
                    format!("session {id} already succeeded"),
                    "start a new run",
                )),
            };
        }
        async_runtime::block_on(async {
            let redactor = Arc::new(environment_variables::redactor());
            let store = crate::store::open(session.store, redactor).await?;
            let notifying = ConfiguredNotifier::new(&self.config, session);
            let scribe = NotifyingEventWriter {
                store: &store,
                notifier: notifying
                    .as_ref()
                    .map(|hooks| hooks as &dyn NotificationBuilder),
            };
            let wanted = SessionRetryRequest {
                run: &self.run.id,
                session: &self.session.id,
                changes: &changes,
                note: &different.message,
                author: Some(who),
            };
            request_retry(&scribe, &wanted, clock::now().at).await?;
            store.close().await.map_err(crate::store::with_hint)
        })?;
        Ok(RetryEffect::NeedsResume {
            restart: Vec::new(),
        })
    }
}

impl RetryTarget {
    /// Ends the wait: the supervising process retries at once.
    fn end_wait(&self, session: &CommandContext<'_>) -> Result<RetryEffect> {
        async_runtime::block_on(async {
            let redactor = Arc::new(environment_variables::redactor());
            let store = crate::store::open(session.store, redactor).await?;
            let ended = WaitEnded {
                session: Some(self.session.id.clone()),
                by: EarlyWaitEndCause::Person,
            };
            let events = [Event::from(ended)];
            let append = RunEventBatch::new(self.run.id.clone(), clock::now().at, events);
            store
                .append(append)
                .await
                .map_err(crate::store::with_hint)?;
            store.close().await.map_err(crate::store::with_hint)
        })?;
        Ok(RetryEffect::Delivered)
    }
}

/// Returns the open escalation of a session.
fn open_escalation_of(
    meant: &SessionSummary,
    run: &RunId,
    session: &CommandContext<'_>,
) -> Result<Option<EscalationRow>> {
    let filter = EscalationFilter {
        run: Some(run.clone()),
        ..EscalationFilter::default()
    };
    let is_about = |one: &EscalationRow| {
        one.request.session.as_ref() == Some(&meant.id) && !one.request.is_non_blocking()
    };
    let found = escalation_answers::open_escalations(&filter, session)?;
    check_no_blocking_escalation(&found, meant)?;
    Ok(found.into_iter().find(is_about))
}

/// A retry answers only the escalation of its own session, and never one about a budget.
fn check_no_blocking_escalation(open: &[EscalationRow], meant: &SessionSummary) -> Result<()> {
    let is_own = |one: &&EscalationRow| one.request.session.as_ref() == Some(&meant.id);
    let money = open.iter().find(|one| one.request.is_about_budget());
    let of_run = open
        .iter()
        .find(|one| one.request.session.is_none() && !one.request.is_non_blocking());
    let is_asked = open.iter().any(|one| is_own(&one));
    if let Some(question) = money.or(of_run.filter(|_| !is_asked)) {
        let (id, run) = (&question.request.id, question.run.short());
        return Err(refusal(
            format!(
                "run {run} needs your input; a retry does not answer it: {}",
                question.request.reason
            ),
            format!("`unstuck inbox {id}` shows the request and its answers"),
        ));
    }
    Ok(())
}

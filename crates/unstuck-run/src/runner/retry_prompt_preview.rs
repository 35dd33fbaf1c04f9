//! A preview of the prompt that a retry with changes would send.

use std::path::Path;
use std::time::Duration;

use unstuck_core::agent::ParsedAgentCommandLine;
use unstuck_core::decision::{ConcreteAttemptChange, RetryChangeCapability};
use unstuck_core::event::{EscalationResolved, SessionId, VERSION};
use unstuck_core::{Event, EventRecord, SessionState, Timestamp};

use super::attempt_command::{
    AttemptCommandBuilder, ContinuationContext, capabilities, original_prompt,
};
use super::error::RunError;
use super::knowledge::RunKnowledgeProvider;
use super::stored_stdin::StoredStdin;
use crate::run_dir;

/// The prompt that a retry would send, with its model and timeout, and what can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPromptPreview {
    /// The prompt, or the message to a continued conversation.
    pub prompt: String,
    /// The original prompt of the session; empty if unknown.
    pub original: String,
    /// True if the agent continues its conversation.
    pub continues: bool,
    /// The model, if known.
    pub model: Option<String>,
    /// The timeout of the attempt.
    pub timeout: Option<Duration>,
    /// True if the prompt can be changed.
    pub accepts_prompt: bool,
    /// True if the model can be changed.
    pub accepts_model: bool,
}

/// The inputs from which the prompt of a retry is previewed.
pub struct RetryPreviewInput<'a> {
    /// The source of the knowledge.
    pub knowledge_source: &'a dyn RunKnowledgeProvider,
    /// The state directory.
    pub state: &'a Path,
    /// The root directory of the project.
    pub project: &'a Path,
    /// All events of the run.
    pub events: &'a [EventRecord],
}

impl RetryPreviewInput<'_> {
    /// Returns the state of a session; `None` if there is no such session.
    pub fn session_state(&self, session: &SessionId) -> Option<SessionState> {
        let is_first = |recorded: &&EventRecord| match &recorded.event {
            Event::RunStarted(run) => run
                .sole_session()
                .is_some_and(|spec| spec.session == *session),
            Event::SessionStarted(started) => started.spec.session == *session,
            _ => false,
        };
        let first = self.events.iter().find(is_first)?;
        let mut recovery = SessionState::from_first_event(first)?;
        let later = self.events.iter().filter(|one| one.seq > first.seq);
        later.for_each(|recorded| recovery.apply(recorded));
        Some(recovery)
    }

    /// Returns the prompt that a retry with these changes would send now.
    pub fn preview_prompt(
        &self,
        recovery: &SessionState,
        changes: &[ConcreteAttemptChange],
        now: Timestamp,
    ) -> Result<RetryPromptPreview, RunError> {
        let mut then = recovery.clone();
        let spec = recovery.spec();
        then.apply(&EventRecord {
            version: VERSION,
            run: recovery.id().clone(),
            seq: u64::MAX,
            at: now,
            event: Event::from(EscalationResolved {
                changes: changes.to_vec(),
                ..EscalationResolved::by_hand(Some(spec.session.clone()))
            }),
        });
        let plan = then.next_attempt();
        let agents = self.knowledge_source.agents();
        let agent = match spec.agent.as_deref() {
            Some(name) => agents.get(name),
            None => agents.recognize(&spec.command),
        };
        let (begun, can) = match (self.role_prompt(&spec.session), agent) {
            (Some(prompt), Some(agent)) => {
                (Some(prompt), agent.call_capabilities(&Default::default()))
            }
            (_, agent) => {
                let input = StoredStdin::new(self.state, recovery.id()).restore();
                let input = input.ok().flatten();
                let input = input.and_then(|bytes| String::from_utf8(bytes).ok());
                let read = |agent| {
                    original_prompt(
                        &ParsedAgentCommandLine::parse(agent, &spec.command),
                        spec,
                        input.as_deref(),
                    )
                };
                (agent.and_then(read), capabilities(agent, &spec.command))
            }
        };
        let changer = AttemptCommandBuilder {
            agent,
            recovery: &then,
            plan: &plan,
            prompts: self.knowledge_source.prompts(),
            steps: None,
            since: ContinuationContext::default(),
            refused_proposals: Vec::new(),
        };
        let original = begun.unwrap_or_default();
        Ok(RetryPromptPreview {
            prompt: match &plan.resume {
                Some(_) => changer.continuation_message(&original)?,
                None => changer.modified_prompt(&original)?,
            },
            original,
            continues: plan.resume.is_some(),
            model: then.model().map(str::to_owned),
            timeout: plan.timeout,
            accepts_prompt: can.has(RetryChangeCapability::Prompt),
            accepts_model: can.has(RetryChangeCapability::Model),
        })
    }

    /// Returns the first prompt of a role from its run directory; `None` if the session is not a role.
    fn role_prompt(&self, session: &SessionId) -> Option<String> {
        let started = self
            .events
            .iter()
            .find_map(|recorded| match &recorded.event {
                Event::SessionStarted(started) if started.spec.session == *session => Some(started),
                _ => None,
            })?;
        let begin = self.events.first()?;
        let Event::RunStarted(began) = &begin.event else {
            return None;
        };
        let run = run_dir::run_files_dir(self.state, &begin.run);
        let part = Some(&started.part);
        let first = run_dir::attempt_dir(&run, part, began.instances(part), 1);
        let prompt = run_dir::read_run_file(&first.join("prompt.md")).unwrap_or_default();
        Some(String::from_utf8_lossy(&prompt).into_owned())
    }
}

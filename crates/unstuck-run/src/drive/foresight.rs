//! What an attempt would be told that a person asks for, before they ask for it.

use std::path::Path;
use std::time::Duration;

use unstuck_core::agent::Invocation;
use unstuck_core::decision::{Capability, Changed};
use unstuck_core::event::{RecoveryResolved, SessionId, VERSION};
use unstuck_core::{Event, Recorded, Recovery, Timestamp};

use super::command::{Changer, Since, capabilities, original};
use super::error::RunError;
use super::input::Input;
use super::knowledge::Known;
use crate::folder;

/// What an attempt would be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WouldSend {
    /// The prompt, or the message where the conversation goes on.
    pub prompt: String,
    /// The prompt that the session began with; empty where it is not known.
    pub original: String,
    /// Whether the agent goes on in its conversation.
    pub continues: bool,
    /// The model, as far as is known.
    pub model: Option<String>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Whether what it is told can be changed at all.
    pub takes_prompt: bool,
    /// Whether its model can be changed.
    pub takes_model: bool,
}

/// What is needed to tell it.
pub struct Foresight<'a> {
    /// What is known.
    pub known: &'a dyn Known,
    /// Where what is needed to take runs up again is kept.
    pub state: &'a Path,
    /// The root folder of the project.
    pub project: &'a Path,
    /// All that happened in the run.
    pub events: &'a [Recorded],
}

impl Foresight<'_> {
    /// Where a session stands; none where there is no such session.
    pub fn standing(&self, session: &SessionId) -> Option<Recovery> {
        let is_first = |recorded: &&Recorded| match &recorded.event {
            Event::RunStarted(run) => run
                .sole_session()
                .is_some_and(|spec| spec.session == *session),
            Event::SessionStarted(started) => started.spec.session == *session,
            _ => false,
        };
        let first = self.events.iter().find(is_first)?;
        let mut recovery = Recovery::begin(first)?;
        let later = self.events.iter().filter(|one| one.seq > first.seq);
        later.for_each(|recorded| recovery.record(recorded));
        Some(recovery)
    }

    /// What would be sent if a person wanted these changes now.
    pub fn of(
        &self,
        recovery: &Recovery,
        changes: &[Changed],
        now: Timestamp,
    ) -> Result<WouldSend, RunError> {
        let mut then = recovery.clone();
        let spec = recovery.spec();
        then.record(&Recorded {
            version: VERSION,
            run: recovery.id().clone(),
            seq: u64::MAX,
            at: now,
            event: Event::from(RecoveryResolved {
                changes: changes.to_vec(),
                ..RecoveryResolved::by_hand(Some(spec.session.clone()))
            }),
        });
        let plan = then.plan();
        let agents = self.known.agents();
        let agent = match spec.agent.as_deref() {
            Some(name) => agents.get(name),
            None => agents.recognise(&spec.command),
        };
        let (begun, can) = match (self.role_prompt(&spec.session), agent) {
            (Some(prompt), Some(agent)) => {
                (Some(prompt), agent.call_capabilities(&Default::default()))
            }
            (_, agent) => {
                let input = Input::of(self.state, recovery.id()).again();
                let input = input.ok().flatten();
                let input = input.and_then(|bytes| String::from_utf8(bytes).ok());
                let read = |agent| {
                    original(
                        &Invocation::read(agent, &spec.command),
                        spec,
                        input.as_deref(),
                    )
                };
                (agent.and_then(read), capabilities(agent, &spec.command))
            }
        };
        let changer = Changer {
            agent,
            recovery: &then,
            plan: &plan,
            prompts: self.known.prompts(),
            steps: None,
            since: Since::default(),
            refused: Vec::new(),
        };
        let original = begun.unwrap_or_default();
        Ok(WouldSend {
            prompt: match &plan.resume {
                Some(_) => changer.message(&original)?,
                None => changer.prompt(&original)?,
            },
            original,
            continues: plan.resume.is_some(),
            model: then.model().map(str::to_owned),
            timeout: plan.timeout,
            takes_prompt: can.has(Capability::Prompt),
            takes_model: can.has(Capability::Model),
        })
    }

    /// What a role was told at first, as its folder shows it; none where the session is no role's.
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
        let run = folder::files_of(self.state, &begin.run);
        let part = Some(&started.part);
        let first = folder::attempt_of(&run, part, began.instances(part), 1);
        let prompt = folder::read(&first.join("prompt.md")).unwrap_or_default();
        Some(String::from_utf8_lossy(&prompt).into_owned())
    }
}

//! How the next attempt is to be made: what decisions have changed about it so far.

use std::time::Duration;

use crate::decision::{Changed, Chosen, Decision};
use crate::duration::Human;
use crate::event::{Answering, AttemptFailed, SessionSpec};
use crate::failure::{Category, Kind, Level};
use crate::knowledge::SessionChoice;

/// How the next attempt is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptPlan {
    /// Its number, from 1.
    pub number: u32,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How long it may be silent.
    pub idle_timeout: Option<Duration>,
    /// The model to use, where it is not the one of the command line.
    pub model: Option<String>,
    /// The prompt template to add.
    pub prompt: Option<String>,
    /// What a person said, to be added to the prompt.
    pub words: Option<String>,
    /// The prompt as a person has written it, in the place of what would be sent.
    pub text: Option<String>,
    /// What the allowed length of the output is multiplied by.
    pub output_limit: Option<f64>,
    /// The agent's conversation to go on in.
    pub resume: Option<String>,
    /// Whether a new conversation is wanted, though there is an old one.
    pub fresh: bool,
    /// Whether the attempt before was cut off from outside, so that nobody knows what it had done.
    pub after_cut_off: bool,
    /// What it is an answer to; none for the first.
    pub answering: Option<Answering>,
    /// What was changed for it, in words for a person.
    pub changes: Vec<String>,
}

impl AttemptPlan {
    /// The template by which an agent that goes on in its conversation is told what is to be different.
    pub fn template_in_conversation(&self) -> Option<&str> {
        let is_strategy = |answering: &Answering| answering.strategy.is_some();
        let has_strategy = self.answering.as_ref().is_some_and(is_strategy);
        self.prompt
            .as_deref()
            .filter(|_| self.resume.is_some() && has_strategy && !self.after_cut_off)
    }
}

/// Whether a conversation can still be used after such a failure.
fn leaves_conversation(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::ContextLimit | Kind::ContentFilter | Kind::InvalidRequest | Kind::Stuck
    )
}

/// Whether only the answer was wrong, so that the work it should have told of is still in the conversation.
fn concerns_answer(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::EmptyOutput
            | Kind::MissingSections
            | Kind::FormatValidation
            | Kind::DiffParseError
            | Kind::JsonParseError
    )
}

/// Whether a decision says itself in which conversation it goes on.
fn chooses_conversation(decision: &Decision) -> bool {
    let is_choice = |change: &Changed| matches!(change, Changed::Session(_));
    matches!(&decision.action, Chosen::Change { changes, .. } if changes.iter().any(is_choice))
}

/// Whether a decision changes something, but nothing of what the agent is told.
fn leaves_prompt(decision: &Decision) -> bool {
    let is_beside =
        |change: &Changed| matches!(change, Changed::Model { .. } | Changed::Timeout { .. });
    matches!(&decision.action, Chosen::Change { changes, .. } if !changes.is_empty() && changes.iter().all(is_beside))
}

/// What decisions have changed so far; what they leave alone stays as it was.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Course {
    timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    /// Whether the newest failure was that it had been silent for too long.
    was_silent: bool,
    model: Option<String>,
    prompt: Option<String>,
    words: Option<String>,
    text: Option<String>,
    output_limit: Option<f64>,
    session: Option<SessionChoice>,
    agent_session: Option<String>,
    /// Whether the agent had done some work in its conversation before it failed.
    worked: bool,
    /// Whether it may have, since nobody knows what it used.
    may_have_worked: bool,
    /// Whether it had written anything that a summary could tell.
    wrote: bool,
    /// Whether the newest attempt was cut off from outside.
    cut_off: bool,
    /// The repair that is to be run first.
    repair: Option<String>,
    answering: Option<Answering>,
    changes: Vec<String>,
}

impl Course {
    pub(super) fn of(spec: &SessionSpec) -> Self {
        Self {
            timeout: spec.timeout_ms.map(Duration::from_millis),
            idle_timeout: spec.idle_timeout_ms.map(Duration::from_millis),
            was_silent: false,
            model: None,
            prompt: None,
            words: None,
            text: None,
            output_limit: None,
            session: None,
            agent_session: None,
            worked: false,
            may_have_worked: false,
            wrote: false,
            cut_off: false,
            repair: None,
            answering: None,
            changes: Vec::new(),
        }
    }

    /// Takes over what the session's configuration has become.
    pub(super) fn configured(&mut self, spec: &SessionSpec) {
        *self = Self {
            agent_session: self.agent_session.take(),
            worked: self.worked,
            may_have_worked: self.may_have_worked,
            wrote: self.wrote,
            cut_off: self.cut_off,
            repair: self.repair.take(),
            ..Self::of(spec)
        };
    }

    /// Nobody knows what the attempt had done; where there is a conversation, the agent itself does.
    pub(super) fn cut_off(&mut self, conversation: Option<&str>) {
        self.cut_off = true;
        if let Some(conversation) = conversation {
            self.agent_session = Some(conversation.to_owned());
            self.session = Some(SessionChoice::Resume);
        }
    }

    /// The conversation that was to go on is not there any more; nobody knows what was done in it.
    pub(super) fn lost_conversation(&mut self) {
        self.agent_session = None;
        self.session = None;
        self.cut_off = true;
        self.worked = false;
        self.may_have_worked = false;
        self.changes.clear();
        self.say("new conversation, since the old one is gone".into());
    }

    /// A person wants it to go on after a failure of this kind: in its conversation, if it worked there.
    pub(super) fn wanted_again(&mut self, failed: Option<Kind>) {
        let is_usable = failed.is_none_or(leaves_conversation);
        let worked = self.worked || self.may_have_worked;
        if self.agent_session.is_none() || !worked || !is_usable {
            return;
        }
        self.session = Some(SessionChoice::Resume);
        self.changes = vec!["goes on in the same conversation".into()];
    }

    /// Learns from a failed attempt which conversation there is and whether it is worth going on in.
    pub(super) fn failed(&mut self, attempt: &AttemptFailed) {
        let used = &attempt.end.used;
        self.cut_off = false;
        self.was_silent = attempt.end.limit.as_deref() == Some("idle_timeout");
        if used.agent_session.is_some() {
            self.agent_session.clone_from(&used.agent_session);
        } else if self.session == Some(SessionChoice::Resume)
            && attempt.diagnosis.category() != Category::Transient
        {
            // The conversation could not be resumed: it is no use to try that again.
            self.agent_session = None;
        }
        let written = used.tokens.map_or(0, |tokens| tokens.output);
        self.wrote |= !attempt.excerpt.stdout.trim().is_empty();
        self.worked |= written > 0 || used.turns.is_some_and(|turns| turns > 1);
        self.may_have_worked |= used.tokens.is_none();
    }

    pub(super) fn decided(&mut self, decision: &Decision) {
        let Some(level) = decision.level else {
            return;
        };
        self.answering = Some(Answering {
            kind: decision.kind,
            level,
            strategy: decision.strategy.clone(),
        });
        self.session = self.own_choice(decision);
        self.changes.clear();
        if self.session == Some(SessionChoice::Resume) {
            self.changes.push("goes on in the same conversation".into());
        } else if decision.kind == Kind::RateLimitTimed && self.wrote {
            self.change(&Changed::Prompt("summary".into()));
        }
        if let Chosen::Change { changes, .. } = &decision.action {
            changes.iter().for_each(|change| self.change(change));
        }
    }

    /// A wait that is over goes on where the agent was, if that can be done and there is something to go on with. So does an
    /// agent whose answer alone was wrong.
    fn own_choice(&self, decision: &Decision) -> Option<SessionChoice> {
        let waited = decision.kind == Kind::RateLimitTimed
            || (decision.kind.category() == Category::Transient && self.worked);
        let same = decision.level == Some(Level::Same) || leaves_prompt(decision);
        let answers_again =
            concerns_answer(decision.kind) && self.worked && !chooses_conversation(decision);
        let goes_on = (same && waited) || answers_again;
        (goes_on && self.agent_session.is_some()).then_some(SessionChoice::Resume)
    }

    fn change(&mut self, change: &Changed) {
        match change {
            Changed::Prompt(template) => {
                self.prompt = Some(template.clone());
                self.say(format!("prompt: {template}"));
            }
            Changed::Timeout { to_seconds, .. } => {
                let time = Duration::from_secs(*to_seconds);
                if self.was_silent {
                    self.idle_timeout = Some(time);
                    self.say(format!("may be silent for {}", Human(time)));
                } else {
                    self.timeout = Some(time);
                    self.say(format!("timeout {}", Human(time)));
                }
            }
            Changed::Model { to, .. } => {
                self.model = Some(to.clone());
                self.say(format!("model {to}"));
            }
            Changed::Session(choice) => {
                self.session = Some(*choice);
                self.say(match choice {
                    SessionChoice::Resume => "goes on in the same conversation".into(),
                    SessionChoice::Fresh => "new conversation".into(),
                });
            }
            Changed::Words(words) => {
                self.words = Some(words.clone());
                self.say("a person's words".into());
            }
            Changed::Text(text) => {
                self.text = Some(text.clone());
                self.say("a prompt that a person has written".into());
            }
            Changed::OutputLimit { factor, .. } => {
                self.output_limit = Some(self.output_limit.unwrap_or(1.0) * factor);
                self.say("asks for less".into());
            }
            Changed::Repair { id, command } => {
                self.repair = Some(id.clone());
                self.say(format!("after the repair `{command}`"));
            }
        }
    }

    fn say(&mut self, change: String) {
        self.changes.push(change);
    }

    /// The repair that is to be run before the next attempt.
    pub(super) fn repair(&self) -> Option<&str> {
        self.repair.as_deref()
    }

    /// A person has allowed a repair.
    pub(super) fn allowed(&mut self, id: &str, command: &str) {
        self.change(&Changed::Repair {
            id: id.to_owned(),
            command: command.to_owned(),
        });
    }

    /// How the attempt is made, in words for a person.
    pub(super) fn said(&self) -> String {
        match (self.changes.is_empty(), &self.answering) {
            (false, _) => self.changes.join(", "),
            (true, Some(_)) => "the same again".to_owned(),
            (true, None) => "as it was asked for".to_owned(),
        }
    }

    /// A person has said what is to be different.
    pub(super) fn told(&mut self, changes: &[Changed]) {
        if changes.is_empty() {
            return;
        }
        self.changes.clear();
        let kind = self.answering.as_ref().map(|one| one.kind);
        self.answering = kind.map(|kind| Answering {
            kind,
            level: Level::Clarify,
            strategy: None,
        });
        let is_about_prompt = |one: &Changed| {
            matches!(
                one,
                Changed::Prompt(_) | Changed::Words(_) | Changed::Text(_)
            )
        };
        if changes.iter().any(is_about_prompt) {
            // Nothing is left of what was tried with it before.
            (self.prompt, self.words, self.text) = (None, None, None);
        }
        changes.iter().for_each(|change| self.change(change));
    }

    /// The repair was run, or cannot be.
    pub(super) fn repaired(&mut self) {
        self.repair = None;
    }

    pub(super) fn can_resume(&self) -> bool {
        self.agent_session.is_some()
    }

    /// Whether the next attempt continues a conversation.
    pub(super) fn wakes_conversation(&self) -> bool {
        self.session == Some(SessionChoice::Resume) && self.agent_session.is_some()
    }

    /// The limit that a longer time would be about.
    pub(super) fn timeout(&self) -> Option<Duration> {
        if self.was_silent {
            self.idle_timeout
        } else {
            self.timeout
        }
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    pub(super) fn plan(&self, number: u32) -> AttemptPlan {
        let resumes = self.session == Some(SessionChoice::Resume);
        AttemptPlan {
            number,
            timeout: self.timeout,
            idle_timeout: self.idle_timeout,
            model: self.model.clone(),
            prompt: self.prompt.clone(),
            words: self.words.clone(),
            text: self.text.clone(),
            output_limit: self.output_limit,
            resume: self.agent_session.clone().filter(|_| resumes),
            fresh: self.session == Some(SessionChoice::Fresh),
            after_cut_off: self.cut_off,
            answering: self.answering.clone(),
            changes: self.changes.clone(),
        }
    }
}

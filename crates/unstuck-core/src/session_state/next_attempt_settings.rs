//! The settings of the next attempt: all changes that decisions have made so far.

use std::time::Duration;

use crate::agent::is_conversation_id;
use crate::decision::{ConcreteAttemptChange, Decision, RecoveryAction};
use crate::duration::HumanDuration;
use crate::event::{AttemptFailed, RetryCause, SessionSpec};
use crate::failure::{Category, FailureKind, RecoveryLevel};
use crate::knowledge::ConversationMode;

/// The settings of the next attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct NextAttempt {
    /// The attempt number, from 1.
    pub number: u32,
    /// The timeout.
    pub timeout: Option<Duration>,
    /// The idle timeout.
    pub idle_timeout: Option<Duration>,
    /// The model, if it differs from the command line.
    pub model: Option<String>,
    /// The prompt template to add.
    pub prompt: Option<String>,
    /// A human's message to add to the prompt.
    pub user_message: Option<String>,
    /// The prompt written by a human, which replaces the generated one.
    pub prompt_text: Option<String>,
    /// The factor for the output limit.
    pub output_limit_factor: Option<f64>,
    /// The agent's conversation to resume.
    pub resume: Option<String>,
    /// True if a new conversation is wanted even though an old one exists.
    pub starts_fresh: bool,
    /// True if the previous attempt was interrupted from outside, so that its effects are unknown.
    pub after_interruption: bool,
    /// The cause of the attempt; none for the first.
    pub cause: Option<RetryCause>,
    /// The changes in this attempt, as text for humans.
    pub changes: Vec<String>,
}

impl NextAttempt {
    /// Returns the template that tells an agent what to change when its conversation is resumed.
    pub fn template_in_conversation(&self) -> Option<&str> {
        let is_strategy = |answering: &RetryCause| answering.strategy.is_some();
        let has_strategy = self.cause.as_ref().is_some_and(is_strategy);
        self.prompt
            .as_deref()
            .filter(|_| self.resume.is_some() && has_strategy && !self.after_interruption)
    }
}

/// True if a conversation is still usable after a failure of this kind.
fn keeps_conversation_usable(kind: FailureKind) -> bool {
    !matches!(
        kind,
        FailureKind::ContextLimit
            | FailureKind::ContentFilter
            | FailureKind::InvalidRequest
            | FailureKind::Stuck
    )
}

/// True if only the answer was wrong, so that the conversation still contains the work.
fn concerns_answer(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::EmptyOutput
            | FailureKind::MissingSections
            | FailureKind::FormatValidation
            | FailureKind::DiffParseError
            | FailureKind::JsonParseError
    )
}

/// True if the decision itself chooses the conversation.
fn chooses_conversation(decision: &Decision) -> bool {
    let is_choice =
        |change: &ConcreteAttemptChange| matches!(change, ConcreteAttemptChange::Conversation(_));
    matches!(&decision.action, RecoveryAction::Change { changes, .. } if changes.iter().any(is_choice))
}

/// True if the decision changes something, but not the prompt.
fn keeps_prompt(decision: &Decision) -> bool {
    let is_beside = |change: &ConcreteAttemptChange| {
        matches!(
            change,
            ConcreteAttemptChange::Model { .. } | ConcreteAttemptChange::Timeout { .. }
        )
    };
    matches!(&decision.action, RecoveryAction::Change { changes, .. } if !changes.is_empty() && changes.iter().all(is_beside))
}

/// The changes made by decisions so far; each stays until it is overridden.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AttemptOverrides {
    timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    /// True if the latest failure was an idle timeout.
    was_silent: bool,
    model: Option<String>,
    prompt: Option<String>,
    user_message: Option<String>,
    prompt_text: Option<String>,
    output_limit_factor: Option<f64>,
    session: Option<ConversationMode>,
    agent_session: Option<String>,
    /// True if the agent had done work in its conversation before it failed.
    has_worked: bool,
    /// True if it may have done work, since its usage is unknown.
    may_have_worked: bool,
    /// True if it had written output that a summary could use.
    has_output: bool,
    /// True if the latest attempt was interrupted from outside.
    was_interrupted: bool,
    /// The repair to run first.
    repair: Option<String>,
    cause: Option<RetryCause>,
    changes: Vec<String>,
}

impl AttemptOverrides {
    pub(super) fn new(spec: &SessionSpec) -> Self {
        Self {
            timeout: spec.timeout_ms.map(Duration::from_millis),
            idle_timeout: spec.idle_timeout_ms.map(Duration::from_millis),
            was_silent: false,
            model: None,
            prompt: None,
            user_message: None,
            prompt_text: None,
            output_limit_factor: None,
            session: None,
            agent_session: None,
            has_worked: false,
            may_have_worked: false,
            has_output: false,
            was_interrupted: false,
            repair: None,
            cause: None,
            changes: Vec::new(),
        }
    }

    /// Applies a changed session specification.
    pub(super) fn apply_spec(&mut self, spec: &SessionSpec) {
        *self = Self {
            agent_session: self.agent_session.take(),
            has_worked: self.has_worked,
            may_have_worked: self.may_have_worked,
            has_output: self.has_output,
            was_interrupted: self.was_interrupted,
            repair: self.repair.take(),
            ..Self::new(spec)
        };
    }

    /// Handles an interruption: the effects are unknown, so an existing conversation is resumed, where the agent knows
    /// them.
    pub(super) fn on_interrupted(&mut self, conversation: Option<&str>) {
        self.was_interrupted = true;
        if let Some(conversation) = conversation.filter(|id| is_conversation_id(id)) {
            self.agent_session = Some(conversation.to_owned());
            self.session = Some(ConversationMode::Resume);
        }
    }

    /// Handles a conversation that no longer exists: the work done in it is unknown.
    pub(super) fn on_conversation_lost(&mut self) {
        self.agent_session = None;
        self.session = None;
        self.was_interrupted = true;
        self.has_worked = false;
        self.may_have_worked = false;
        self.changes.clear();
        self.describe("new conversation; the previous one no longer exists".into());
    }

    /// Handles a retry requested by a human: it resumes the conversation if the agent did work in it.
    pub(super) fn on_reopened(&mut self, failed: Option<FailureKind>) {
        let is_usable = failed.is_none_or(keeps_conversation_usable);
        let worked = self.has_worked || self.may_have_worked;
        if self.agent_session.is_none() || !worked || !is_usable {
            return;
        }
        self.session = Some(ConversationMode::Resume);
        self.changes = vec!["continuing the same conversation".into()];
    }

    /// Records which conversation a failed attempt used and whether it is worth resuming.
    pub(super) fn on_attempt_failed(&mut self, attempt: &AttemptFailed) {
        let used = &attempt.end.usage;
        self.was_interrupted = false;
        self.was_silent = attempt.end.limit.as_deref() == Some("idle_timeout");
        let named = used.agent_session.as_ref();
        if let Some(named) = named.filter(|id| is_conversation_id(id)) {
            self.agent_session = Some(named.clone());
        } else if self.session == Some(ConversationMode::Resume)
            && attempt.diagnosis.category() != Category::Transient
        {
            // The conversation could not be resumed, so do not try that again.
            self.agent_session = None;
        }
        let written = used.tokens.map_or(0, |tokens| tokens.output);
        self.has_output |= !attempt.excerpt.stdout.trim().is_empty();
        self.has_worked |= written > 0 || used.turns.is_some_and(|turns| turns > 1);
        self.may_have_worked |= used.tokens.is_none();
    }

    pub(super) fn on_decision(&mut self, decision: &Decision) {
        let Some(level) = decision.level else {
            return;
        };
        self.cause = Some(RetryCause {
            kind: decision.kind,
            level,
            strategy: decision.strategy.clone(),
        });
        self.session = self.default_conversation_mode(decision);
        self.changes.clear();
        if self.session == Some(ConversationMode::Resume) {
            self.changes.push("continuing the same conversation".into());
        } else if decision.kind == FailureKind::RateLimitTimed && self.has_output {
            self.apply_change(&ConcreteAttemptChange::Prompt("summary".into()));
        }
        if let RecoveryAction::Change { changes, .. } = &decision.action {
            changes.iter().for_each(|change| self.apply_change(change));
        }
    }

    /// Returns the conversation mode if the decision does not set it: after a wait, the agent's conversation is resumed
    /// if that is possible and it contains work. The same applies if only the answer was wrong.
    fn default_conversation_mode(&self, decision: &Decision) -> Option<ConversationMode> {
        let waited = decision.kind == FailureKind::RateLimitTimed
            || (decision.kind.category() == Category::Transient && self.has_worked);
        let same = decision.level == Some(RecoveryLevel::Same) || keeps_prompt(decision);
        let answers_again =
            concerns_answer(decision.kind) && self.has_worked && !chooses_conversation(decision);
        let goes_on = (same && waited) || answers_again;
        (goes_on && self.agent_session.is_some()).then_some(ConversationMode::Resume)
    }

    fn apply_change(&mut self, change: &ConcreteAttemptChange) {
        match change {
            ConcreteAttemptChange::Prompt(template) => {
                self.prompt = Some(template.clone());
                self.describe(format!("prompt: {template}"));
            }
            ConcreteAttemptChange::Timeout { to_seconds, .. } => {
                let time = Duration::from_secs(*to_seconds);
                if self.was_silent {
                    self.idle_timeout = Some(time);
                    self.describe(format!("idle timeout {}", HumanDuration(time)));
                } else {
                    self.timeout = Some(time);
                    self.describe(format!("timeout {}", HumanDuration(time)));
                }
            }
            ConcreteAttemptChange::Model { to, .. } => {
                self.model = Some(to.clone());
                self.describe(format!("model {to}"));
            }
            ConcreteAttemptChange::Conversation(choice) => {
                self.session = Some(*choice);
                self.describe(match choice {
                    ConversationMode::Resume => "continuing the same conversation".into(),
                    ConversationMode::Fresh => "new conversation".into(),
                });
            }
            ConcreteAttemptChange::UserMessage(words) => {
                self.user_message = Some(words.clone());
                self.describe("with your message".into());
            }
            ConcreteAttemptChange::PromptText(text) => {
                self.prompt_text = Some(text.clone());
                self.describe("with your prompt".into());
            }
            ConcreteAttemptChange::OutputLimit { factor, .. } => {
                self.output_limit_factor = Some(self.output_limit_factor.unwrap_or(1.0) * factor);
                self.describe("shorter output".into());
            }
            ConcreteAttemptChange::Repair { id, command } => {
                self.repair = Some(id.clone());
                self.describe(format!("after repair `{command}`"));
            }
        }
    }

    fn describe(&mut self, change: String) {
        self.changes.push(change);
    }

    /// Returns the repair to run before the next attempt.
    pub(super) fn pending_repair(&self) -> Option<&str> {
        self.repair.as_deref()
    }

    /// Handles the approval of a repair.
    pub(super) fn on_repair_approved(&mut self, id: &str, command: &str) {
        self.apply_change(&ConcreteAttemptChange::Repair {
            id: id.to_owned(),
            command: command.to_owned(),
        });
    }

    /// Describes the attempt as text for humans.
    pub(super) fn summary(&self) -> String {
        match (self.changes.is_empty(), &self.cause) {
            (false, _) => self.changes.join(", "),
            (true, Some(_)) => "unchanged retry".to_owned(),
            (true, None) => "as requested".to_owned(),
        }
    }

    /// Applies a human's changes.
    pub(super) fn apply_user_changes(&mut self, changes: &[ConcreteAttemptChange]) {
        if changes.is_empty() {
            return;
        }
        self.changes.clear();
        let kind = self.cause.as_ref().map(|one| one.kind);
        self.cause = kind.map(|kind| RetryCause {
            kind,
            level: RecoveryLevel::Clarify,
            strategy: None,
        });
        let is_about_prompt = |one: &ConcreteAttemptChange| {
            matches!(
                one,
                ConcreteAttemptChange::Prompt(_)
                    | ConcreteAttemptChange::UserMessage(_)
                    | ConcreteAttemptChange::PromptText(_)
            )
        };
        if changes.iter().any(is_about_prompt) {
            // All previous changes are discarded.
            (self.prompt, self.user_message, self.prompt_text) = (None, None, None);
        }
        changes.iter().for_each(|change| self.apply_change(change));
    }

    /// Clears the repair after it ran or cannot be run.
    pub(super) fn clear_repair(&mut self) {
        self.repair = None;
    }

    pub(super) fn can_resume(&self) -> bool {
        self.agent_session.is_some()
    }

    /// True if the next attempt resumes a conversation.
    pub(super) fn wakes_conversation(&self) -> bool {
        self.session == Some(ConversationMode::Resume) && self.agent_session.is_some()
    }

    /// Returns the timeout that an increase would apply to.
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

    pub(super) fn next_attempt(&self, number: u32) -> NextAttempt {
        let resumes = self.session == Some(ConversationMode::Resume);
        NextAttempt {
            number,
            timeout: self.timeout,
            idle_timeout: self.idle_timeout,
            model: self.model.clone(),
            prompt: self.prompt.clone(),
            user_message: self.user_message.clone(),
            prompt_text: self.prompt_text.clone(),
            output_limit_factor: self.output_limit_factor,
            resume: self.agent_session.clone().filter(|_| resumes),
            starts_fresh: self.session == Some(ConversationMode::Fresh),
            after_interruption: self.was_interrupted,
            cause: self.cause.clone(),
            changes: self.changes.clone(),
        }
    }
}

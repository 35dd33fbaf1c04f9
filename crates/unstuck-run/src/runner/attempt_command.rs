//! The command line of the next attempt: the original command with the planned changes.

use std::path::Path;

use unstuck_core::agent::{
    Agent, CommandLineRewrite, ConversationChoice, ParsedAgentCommandLine, PromptSource,
};
use unstuck_core::decision::{RandomDraw, RetryCapabilities, RetryChangeCapability};
use unstuck_core::event::{AttemptFailed, SessionSpec};
use unstuck_core::recovery_plan::{PromptNoteLimits, PromptNoteTemplates, PromptNoteVars};
use unstuck_core::session_state::NextAttempt;
use unstuck_core::{Failure, FailureLayer, SessionState};
use unstuck_files::{DirHandle, read_named};

use super::error::RunError;

/// Largest file that is read as a prompt.
const MAX_PROMPT_BYTES: u64 = 8 << 20;

/// Template of the message to an agent that continues its conversation.
const CONTINUE_TEMPLATE: &str = "continue";
/// Template of a strategy that consists of steps.
const STEPS_TEMPLATE: &str = "steps";
/// Template of the message after an attempt whose end is unknown.
const CUT_OFF_TEMPLATE: &str = "cut_off";
/// Template of the error description, which also contains a human's note.
const ERROR_CONTEXT_TEMPLATE: &str = "error_context";

/// Returns the changes that are possible for a command: for a plain command, only its timeout.
pub(super) fn capabilities(agent: Option<&Agent>, command: &[String]) -> RetryCapabilities {
    // The session itself knows if it has a conversation to continue.
    let own = agent.map_or(RetryCapabilities::NONE, |agent| {
        ParsedAgentCommandLine::parse(agent, command)
            .with_reported_session(Some(String::new()))
            .capabilities()
    });
    let own = if own.has(RetryChangeCapability::Prompt) {
        // The prompt controls the length of an agent's output.
        own.with(RetryChangeCapability::OutputLimit)
    } else {
        own
    };
    own.with(RetryChangeCapability::Timeout)
        .without(RetryChangeCapability::Steps)
}

/// A command line, with a replacement of its standard input if the prompt comes from there.
#[derive(Debug, PartialEq)]
pub(super) struct AttemptCommandLine {
    pub(super) command: Vec<String>,
    pub(super) stdin: Option<String>,
    /// The conversation id passed to the agent, so that it can be resumed whatever the agent prints.
    pub(super) session: Option<String>,
}

/// The inputs of an attempt's command line.
pub(super) struct AttemptCommandBuilder<'a> {
    pub(super) agent: Option<&'a Agent>,
    pub(super) recovery: &'a SessionState,
    pub(super) plan: &'a NextAttempt,
    pub(super) prompts: &'a PromptNoteTemplates,
    /// The steps of the strategy, as a list for the agent.
    pub(super) steps: Option<String>,
    /// The message to a continued conversation about the time since it stopped.
    pub(super) since: ContinuationContext,
    /// The reasons why its proposals were refused.
    pub(super) refused_proposals: Vec<String>,
}

/// The known events since a conversation stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ContinuationContext {
    /// The step that the agent had reached.
    pub(super) step: Option<String>,
    /// Other events since then.
    pub(super) meanwhile: Option<String>,
}

impl AttemptCommandBuilder<'_> {
    /// Builds the planned command line.
    pub(super) fn build(
        &self,
        input: Option<&str>,
        draw: &mut dyn FnMut() -> RandomDraw,
    ) -> Result<AttemptCommandLine, RunError> {
        let (spec, plan) = (self.recovery.spec(), self.plan);
        let as_it_is = || AttemptCommandLine {
            command: spec.command.clone(),
            stdin: None,
            session: None,
        };
        // With automatic retries off, only a human can have changed something.
        let is_changed = spec.policy.enabled || !plan.changes.is_empty();
        let Some(agent) = self.agent.filter(|_| is_changed) else {
            return Ok(as_it_is());
        };
        let invocation = ParsedAgentCommandLine::parse(agent, &spec.command);
        let given = (plan.resume.is_none() && invocation.supports_new_session_id())
            .then(|| new_conversation_id(draw));
        let original = original_prompt(&invocation, spec, input);
        let task = original.clone().unwrap_or_default();
        let changes = CommandLineRewrite {
            prompt: match (&plan.resume, original) {
                (None, Some(original)) => {
                    let changed = self.modified_prompt(&original)?;
                    (changed != original).then_some(changed)
                }
                _ => None,
            },
            model: plan.model.clone(),
            session: match &plan.resume {
                Some(id) => Some(ConversationChoice::Resume {
                    id: id.clone(),
                    message: self.continuation_message(&task)?,
                }),
                None if plan.starts_fresh => Some(ConversationChoice::Fresh),
                None => given.clone().map(|id| ConversationChoice::New { id }),
            },
        };
        if changes == CommandLineRewrite::default() {
            return Ok(as_it_is());
        }
        let changed = invocation.with_changes(&changes)?;
        Ok(AttemptCommandLine {
            command: changed.command,
            stdin: changed.stdin,
            session: given.filter(|_| !plan.starts_fresh),
        })
    }

    /// Returns the message to an agent that continues its conversation.
    pub(super) fn continuation_message(&self, task: &str) -> Result<String, RunError> {
        if let Some(text) = &self.plan.prompt_text {
            return Ok(text.clone());
        }
        let mut context = PromptNoteVars {
            task: task_beginning(task),
            step: self.since.step.clone().unwrap_or_default(),
            concurrent_changes: self.since.meanwhile.clone().unwrap_or_default(),
            ..self.prompt_context()
        };
        // A failure before the interruption is not its cause.
        if self.plan.after_interruption {
            context.error.clear();
        }
        let limits = PromptNoteLimits::default();
        let mut message = self.prompts.message(CONTINUE_TEMPLATE, &context, &limits)?;
        if let Some(template) = self.plan.template_in_conversation() {
            let first = self.prompts.message(template, &context, &limits)?;
            message = format!("{}\n\n{message}", first.trim_end());
        }
        if let Some(words) = &self.plan.user_message {
            message = format!("{}\n\nMessage from the user: {words}\n", message.trim_end());
        }
        Ok(self.with_refused_proposals(message))
    }

    /// Appends the reasons why the agent's proposals were refused.
    fn with_refused_proposals(&self, mut text: String) -> String {
        for why in &self.refused_proposals {
            let said = "Your recovery.json is invalid and was ignored";
            text = format!("{}\n\n{said}: {why}\n", text.trim_end());
        }
        text
    }

    /// Returns a prompt with the planned additions.
    pub(super) fn modified_prompt(&self, original: &str) -> Result<String, RunError> {
        let (plan, limits) = (self.plan, PromptNoteLimits::default());
        if let Some(text) = &plan.prompt_text {
            return Ok(text.clone());
        }
        let mut prompt = original.to_owned();
        let template = match (&plan.user_message, &self.steps, &plan.prompt) {
            (Some(_), _, Some(template)) if template == ERROR_CONTEXT_TEMPLATE => {
                Some(ERROR_CONTEXT_TEMPLATE)
            }
            (Some(_), ..) => Some("clarify"),
            (None, Some(_), _) => Some(STEPS_TEMPLATE),
            (None, None, template) => template.as_deref(),
        };
        let is_told = self.recovery.last_failure().is_some() || plan.user_message.is_some();
        if let Some(template) = template.filter(|_| is_told) {
            let own = self.prompt_context();
            let context = PromptNoteVars {
                user_message: plan.user_message.clone().unwrap_or_default(),
                attempt: plan.number,
                suggestion: self.steps.clone().unwrap_or(own.suggestion),
                ..own
            };
            prompt = self.prompts.apply(&prompt, template, &context, &limits)?;
        }
        if plan.after_interruption {
            let context = PromptNoteVars::default();
            let said = self.prompts.message(CUT_OFF_TEMPLATE, &context, &limits)?;
            prompt = format!("{}\n\n{prompt}", said.trim_end());
        }
        Ok(self.with_refused_proposals(prompt))
    }

    fn prompt_context(&self) -> PromptNoteVars {
        self.recovery
            .last_failure()
            .map(failure_prompt_context)
            .unwrap_or_default()
    }
}

/// Returns the beginning of a task, by which an agent recognizes it in its conversation.
fn task_beginning(task: &str) -> String {
    const LONGEST: usize = 600;
    let task = task.trim();
    match task.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &task[..at]),
        None => task.to_owned(),
    }
}

/// Returns the prompt named by a command line, if it can be read.
pub(super) fn original_prompt(
    invocation: &ParsedAgentCommandLine<'_>,
    spec: &SessionSpec,
    input: Option<&str>,
) -> Option<String> {
    match invocation.prompt() {
        PromptSource::Text(text) => Some(text),
        PromptSource::Stdin => input.map(str::to_owned),
        PromptSource::File(path) => read_prompt_file(Path::new(&spec.cwd), Path::new(&path)),
        PromptSource::Elsewhere => None,
    }
}

/// Reads the prompt from the file named by a command line, relative to a directory.
fn read_prompt_file(cwd: &Path, path: &Path) -> Option<String> {
    let bytes = match path.strip_prefix(cwd).unwrap_or(path) {
        below if below.is_relative() => {
            // The agent may have created a link there to a file that it cannot read itself.
            DirHandle::open(cwd)
                .ok()?
                .read_within(below, MAX_PROMPT_BYTES)
        }
        path => read_named(path, MAX_PROMPT_BYTES),
    };
    String::from_utf8(bytes.ok()?).ok()
}

/// Returns a new conversation id in the form that agents accept: a UUID of version 4.
pub(super) fn new_conversation_id(draws: &mut dyn FnMut() -> RandomDraw) -> String {
    let (high, low) = (draws().0, draws().0);
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

fn failure_prompt_context(failed: &AttemptFailed) -> PromptNoteVars {
    let failure = Failure {
        stdout: Some(failed.excerpt.stdout.as_str().into()),
        stderr: Some(failed.excerpt.stderr.as_str().into()),
        validation_errors: failed.validation_errors.clone(),
        ..Failure::new(FailureLayer::Agent)
    };
    PromptNoteVars {
        summary: failed.excerpt.stdout.clone(),
        ..PromptNoteVars::from_failure(&failure, &failed.diagnosis)
    }
}

#[cfg(test)]
mod tests {
    use unstuck_core::decision::SeededRng;

    use super::*;

    #[test]
    fn conversation_id_is_a_version_4_uuid() {
        let mut dice = SeededRng::seeded(3);
        let id = new_conversation_id(&mut || dice.next_draw());
        let parts: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&id[14..15], "4");
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
    }
}

//! The command line of the next attempt: what a plan changes about the first one.

use std::path::Path;

use unstuck_core::action::{PromptContext, PromptLimits, Prompts};
use unstuck_core::agent::{Agent, Changes, Invocation, Prompt, Session};
use unstuck_core::decision::{Capabilities, Capability, Draw};
use unstuck_core::event::{AttemptFailed, SessionSpec};
use unstuck_core::recovery::AttemptPlan;
use unstuck_core::{Failure, Layer, Recovery};
use unstuck_files::{DirHandle, read_named};

use super::error::RunError;

/// A longer file is no prompt.
const LONGEST_PROMPT: u64 = 8 << 20;

/// The template of what an agent is told when it goes on in its conversation.
const CONTINUE: &str = "continue";
/// The template of a way out that is made of steps.
const STEPS: &str = "steps";
/// The template of what an agent is told when nobody knows what the attempt before had done.
const CUT_OFF: &str = "cut_off";
/// The template of what went wrong, which holds a person's words as well.
const ERROR_CONTEXT: &str = "error_context";

/// What can be changed about a command: of a plain one only the time that it gets.
pub(super) fn capabilities(agent: Option<&Agent>, command: &[String]) -> Capabilities {
    // Whether there is a conversation to go on in, the session itself knows.
    let own = agent.map_or(Capabilities::NONE, |agent| {
        Invocation::read(agent, command)
            .knowing_session(Some(String::new()))
            .capabilities()
    });
    let own = if own.has(Capability::Prompt) {
        // The length of an agent's output is a matter of what it is asked for.
        own.with(Capability::OutputLimit)
    } else {
        own
    };
    own.with(Capability::Timeout).without(Capability::Steps)
}

/// A command line, and what replaces its standard input where the prompt comes from there.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) command: Vec<String>,
    pub(super) stdin: Option<String>,
    /// The conversation that the agent was given, so that it can be resumed whatever the agent tells.
    pub(super) session: Option<String>,
}

/// What the command line of an attempt is made from.
pub(super) struct Changer<'a> {
    pub(super) agent: Option<&'a Agent>,
    pub(super) recovery: &'a Recovery,
    pub(super) plan: &'a AttemptPlan,
    pub(super) prompts: &'a Prompts,
    /// A way out that the agent is told, as a list of steps.
    pub(super) steps: Option<String>,
    /// What a conversation that goes on is told about the time since it stopped.
    pub(super) since: Since,
    /// Why what it proposed was refused.
    pub(super) refused: Vec<String>,
}

/// What happened since a conversation stopped, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Since {
    /// The step that the agent was at.
    pub(super) step: Option<String>,
    /// What else happened meanwhile.
    pub(super) meanwhile: Option<String>,
}

impl Changer<'_> {
    /// The command line that the plan asks for.
    pub(super) fn line(
        &self,
        input: Option<&str>,
        draw: &mut dyn FnMut() -> Draw,
    ) -> Result<Line, RunError> {
        let (spec, plan) = (self.recovery.spec(), self.plan);
        let as_it_is = || Line {
            command: spec.command.clone(),
            stdin: None,
            session: None,
        };
        // Where nothing is tried again by itself, only a person has changed something.
        let is_changed = spec.policy.enabled || !plan.changes.is_empty();
        let Some(agent) = self.agent.filter(|_| is_changed) else {
            return Ok(as_it_is());
        };
        let invocation = Invocation::read(agent, &spec.command);
        let given =
            (plan.resume.is_none() && invocation.takes_new_session()).then(|| conversation(draw));
        let original = original(&invocation, spec, input);
        let task = original.clone().unwrap_or_default();
        let changes = Changes {
            prompt: match (&plan.resume, original) {
                (None, Some(original)) => {
                    let changed = self.prompt(&original)?;
                    (changed != original).then_some(changed)
                }
                _ => None,
            },
            model: plan.model.clone(),
            session: match &plan.resume {
                Some(id) => Some(Session::Resume {
                    id: id.clone(),
                    message: self.message(&task)?,
                }),
                None if plan.fresh => Some(Session::Fresh),
                None => given.clone().map(|id| Session::New { id }),
            },
        };
        if changes == Changes::default() {
            return Ok(as_it_is());
        }
        let changed = invocation.with(&changes)?;
        Ok(Line {
            command: changed.command,
            stdin: changed.stdin,
            session: given.filter(|_| !plan.fresh),
        })
    }

    /// What the agent is told when it goes on in its conversation.
    pub(super) fn message(&self, task: &str) -> Result<String, RunError> {
        if let Some(text) = &self.plan.text {
            return Ok(text.clone());
        }
        let mut context = PromptContext {
            task: beginning(task),
            step: self.since.step.clone().unwrap_or_default(),
            meanwhile: self.since.meanwhile.clone().unwrap_or_default(),
            ..self.context()
        };
        // What failed before it was cut off is not what ended it.
        if self.plan.after_cut_off {
            context.error.clear();
        }
        let limits = PromptLimits::default();
        let mut message = self.prompts.message(CONTINUE, &context, &limits)?;
        if let Some(template) = self.plan.template_in_conversation() {
            let first = self.prompts.message(template, &context, &limits)?;
            message = format!("{}\n\n{message}", first.trim_end());
        }
        if let Some(words) = &self.plan.words {
            message = format!("{}\n\nA person says: {words}\n", message.trim_end());
        }
        Ok(self.with_refusals(message))
    }

    /// A text that also says why what the agent proposed was refused.
    fn with_refusals(&self, mut text: String) -> String {
        for why in &self.refused {
            let said = "Your recovery.json was refused as a whole, and nothing of it was run";
            text = format!("{}\n\n{said}: {why}\n", text.trim_end());
        }
        text
    }

    /// A prompt with the additions that the plan asks for.
    pub(super) fn prompt(&self, original: &str) -> Result<String, RunError> {
        let (plan, limits) = (self.plan, PromptLimits::default());
        if let Some(text) = &plan.text {
            return Ok(text.clone());
        }
        let mut prompt = original.to_owned();
        let template = match (&plan.words, &self.steps, &plan.prompt) {
            (Some(_), _, Some(template)) if template == ERROR_CONTEXT => Some(ERROR_CONTEXT),
            (Some(_), ..) => Some("clarify"),
            (None, Some(_), _) => Some(STEPS),
            (None, None, template) => template.as_deref(),
        };
        let is_told = self.recovery.failure().is_some() || plan.words.is_some();
        if let Some(template) = template.filter(|_| is_told) {
            let own = self.context();
            let context = PromptContext {
                words: plan.words.clone().unwrap_or_default(),
                attempt: plan.number,
                suggestion: self.steps.clone().unwrap_or(own.suggestion),
                ..own
            };
            prompt = self.prompts.apply(&prompt, template, &context, &limits)?;
        }
        if plan.after_cut_off {
            let context = PromptContext::default();
            let said = self.prompts.message(CUT_OFF, &context, &limits)?;
            prompt = format!("{}\n\n{prompt}", said.trim_end());
        }
        Ok(self.with_refusals(prompt))
    }

    fn context(&self) -> PromptContext {
        self.recovery.failure().map(context).unwrap_or_default()
    }
}

/// The beginning of a task, by which an agent that has it in its conversation knows it again.
fn beginning(task: &str) -> String {
    const LONGEST: usize = 600;
    let task = task.trim();
    match task.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &task[..at]),
        None => task.to_owned(),
    }
}

/// The prompt that a command line names, as far as it can be had.
pub(super) fn original(
    invocation: &Invocation<'_>,
    spec: &SessionSpec,
    input: Option<&str>,
) -> Option<String> {
    match invocation.prompt() {
        Prompt::Text(text) => Some(text),
        Prompt::Stdin => input.map(str::to_owned),
        Prompt::File(path) => prompt_in(Path::new(&spec.cwd), Path::new(&path)),
        Prompt::Elsewhere => None,
    }
}

/// Reads the prompt from the file that a command line names, seen from a folder.
fn prompt_in(cwd: &Path, path: &Path) -> Option<String> {
    let bytes = match path.strip_prefix(cwd).unwrap_or(path) {
        below if below.is_relative() => {
            // The agent may have put a link there since, to what it cannot read itself.
            DirHandle::open(cwd)
                .ok()?
                .read_within(below, LONGEST_PROMPT)
        }
        path => read_named(path, LONGEST_PROMPT),
    };
    String::from_utf8(bytes.ok()?).ok()
}

/// An id for a conversation, in the form that agents take: a UUID of version 4.
pub(super) fn conversation(draws: &mut dyn FnMut() -> Draw) -> String {
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

fn context(failed: &AttemptFailed) -> PromptContext {
    let failure = Failure {
        stdout: Some(failed.excerpt.stdout.as_str().into()),
        stderr: Some(failed.excerpt.stderr.as_str().into()),
        validation_errors: failed.validation_errors.clone(),
        ..Failure::new(Layer::Agent)
    };
    PromptContext {
        summary: failed.excerpt.stdout.clone(),
        ..PromptContext::read(&failure, &failed.diagnosis)
    }
}

#[cfg(test)]
mod tests {
    use unstuck_core::decision::Dice;

    use super::*;

    #[test]
    fn a_conversation_has_an_id_that_agents_take() {
        let mut dice = Dice::seeded(3);
        let id = conversation(&mut || dice.roll());
        let parts: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&id[14..15], "4");
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
    }
}

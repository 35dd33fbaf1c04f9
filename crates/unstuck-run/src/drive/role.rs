//! The call of a role: built anew for each attempt, with what was decided to be changed.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::path::PathBuf;

use unstuck_core::agent::{Call, CallSession, PromptWay};
use unstuck_core::decision::{Capabilities, Capability};
use unstuck_core::event::SessionSpec;
use unstuck_core::recovery::AttemptPlan;

use super::command::{self, Changer, Line, Since, conversation};
use super::engine::Engine;
use super::error::RunError;
use super::log::Log;
use super::role_work::RoleCall;
use super::steps::steps;
use crate::blobs::Blobs;

impl Engine<'_> {
    /// What can be changed about what a session runs.
    pub(super) fn capabilities(&self, spec: &SessionSpec) -> Capabilities {
        match self.role {
            Some(role) => role
                .call
                .agent
                .call_capabilities(&role.call.call())
                // They are told to the agent.
                .with(Capability::Steps),
            None => {
                let agent = self.agent_of(&spec.command, spec.agent.as_deref());
                command::capabilities(agent, &spec.command)
            }
        }
    }

    /// The command line of a role's attempt.
    pub(super) fn role_line(
        &mut self,
        role: &RoleCall,
        log: &Log<'_, '_>,
        plan: &AttemptPlan,
        since: Since,
    ) -> Result<Line, RunError> {
        if let Some(fault) = &role.fault {
            return Err(fault.clone().into());
        }
        let recovery = log.recovery();
        let steps = recovery.failure().and_then(|failed| {
            let playbook = self.knowledge.playbook();
            steps(playbook, recovery.spec(), log.options(), failed, plan)
        });
        let changer = Changer {
            agent: Some(&role.agent),
            recovery,
            plan,
            prompts: self.knowledge.prompts(),
            steps,
            since,
            refused: log.refused(),
        };
        let prompt = with_limit(
            changer.prompt(&role.prompt)?,
            plan.output_limit,
            role.max_output,
        );
        let message = changer.message(&role.prompt)?;
        let told = match &plan.resume {
            Some(_) => &message,
            None => &prompt,
        };
        self.show_prompt(log, plan.number, told);
        let file = self.prompt_file(role, log, plan.number, told)?;
        let file = file.map(|path| path.display().to_string());
        let takes_id = role.agent.takes_new_session(&role.command);
        let given = (plan.resume.is_none() && takes_id).then(|| conversation(self.draws));
        let session = match &plan.resume {
            Some(id) => CallSession::Resume {
                id,
                message: &message,
            },
            None => CallSession::New {
                id: given.as_deref(),
            },
        };
        let built = role.agent.build(&Call {
            prompt: &prompt,
            prompt_file: file.as_deref(),
            model: plan.model.as_deref().or(role.model.as_deref()),
            session,
            ..role.call()
        })?;
        Ok(Line {
            command: built.command,
            // Many agents wait for the end of a standard input that they do not need.
            stdin: Some(built.stdin.map(ended).unwrap_or_default()),
            // Whether one that goes on is still there, only the agent can tell.
            session: built.session.filter(|_| plan.resume.is_none()),
        })
    }

    /// Shows in the project what the agent is told.
    fn show_prompt(&self, log: &Log<'_, '_>, number: u32, told: &str) {
        let shown = self.redactor.redact(told);
        if let Some(part) = log.as_part() {
            log.journal().keep(part, "prompt.md", &shown);
        }
        if let Some(files) = log.journal().attempt_files(log.as_part(), number) {
            files.write("prompt.md", &shown);
        }
    }

    /// Writes the prompt to a file for an agent that reads it from one.
    fn prompt_file(
        &self,
        role: &RoleCall,
        log: &Log<'_, '_>,
        number: u32,
        told: &str,
    ) -> Result<Option<PathBuf>, RunError> {
        if role.agent.prompt_way(&role.command) != PromptWay::File {
            return Ok(None);
        }
        let session = log.recovery().spec().session.as_str();
        let path = self
            .state
            .join("prompts")
            .join(format!("{session}-{number}.md"));
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, told));
        written.map_err(|source| RunError::File {
            path: path.clone(),
            source,
        })?;
        Ok(Some(path))
    }

    /// Keeps the output of a role by its content, and shows it in the project.
    pub(super) fn keep_output(&self, log: &Log<'_, '_>) -> Result<String, RunError> {
        let text = self.redactor.redact(log.answer()).into_owned();
        if let Some(part) = log.as_part() {
            log.journal().keep(part, "output.md", &text);
        }
        Ok(Blobs::at(self.state).put(text.as_bytes())?)
    }
}

/// A text whose last line is at its end, as programs that read by lines need it.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A prompt that also says how long the answer may be, where it was found to be too long.
fn with_limit(prompt: String, factor: Option<f64>, most: Option<u64>) -> String {
    let Some(factor) = factor else {
        return prompt;
    };
    let said = match most {
        Some(most) => {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of characters, told to an agent"
            )]
            let most = (most as f64 * factor) as u64;
            format!("Keep your answer below {most} characters.")
        }
        None => "Keep your answer as short as the task allows.".to_owned(),
    };
    format!("{prompt}\n\n{said}\n")
}

//! The command line of a role: built for each attempt, with the planned changes.

use std::path::PathBuf;

use unstuck_core::agent::{AgentCommandInputs, ConversationStart, PromptChannel};
use unstuck_core::decision::{RetryCapabilities, RetryChangeCapability};
use unstuck_core::event::SessionSpec;
use unstuck_core::session_state::NextAttempt;
use unstuck_files::DirHandle;

use super::attempt_command::{
    self, AttemptCommandBuilder, AttemptCommandLine, ContinuationContext, new_conversation_id,
};
use super::error::RunError;
use super::role_execution_settings::RoleAgentCommand;
use super::session_event_log::SessionEventLog;
use super::session_runner::SessionRunner;
use super::steps_for_agent::strategy_steps;
use crate::blobs::BlobStore;

impl SessionRunner<'_> {
    /// Returns the changes that are possible for a session.
    pub(super) fn capabilities(&self, spec: &SessionSpec) -> RetryCapabilities {
        match self.role {
            Some(role) => role
                .invocation
                .agent
                .call_capabilities(&role.invocation.agent_call())
                // The steps are part of the agent's prompt.
                .with(RetryChangeCapability::Steps),
            None => {
                let agent = self.agent_of(&spec.command, spec.agent.as_deref());
                attempt_command::capabilities(agent, &spec.command)
            }
        }
    }

    /// Returns the command line of a role's attempt.
    pub(super) fn role_command_line(
        &mut self,
        role: &RoleAgentCommand,
        log: &SessionEventLog<'_, '_>,
        plan: &NextAttempt,
        since: ContinuationContext,
    ) -> Result<AttemptCommandLine, RunError> {
        if let Some(fault) = &role.prompt_fault {
            return Err(fault.clone().into());
        }
        let recovery = log.recovery();
        let steps = recovery.last_failure().and_then(|failed| {
            let playbook = self.knowledge.playbook();
            strategy_steps(playbook, recovery.spec(), log.options(), failed, plan)
        });
        let changer = AttemptCommandBuilder {
            agent: Some(&role.agent),
            recovery,
            plan,
            prompts: self.knowledge.prompts(),
            steps,
            since,
            refused_proposals: log.refused_proposals(),
        };
        let prompt = with_length_limit(
            changer.modified_prompt(&role.prompt)?,
            plan.output_limit_factor,
            role.max_output,
        );
        let message = changer.continuation_message(&role.prompt)?;
        let told = match &plan.resume {
            Some(_) => &message,
            None => &prompt,
        };
        self.write_prompt_copy(log, plan.number, told);
        let file = self.write_prompt_file(role, log, plan.number, told)?;
        let file = file.map(|path| path.display().to_string());
        let takes_id = role.agent.supports_new_session_id(&role.command);
        let given =
            (plan.resume.is_none() && takes_id).then(|| new_conversation_id(self.random_draws));
        let session = match &plan.resume {
            Some(id) => ConversationStart::Resume {
                id,
                message: &message,
            },
            None => ConversationStart::New {
                id: given.as_deref(),
            },
        };
        let built = role.agent.build_command(&AgentCommandInputs {
            prompt: &prompt,
            prompt_file: file.as_deref(),
            model: plan.model.as_deref().or(role.model.as_deref()),
            session,
            ..role.agent_call()
        })?;
        Ok(AttemptCommandLine {
            command: built.command,
            // Many agents wait for the end of a standard input that they do not need.
            stdin: Some(built.stdin.map(with_final_newline).unwrap_or_default()),
            // Only the agent knows if a resumed conversation still exists.
            session: built.session.filter(|_| plan.resume.is_none()),
        })
    }

    /// Writes a copy of the prompt to the project.
    fn write_prompt_copy(&self, log: &SessionEventLog<'_, '_>, number: u32, told: &str) {
        let shown = self.redactor.redact(told);
        if let Some(part) = log.role_instance() {
            log.journal().write_role_file(part, "prompt.md", &shown);
        }
        if let Some(files) = log.journal().attempt_files(log.role_instance(), number) {
            files.write("prompt.md", &shown);
        }
    }

    /// Writes the prompt to a file for an agent that reads it from one.
    fn write_prompt_file(
        &self,
        role: &RoleAgentCommand,
        log: &SessionEventLog<'_, '_>,
        number: u32,
        told: &str,
    ) -> Result<Option<PathBuf>, RunError> {
        if role.agent.prompt_channel(&role.command) != PromptChannel::File {
            return Ok(None);
        }
        let session = log.recovery().spec().session.as_str();
        let name = PathBuf::from(format!("{session}-{number}.md"));
        let folder = self.state.join("prompts");
        let path = folder.join(&name);
        let written = DirHandle::open_private(&folder)
            .and_then(|folder| folder.replace(&name, told.as_bytes()));
        written.map_err(|error| RunError::File {
            path: path.clone(),
            source: error.into(),
        })?;
        Ok(Some(path))
    }

    /// Stores the output of a role by its content, with a copy in the project.
    pub(super) fn store_role_output(
        &self,
        log: &SessionEventLog<'_, '_>,
    ) -> Result<String, RunError> {
        let text = self.redactor.redact(log.answer()).into_owned();
        if let Some(part) = log.role_instance() {
            log.journal().write_role_file(part, "output.md", &text);
        }
        Ok(BlobStore::in_state_dir(self.state).put(text.as_bytes())?)
    }
}

/// Ends a text with a newline, as programs that read lines need it.
fn with_final_newline(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Adds the length limit of the answer to a prompt, after an answer was too long.
fn with_length_limit(prompt: String, factor: Option<f64>, most: Option<u64>) -> String {
    let Some(factor) = factor else {
        return prompt;
    };
    let said = match most {
        Some(most) => {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a character limit stated in a prompt"
            )]
            let most = (most as f64 * factor) as u64;
            format!("Keep your answer below {most} characters.")
        }
        None => "Keep your answer as short as the task allows.".to_owned(),
    };
    format!("{prompt}\n\n{said}\n")
}

//! `unstuck agents show`: prints the commands that unstuck runs for an agent.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use unstuck_core::agent::{AgentCommandInputs, BuiltCommand, ConversationStart, PromptChannel};
use unstuck_core::decision::RetryChangeCapability;
use unstuck_core::recovery_plan::shell_quote;

use super::{AgentEntry, AgentInstallation, AgentVersion};
use crate::output::{BOLD, DIM, Output};
use crate::sanitized_text::{command_line, one_line};

const PROMPT: &str = "Fix the failing tests";
const MESSAGE: &str = "Continue";
const PROMPT_FILE: &str = "PROMPT.md";
/// Example command for the generic agent.
const COMMAND: [&str; 5] = ["my-agent", "--model", "{model}", "--session", "{session}"];

impl AgentEntry<'_> {
    /// Returns the commands for the first call and for continuing a conversation.
    fn command_lines(&self) -> Result<Vec<(&'static str, BuiltCommand)>> {
        let own = COMMAND.map(str::to_owned);
        let tools = ["TOOL".to_owned()];
        let (any, takes_tools) = (self.installed.is_none(), self.agent.supports_tools(&[]));
        let command: &[String] = if any { &own } else { &[] };
        let can = |capability| any || self.has_capability(capability);
        let first = AgentCommandInputs {
            command,
            prompt: PROMPT,
            prompt_file: Some(PROMPT_FILE),
            model: can(RetryChangeCapability::Model).then_some("MODEL"),
            session: ConversationStart::New {
                id: Some("SESSION"),
            },
            tools: if takes_tools { &tools } else { &[] },
            args: &[],
        };
        let mut calls = vec![("called", self.agent.build_command(&first)?)];
        if can(RetryChangeCapability::Resume) {
            let session = ConversationStart::Resume {
                id: "SESSION",
                message: MESSAGE,
            };
            calls.push((
                "resumed",
                self.agent
                    .build_command(&AgentCommandInputs { session, ..first })?,
            ));
        }
        Ok(calls)
    }

    /// Renders the agent and its commands as JSON.
    pub(super) fn as_json(&self) -> Result<Value> {
        let mut shown = self.summary();
        for (name, built) in self.command_lines()? {
            shown[name] = json!({
                "command": built.command,
                "stdin": built.stdin,
            });
        }
        Ok(shown)
    }

    pub(super) fn show(&self, out: &mut Output) -> Result<()> {
        let (id, title) = (self.agent.id(), self.agent.title());
        writeln!(
            out,
            "{BOLD}{id}{BOLD:#}  {title}, {}",
            self.installation_text()
        )?;
        for (name, built) in self.command_lines()? {
            let heading = match name {
                "called" => "Command for a new conversation",
                _ => "Command to continue a conversation",
            };
            writeln!(out, "\n{BOLD}{heading}{BOLD:#}\n  {}", shell_line(&built))?;
        }
        writeln!(out)?;
        for note in self.notes() {
            writeln!(out, "{DIM}{note}{DIM:#}")?;
        }
        Ok(())
    }

    fn installation_text(&self) -> String {
        let place = self.path_text().unwrap_or_default();
        match &self.installed {
            None => "set by the role's `command`".to_owned(),
            Some(AgentInstallation::Missing) => "not installed".to_owned(),
            Some(AgentInstallation::Found {
                version: AgentVersion::Known(version),
                ..
            }) => format!("{version}, {place}"),
            Some(AgentInstallation::Found { .. }) => place,
        }
    }

    /// Returns notes that complement the commands.
    fn notes(&self) -> Vec<String> {
        let capitals = "UPPERCASE words are settings of a role; unset ones are omitted.";
        let mut notes = vec![capitals.to_owned()];
        if self.agent.prompt_channel(&[]) == PromptChannel::File {
            notes.push(format!("{PROMPT_FILE} contains the prompt."));
        }
        if let Some(instead) = &self.agent.file().call.instead_of_tools {
            notes.push(format!(
                "It has no option for allowed tools: omit `allowed_tools`, {instead}."
            ));
        }
        notes
    }
}

/// Renders a command as a shell line.
fn shell_line(built: &BuiltCommand) -> String {
    let command = command_line(&built.command, usize::MAX);
    match &built.stdin {
        Some(stdin) => format!("echo {} | {command}", one_line(&shell_quote(stdin), 80)),
        None => command,
    }
}

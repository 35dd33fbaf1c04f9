//! `unstuck agents show`: what unstuck runs when a role calls an agent.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use unstuck_core::action::shell_quote;
use unstuck_core::agent::{Built, Call, CallSession, PromptWay};
use unstuck_core::decision::Capability;

use super::{Found, Installed, Version};
use crate::output::{BOLD, DIM, Output};
use crate::show_text::{command_line, one_line};

const PROMPT: &str = "Fix the failing tests";
const MESSAGE: &str = "Go on";
const PROMPT_FILE: &str = "PROMPT.md";
/// The command of an agent that is any program.
const COMMAND: [&str; 5] = ["my-agent", "--model", "{model}", "--session", "{session}"];

impl Found<'_> {
    /// How it is called for the first time, and how it goes on.
    fn calls(&self) -> Result<Vec<(&'static str, Built)>> {
        let own = COMMAND.map(str::to_owned);
        let tools = ["TOOL".to_owned()];
        let (any, takes_tools) = (self.installed.is_none(), self.agent.takes_tools(&[]));
        let command: &[String] = if any { &own } else { &[] };
        let can = |capability| any || self.can(capability);
        let first = Call {
            command,
            prompt: PROMPT,
            prompt_file: Some(PROMPT_FILE),
            model: can(Capability::Model).then_some("MODEL"),
            session: CallSession::New {
                id: Some("SESSION"),
            },
            tools: if takes_tools { &tools } else { &[] },
            args: &[],
        };
        let mut calls = vec![("called", self.agent.build(&first)?)];
        if can(Capability::Resume) {
            let session = CallSession::Resume {
                id: "SESSION",
                message: MESSAGE,
            };
            calls.push(("resumed", self.agent.build(&Call { session, ..first })?));
        }
        Ok(calls)
    }

    /// The agent with its calls, for machines.
    pub(super) fn shown(&self) -> Result<Value> {
        let mut shown = self.summary();
        for (name, built) in self.calls()? {
            shown[name] = json!({
                "command": built.command,
                "stdin": built.stdin,
            });
        }
        Ok(shown)
    }

    pub(super) fn show(&self, out: &mut Output) -> Result<()> {
        let (id, title) = (self.agent.id(), self.agent.title());
        writeln!(out, "{BOLD}{id}{BOLD:#}  {title}, {}", self.standing())?;
        for (name, built) in self.calls()? {
            let heading = match name {
                "called" => "How a role calls it",
                _ => "How it goes on with a conversation",
            };
            writeln!(out, "\n{BOLD}{heading}{BOLD:#}\n  {}", typed(&built))?;
        }
        writeln!(out)?;
        for note in self.notes() {
            writeln!(out, "{DIM}{note}{DIM:#}")?;
        }
        Ok(())
    }

    fn standing(&self) -> String {
        let place = self.place().unwrap_or_default();
        match &self.installed {
            None => "which the role names".to_owned(),
            Some(Installed::No) => "not installed".to_owned(),
            Some(Installed::At {
                version: Version::Told(version),
                ..
            }) => format!("{version}, {place}"),
            Some(Installed::At { .. }) => place,
        }
    }

    /// What the calls do not say by themselves.
    fn notes(&self) -> Vec<String> {
        let capitals =
            "Words in capitals stand for what a role says; what it does not say is left out.";
        let mut notes = vec![capitals.to_owned()];
        if self.agent.prompt_way(&[]) == PromptWay::File {
            notes.push(format!("{PROMPT_FILE} is a file with the prompt."));
        }
        if let Some(instead) = &self.agent.file().call.instead_of_tools {
            notes.push(format!(
                "It has no option for allowed tools: leave them out, {instead}."
            ));
        }
        notes
    }
}

/// A call as it could be typed into a shell.
fn typed(built: &Built) -> String {
    let command = command_line(&built.command, usize::MAX);
    match &built.stdin {
        Some(stdin) => format!("echo {} | {command}", one_line(&shell_quote(stdin), 80)),
        None => command,
    }
}

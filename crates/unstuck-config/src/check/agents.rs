//! Checks of user-defined agents and of the agent each role runs.

use unstuck_core::agent::{
    Agent, AgentFile, Agents, BuildError, CommandInputs, CommandPart, CommandSpec,
};

use super::{ConfigChecker, unknown_name};
use crate::section::Role;

impl ConfigChecker<'_> {
    /// Checks the user-defined agents.
    pub(super) fn check_agents(&mut self) {
        for (key, file) in &self.config.root.agents {
            for problem in file.check() {
                self.report(&format!("agents.{key}.{}", problem.at), problem.message);
            }
            if let Some(like) = &file.base_agent {
                self.check_base_agent(key, file, like);
            }
        }
    }

    fn check_base_agent(&mut self, key: &str, file: &AgentFile, like: &str) {
        let own = &self.config.root.agents;
        let path = format!("agents.{key}.like");
        let is_built_in = Agents::built_in().get(like).is_some();
        let is_own = own
            .values()
            .any(|other| other.id == like && other.id != file.id);
        if !is_built_in && !is_own {
            let known = self.config.agents().iter().map(Agent::id);
            let text = unknown_name("agent", like, known.filter(|id| *id != file.id));
            self.report(&path, text);
        } else if is_cyclic(file, own.values()) {
            let text = format!(
                "`{}` is like itself, by way of `{like}`; one of them must say all",
                file.id
            );
            self.report(&path, text);
        }
    }

    /// Checks that a role's agent exists and accepts its command, model and tools.
    pub(super) fn check_call(&mut self, role: &Role) {
        let path = |key: &str| format!("role.{}.{key}", role.id);
        let agents = self.config.agents();
        let Some(agent) = agents.get(&role.agent) else {
            let known = agents.iter().map(Agent::id);
            let known = known.filter(|id| *id != "command").chain(["command"]);
            let text = unknown_name("agent", &role.agent, known);
            self.report(&path("agent"), text);
            return;
        };
        if self.config.is_unreadable(&path("command")) {
            return;
        }
        let slips = command_problems(role);
        if !slips.is_empty() {
            for text in slips {
                self.report(&path("command"), text);
            }
            return;
        }
        let prompt = self.config.prompt_of(role).ok().flatten();
        let mut call = CommandInputs {
            command: &role.command,
            prompt: prompt.as_deref().unwrap_or_default(),
            prompt_file: Some("-"),
            model: role.model.as_deref(),
            tools: &role.allowed_tools,
            args: &role.args,
            ..CommandInputs::default()
        };
        while let Err(cannot) = agent.build_command(&call) {
            let (key, text) = build_error_text(&cannot, role);
            self.report(&path(key), text);
            match cannot {
                BuildError::NoModel { .. } => call.model = None,
                BuildError::NoTools { .. } => call.tools = &[],
                _ => break,
            }
        }
    }
}

/// Returns the errors in a role's own command.
fn command_problems(role: &Role) -> Vec<String> {
    if role.command.first().is_none_or(String::is_empty) {
        return Vec::new();
    }
    let words = role.command.iter().cloned().map(CommandPart::Word);
    let file = AgentFile {
        call: CommandSpec {
            command: words.collect(),
            ..CommandSpec::default()
        },
        ..AgentFile::default()
    };
    let problems = file.with_id("role").check();
    problems
        .into_iter()
        .map(|problem| problem.message)
        .collect()
}

/// Returns the key at fault and the advice for a build error.
fn build_error_text(cannot: &BuildError, role: &Role) -> (&'static str, String) {
    let text = cannot.to_string();
    match cannot {
        BuildError::NoCommand { agent } => (
            "agent",
            format!(
                "the agent `{agent}` needs a `command`, such as [\"sh\", \"-c\", \"make test\"]"
            ),
        ),
        BuildError::OwnCommand { agent } => (
            "command",
            format!(
                "the agent `{agent}` has a command of its own; `args` adds words to it, agent = \"command\" runs this one"
            ),
        ),
        BuildError::NoModel { .. } if role.command.is_empty() => {
            ("model", format!("{text}; leave `model` out"))
        }
        BuildError::NoModel { .. } => (
            "model",
            format!("{text}; put \"{{model}}\" into `command`, or leave `model` out"),
        ),
        BuildError::NoTools { .. } => ("allowed_tools", text),
        BuildError::TooLong { .. } if role.prompt.is_some() => ("prompt", text),
        BuildError::TooLong { .. } => ("prompt_file", text),
        BuildError::PromptInShell { .. } if !role.command.is_empty() => ("command", text),
        _ => ("agent", text),
    }
}

/// Returns whether an agent's `like` chain is cyclic.
fn is_cyclic<'f>(file: &'f AgentFile, own: impl Iterator<Item = &'f AgentFile> + Clone) -> bool {
    let above = |file: &AgentFile| {
        let like = file.base_agent.clone();
        let mut own = own.clone();
        own.find(|other| Some(&other.id) == like.as_ref() && other.id != file.id)
    };
    let mut seen = vec![file.id.as_str()];
    let mut here = file;
    while let Some(next) = above(here) {
        if seen.contains(&next.id.as_str()) {
            return next.id == file.id;
        }
        seen.push(&next.id);
        here = next;
    }
    false
}

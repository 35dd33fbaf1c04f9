//! Checks of user-defined agents and of the agent each role runs.

use unstuck_core::agent::{
    Agent, AgentCommandInputs, AgentCommandSpec, AgentCommandTemplatePart, AgentDefinition, Agents,
    CommandBuildError,
};

use super::{ConfigChecker, unknown_name};
use crate::section::RoleSection;

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

    fn check_base_agent(&mut self, key: &str, file: &AgentDefinition, like: &str) {
        let own = &self.config.root.agents;
        let path = format!("agents.{key}.base_agent");
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
                "`{}` inherits from itself through `{like}`; remove `base_agent` from one of them",
                file.id
            );
            self.report(&path, text);
        }
    }

    /// Checks that a role's agent exists and accepts its command, model and tools.
    pub(super) fn check_call(&mut self, role: &RoleSection) {
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
        let prompt = self.config.prompt_template(role).ok().flatten();
        let mut call = AgentCommandInputs {
            command: &role.command,
            prompt: prompt.as_deref().unwrap_or_default(),
            prompt_file: Some("-"),
            model: role.model.as_deref(),
            tools: &role.allowed_tools,
            args: &role.args,
            ..AgentCommandInputs::default()
        };
        while let Err(cannot) = agent.build_command(&call) {
            let (key, text) = build_error_text(&cannot, role);
            self.report(&path(key), text);
            match cannot {
                CommandBuildError::NoModel { .. } => call.model = None,
                CommandBuildError::NoTools { .. } => call.tools = &[],
                _ => break,
            }
        }
    }
}

/// Returns the errors in a role's own command.
fn command_problems(role: &RoleSection) -> Vec<String> {
    if role.command.first().is_none_or(String::is_empty) {
        return Vec::new();
    }
    let words = role
        .command
        .iter()
        .cloned()
        .map(AgentCommandTemplatePart::Word);
    let file = AgentDefinition {
        call: AgentCommandSpec {
            command: words.collect(),
            ..AgentCommandSpec::default()
        },
        ..AgentDefinition::default()
    };
    let problems = file.with_id("role").check();
    problems
        .into_iter()
        .map(|problem| problem.message)
        .collect()
}

/// Returns the key at fault and the advice for a build error.
fn build_error_text(cannot: &CommandBuildError, role: &RoleSection) -> (&'static str, String) {
    let text = cannot.to_string();
    match cannot {
        CommandBuildError::NoCommand { agent } => (
            "agent",
            format!("agent `{agent}` needs a `command`, such as [\"sh\", \"-c\", \"make test\"]"),
        ),
        CommandBuildError::OwnCommand { agent } => (
            "command",
            format!(
                "agent `{agent}` already has a command; add arguments with `args`, or set agent = \"command\" to run this one"
            ),
        ),
        CommandBuildError::NoModel { .. } if role.command.is_empty() => {
            ("model", format!("{text}; remove `model`"))
        }
        CommandBuildError::NoModel { .. } => (
            "model",
            format!("{text}; add \"{{model}}\" to `command`, or remove `model`"),
        ),
        CommandBuildError::NoTools { .. } => ("allowed_tools", text),
        CommandBuildError::TooLong { .. } if role.prompt.is_some() => ("prompt", text),
        CommandBuildError::TooLong { .. } => ("prompt_file", text),
        CommandBuildError::PromptInShell { .. } if !role.command.is_empty() => ("command", text),
        _ => ("agent", text),
    }
}

/// Returns whether an agent's `base_agent` chain is cyclic.
fn is_cyclic<'f>(
    file: &'f AgentDefinition,
    own: impl Iterator<Item = &'f AgentDefinition> + Clone,
) -> bool {
    let above = |file: &AgentDefinition| {
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

//! Agents as data: how each agent is run, how its command line is parsed and changed, and how its output is read
//! (`data/agents/<agent>.toml`).
//!
//! No agent is named in code. A new one is a new file, and users may add their own.
//!
//! ```
//! use unstuck_core::agent::{Agents, CommandLineRewrite, ConversationChoice, ParsedAgentCommandLine};
//!
//! let command = ["codex", "exec", "--json", "fix the bug"].map(str::to_owned);
//! let agent = Agents::built_in().recognize(&command).ok_or("no agent")?;
//! let invocation = ParsedAgentCommandLine::parse(agent, &command);
//! let changed = invocation.with_changes(&CommandLineRewrite {
//!     session: Some(ConversationChoice::Resume { id: "01a1".to_owned(), message: "go on".to_owned() }),
//!     ..CommandLineRewrite::default()
//! })?;
//! assert_eq!(changed.command, ["codex", "exec", "--json", "resume", "01a1", "go on"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent_file;
mod agent_file_validation;
mod argv;
mod client_retries;
mod command_builder;
mod command_parser;
mod command_rewrite;
mod command_template;
mod conversation_id;
mod gateway_redirect;
mod json_path;
mod output;
mod program_behind_launcher;
mod stream_events;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use agent_file::{
    AgentCommandSpec, AgentCommandTemplatePart, AgentDefinition, AgentEventMapping, AgentFlagsSpec,
    AgentOutputSpec, BaseUrlSpec, ConversationSpec, CustomApiAddressSign, GatewayWaitSettings,
    HeadlessRunSpec, OutputValueSource, PositionalPromptWords, PromptArgumentSpec, ValueSelection,
};
pub use agent_file_validation::AgentFileProblem;
pub use client_retries::{BrokenStreamSignal, ClientRetryBehavior};
pub use command_builder::{
    AgentCommandInputs, BuiltCommand, CommandBuildError, ConversationStart, PromptChannel,
};
pub use command_parser::{CommandLineConversation, ParsedAgentCommandLine, PromptSource};
pub use command_rewrite::{
    CommandLineRewrite, CommandRewriteError, ConversationChoice, RewrittenCommandLine,
};
pub use conversation_id::is_conversation_id;
pub use gateway_redirect::CommandThroughGateway;
pub use output::ParsedAgentOutput;
pub use stream_events::{AgentEvent, ToolCall, ToolOutcome};

use crate::knowledge::{self, KnowledgeError};

/// The embedded files.
const FILES: [(&str, &str); 9] = [
    (
        "agents/aider.toml",
        include_str!("../../data/agents/aider.toml"),
    ),
    (
        "agents/claude.toml",
        include_str!("../../data/agents/claude.toml"),
    ),
    (
        "agents/codex.toml",
        include_str!("../../data/agents/codex.toml"),
    ),
    (
        "agents/command.toml",
        include_str!("../../data/agents/command.toml"),
    ),
    (
        "agents/copilot.toml",
        include_str!("../../data/agents/copilot.toml"),
    ),
    (
        "agents/gemini.toml",
        include_str!("../../data/agents/gemini.toml"),
    ),
    (
        "agents/goose.toml",
        include_str!("../../data/agents/goose.toml"),
    ),
    (
        "agents/opencode.toml",
        include_str!("../../data/agents/opencode.toml"),
    ),
    (
        "agents/qwen.toml",
        include_str!("../../data/agents/qwen.toml"),
    ),
];
/// The line that separates the definition from the samples, which only tests read.
const SAMPLES_SEPARATOR: &str = "\n# --- samples ---\n";

/// The known agents.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Agents {
    agents: BTreeMap<String, Agent>,
}

/// An agent, as defined by its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    file: AgentDefinition,
}

impl Agents {
    /// Returns the agents embedded in the program.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Agents> = LazyLock::new(|| match Agents::embedded() {
            Ok(agents) => agents,
            // The embedded files are tested; only a build that skipped its tests can get here.
            Err(error) => unreachable!("embedded agents: {error}"),
        });
        &BUILT_IN
    }

    fn embedded() -> Result<Self, KnowledgeError> {
        let mut agents = Self::default();
        for (place, text) in FILES {
            let known = text
                .split_once(SAMPLES_SEPARATOR)
                .map_or(text, |(known, _)| known);
            agents = agents.with(knowledge::parse_file(place, known)?);
        }
        Ok(agents)
    }

    /// Returns these agents and one more, which replaces one of the same id. Its base agent must be among these.
    #[must_use]
    pub fn with(mut self, file: AgentDefinition) -> Self {
        let base = file.base_agent.as_deref().and_then(|id| self.get(id));
        let file = match base {
            Some(base) => file.with_defaults_from(&base.file),
            None => file,
        };
        let file = self.with_default_names(file);
        self.agents.insert(file.id.clone(), Agent { file });
        self
    }

    /// Gives an agent without names that of its section and that of its program, unless another one has it.
    fn with_default_names(&self, mut file: AgentDefinition) -> AgentDefinition {
        let is_any_program = file.call.command.is_empty();
        if !file.names.is_empty() || is_any_program {
            return file;
        }
        let program = file.call.program().map(program_behind_launcher::base_name);
        let program = program.filter(|word| {
            file.base_agent.is_none() && !program_behind_launcher::is_launcher(word)
        });
        let names = [Some(file.id.as_str()), program].into_iter().flatten();
        let is_free = |name: &&str| {
            let other = self.by_program_name(name);
            other.is_none_or(|other| other.id() == file.id)
        };
        let mut names: Vec<String> = names.filter(is_free).map(str::to_owned).collect();
        names.dedup();
        file.names = names;
        file
    }

    /// Returns the agent with this id.
    pub fn get(&self, id: &str) -> Option<&Agent> {
        self.agents.get(id)
    }

    /// Returns all agents, ordered by id.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// Returns the agent that a command starts, possibly through `npx`, `env` and the like.
    pub fn recognize(&self, command: &[String]) -> Option<&Agent> {
        let at = program_behind_launcher::find_program(command, |word| {
            self.by_program_name(word).is_some()
        })?;
        self.by_program_name(&command[at])
    }

    /// Returns the agent with this `User-Agent`.
    pub fn by_user_agent(&self, user_agent: &str) -> Option<&Agent> {
        let names = user_agent.split_whitespace();
        let mut names = names.filter_map(|word| word.split('/').next());
        names.find_map(|name| {
            let is_its = |client: &String| match client.strip_suffix('*') {
                Some(begin) => (name.get(..begin.len()))
                    .is_some_and(|its_begin| its_begin.eq_ignore_ascii_case(begin)),
                None => client.eq_ignore_ascii_case(name),
            };
            let mut agents = self.agents.values();
            agents.find(|agent| agent.file.clients.iter().any(is_its))
        })
    }

    fn by_program_name(&self, word: &str) -> Option<&Agent> {
        self.agents
            .values()
            .find(|agent| agent.matches_program(word))
    }
}

impl Agent {
    /// The id.
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// The display name.
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// Returns the retry behavior of its own client in this version; none if not measured.
    pub fn client_retries(&self, version: Option<&str>) -> Option<&ClientRetryBehavior> {
        let mut known = self.file.retries.iter();
        known.find(|one| one.applies_to(version))
    }

    /// The whole definition.
    pub fn file(&self) -> &AgentDefinition {
        &self.file
    }

    /// Returns true if a word of a command line is its program or package.
    fn matches_program(&self, word: &str) -> bool {
        let is = |names: &[String], word: &str| names.iter().any(|name| name == word);
        is(&self.file.names, program_behind_launcher::base_name(word))
            || is(
                &self.file.packages,
                program_behind_launcher::without_version(word),
            )
    }
}

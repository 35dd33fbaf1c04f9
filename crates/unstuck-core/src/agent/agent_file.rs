//! The format of an agent file (`data/agents/<agent>.toml`): how an agent is recognized, run and read.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::client_retries::ClientRetryBehavior;

/// The definition of an agent.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentDefinition {
    /// The id, in lower case.
    pub id: String,
    /// The display name.
    pub title: String,
    /// The agent whose settings apply where this one has none.
    #[serde(alias = "like")]
    pub base_agent: Option<String>,
    /// Names of its program, without directory and extension, by which `exec` recognizes it.
    pub names: Vec<String>,
    /// Packages by which `npx`, `uvx` and similar launchers start it.
    pub packages: Vec<String>,
    /// Names in its `User-Agent`, without versions. A trailing `*` matches any rest.
    pub clients: Vec<String>,
    /// The command to log in.
    pub login: String,
    /// True if it retries although an API told it not to.
    #[serde(alias = "insists")]
    pub ignores_no_retry: bool,
    /// How long it waits silently for a response to begin. Keep-alives are sent only after that time: an error after
    /// them is an error of the stream, which the agent would take for a broken stream and retry. Zero by default.
    #[serde(
        alias = "silence",
        deserialize_with = "crate::duration::text::deserialize"
    )]
    pub silent_wait: Duration,
    /// The retry behavior of its own client; the first entry that matches its version applies.
    pub retries: Vec<ClientRetryBehavior>,
    /// The command line of the agent in a role.
    pub call: AgentCommandSpec,
    /// The conditions for a headless run.
    pub run: HeadlessRunSpec,
    /// The position of its prompt.
    pub prompt: PromptArgumentSpec,
    /// Its flags.
    pub flags: AgentFlagsSpec,
    /// The options for naming and resuming its conversations.
    pub session: ConversationSpec,
    /// The sources of values in its output.
    pub output: AgentOutputSpec,
}

impl AgentDefinition {
    /// Returns the same with this id, such as the name of its section in a configuration.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        self.id = id.to_owned();
        if self.title.is_empty() {
            self.title = id.to_owned();
        }
        self
    }

    /// Returns the same with the settings of another agent where this one has none. Names are not inherited: a command
    /// line belongs to one agent.
    pub(super) fn with_defaults_from(self, base: &Self) -> Self {
        let call = AgentCommandSpec {
            command: own_or_inherited(self.call.command, &base.call.command),
            instead_of_tools: own_or_inherited(
                self.call.instead_of_tools,
                &base.call.instead_of_tools,
            ),
            base_url: own_or_inherited(self.call.base_url, &base.call.base_url),
            gateway: own_or_inherited(self.call.gateway, &base.call.gateway),
            version: own_or_inherited(self.call.version, &base.call.version),
            program_directories: own_or_inherited(
                self.call.program_directories,
                &base.call.program_directories,
            ),
        };
        Self {
            call,
            retries: own_or_inherited(self.retries, &base.retries),
            login: own_or_inherited(self.login, &base.login),
            run: own_or_inherited(self.run, &base.run),
            prompt: own_or_inherited(self.prompt, &base.prompt),
            flags: own_or_inherited(self.flags, &base.flags),
            session: own_or_inherited(self.session, &base.session),
            output: own_or_inherited(self.output, &base.output),
            ..self
        }
    }
}

/// Returns the own value, or the inherited one if it is the default.
fn own_or_inherited<T: Clone + Default + PartialEq>(own: T, other: &T) -> T {
    if own == T::default() {
        other.clone()
    } else {
        own
    }
}

/// The command line with which a role runs an agent, and the settings for its API and a gateway.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentCommandSpec {
    /// The command line with its [placeholders](super::AgentCommandInputs); empty if the role provides it.
    pub command: Vec<AgentCommandTemplatePart>,
    /// The alternative if it has no option for allowed tools.
    pub instead_of_tools: Option<String>,
    /// How the base URL of its API is set.
    pub base_url: BaseUrlSpec,
    /// Further settings when a gateway is between the agent and its API.
    pub gateway: GatewayWaitSettings,
    /// Arguments that make its program print its version.
    pub version: Vec<String>,
    /// Directories besides PATH where its program is often installed; `~` is the home directory.
    #[serde(alias = "folders")]
    pub program_directories: Vec<String>,
}

impl AgentCommandSpec {
    /// Returns its program, if the role does not provide it.
    pub fn program(&self) -> Option<&str> {
        match self.command.first()? {
            AgentCommandTemplatePart::Word(word) => Some(word),
            AgentCommandTemplatePart::Group(words) => words.first().map(String::as_str),
        }
    }
}

/// A part of a command line template.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum AgentCommandTemplatePart {
    /// A word; omitted together with a directly preceding flag if its placeholder has no value.
    Word(String),
    /// Words that belong together; all are omitted if a placeholder among them has no value.
    Group(Vec<String>),
}

/// How the base URL of an agent's API is set. `{url}` is the URL of the gateway: its APIs are at `{url}/anthropic`,
/// `{url}/openai/v1` and `{url}/gemini`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BaseUrlSpec {
    /// Environment variables, with `{url}` in their values.
    pub env: BTreeMap<String, String>,
    /// Arguments with `{url}`.
    pub args: Vec<String>,
    /// Variables of which the user must have set one: without it the agent uses another login, which would be
    /// overridden.
    #[serde(alias = "needs")]
    pub required_env: Vec<String>,
    /// Signs that the user has configured an API address that would be overridden.
    pub unless: Vec<CustomApiAddressSign>,
}

/// A sign that the user has configured an API address: a text in a file, a variable or the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CustomApiAddressSign {
    /// The file to search; `~` is the home directory, and a first component such as `$NAME` the value of that variable.
    pub file: Option<String>,
    /// The environment variable to check. Without a file or variable, the command line is searched.
    pub env: Option<String>,
    /// The text to find; empty for a variable means any value except a negative one such as 0.
    #[serde(alias = "holds")]
    pub contains: String,
}

/// Settings that make an agent wait while the gateway holds its calls. The agent's own retries stay enabled: the
/// gateway returns a retryable error only where it wants a retry. Settings of the user have precedence.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayWaitSettings {
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Variables that name a file, and the contents of that file.
    pub files: BTreeMap<String, String>,
    /// Arguments.
    pub args: Vec<String>,
}

/// The conditions for a headless run.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadlessRunSpec {
    /// Subcommands for headless runs; if there are any, one is required.
    #[serde(alias = "words")]
    pub subcommands: Vec<String>,
    /// Flags for headless runs; if there are any, one is required.
    pub flags: Vec<String>,
    /// Subcommands, in the position of the prompt, that do something else.
    #[serde(alias = "others")]
    pub other_subcommands: Vec<String>,
    /// Flags of interactive or other uses.
    #[serde(alias = "never")]
    pub excluded_flags: Vec<String>,
    /// If set, a prompt without a flag is a headless run too.
    pub by_prompt: bool,
}

/// The position of the prompt in an agent's command line: a flag, a file, a word or stdin.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PromptArgumentSpec {
    /// Flags whose value is the prompt; the first one is used to add a prompt.
    pub flags: Vec<String>,
    /// Flags whose value is a file with the prompt.
    pub files: Vec<String>,
    /// Words without a flag that are the prompt.
    pub positional: PositionalPromptWords,
    /// If set, the prompt is read from stdin when no word contains it.
    pub stdin: bool,
    /// The word or file name that means stdin.
    pub stdin_word: Option<String>,
}

/// Words without a flag that are the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PositionalPromptWords {
    /// None.
    #[default]
    None,
    /// The first one.
    One,
    /// All of them, joined by spaces.
    Many,
}

/// The flags of an agent, grouped by the values they take. A flag that is not listed may or may not take a value.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentFlagsSpec {
    /// Flags for the model; the first one is used to add a model.
    pub model: Vec<String>,
    /// Flags for the output format, with a value unless they are switches.
    pub format: Vec<String>,
    /// Flags with one value.
    pub value: Vec<String>,
    /// Flags that take all words up to the next flag.
    pub many: Vec<String>,
    /// Flags that take the next word unless it is a flag.
    pub optional: Vec<String>,
    /// Flags without a value.
    pub switch: Vec<String>,
}

/// The options for naming and resuming an agent's conversations.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConversationSpec {
    /// Flags whose value is the conversation to continue.
    pub id: Vec<String>,
    /// Flags whose value is the id of a new or existing conversation.
    pub new: Vec<String>,
    /// Switches that continue the last conversation, or the one named elsewhere.
    pub latest: Vec<String>,
    /// Switches that continue a copy of the conversation.
    pub fork: Vec<String>,
    /// The subcommand that continues the conversation named by the next word.
    #[serde(alias = "word")]
    pub subcommand: Option<String>,
    /// Arguments that continue the conversation `{id}`; empty if that is not supported.
    pub resume: Vec<String>,
    /// Phrases in its output when the conversation does not exist.
    pub missing: Vec<String>,
    /// The request header that contains the conversation id, in lower case.
    pub header: Option<String>,
    /// The transcript files of a conversation `{id}`, with `*` for any part of a name; a continuation appends to them.
    pub transcript: Vec<String>,
}

/// The sources of values in an agent's output; the first source of each list that finds something applies.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentOutputSpec {
    /// The final answer.
    pub text: Vec<OutputValueSource>,
    /// The conversation.
    pub session: Vec<OutputValueSource>,
    /// The model that answered.
    pub model: Vec<OutputValueSource>,
    /// The cost in USD.
    pub cost_usd: Vec<OutputValueSource>,
    /// Uncached input tokens.
    pub input_tokens: Vec<OutputValueSource>,
    /// Output tokens.
    pub output_tokens: Vec<OutputValueSource>,
    /// Input tokens read from the provider's cache.
    pub cached_tokens: Vec<OutputValueSource>,
    /// The number of model calls.
    pub turns: Vec<OutputValueSource>,
    /// The length of the conversation in tokens, after its latest request.
    pub context_tokens: Vec<OutputValueSource>,
    /// The tool calls and messages; all sources apply.
    pub action: Vec<AgentEventMapping>,
    /// JSON objects of which a finished run has one; without it, an answer in JSON is incomplete.
    pub end: Vec<BTreeMap<String, String>>,
    /// If set, failures appear only in the answer text, while the exit code and all else report success.
    pub failures_in_text: bool,
    /// If set, the exit code may be 0 although the last API call failed, broke off or was empty: the record of that
    /// call decides, if there is one.
    pub last_call_decides: bool,
}

impl AgentOutputSpec {
    /// Returns all sources, with the names of their lists.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&'static str, &OutputValueSource)> {
        let lists = [
            ("text", &self.text),
            ("session", &self.session),
            ("model", &self.model),
            ("cost_usd", &self.cost_usd),
            ("input_tokens", &self.input_tokens),
            ("output_tokens", &self.output_tokens),
            ("cached_tokens", &self.cached_tokens),
            ("turns", &self.turns),
            ("context_tokens", &self.context_tokens),
        ];
        lists
            .into_iter()
            .flat_map(|(name, list)| list.iter().map(move |source| (name, source)))
    }
}

/// A rule that finds a value in an agent's output: a path in its JSON, or a regex.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputValueSource {
    /// Selects JSON objects with these values at these paths; `*` matches any value.
    pub when: BTreeMap<String, String>,
    /// Paths such as `/usage/output_tokens`; `*` is every element, `-1` the last one, `#` every key. The values are
    /// combined.
    pub at: Vec<String>,
    /// Paths to numbers that are subtracted.
    #[serde(alias = "less")]
    pub subtract: Vec<String>,
    /// A regex whose first group is the value, for output that is not JSON.
    pub matches: Option<String>,
    /// Selects JSON objects with the same value at this path as the last one: the parts of one message.
    #[serde(alias = "same")]
    pub same_as_last: Option<String>,
    /// The selection among several values.
    #[serde(alias = "take")]
    pub selection: ValueSelection,
}

/// The selection among several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSelection {
    /// The last one.
    #[default]
    Last,
    /// The first one.
    First,
    /// All: texts are joined, numbers added.
    All,
}

/// A mapping from JSON objects of an agent's output stream to tool calls, results or both.
///
/// Conditions are paths with the required value: `*` is any value but null, `!0` any but null and 0.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentEventMapping {
    /// Selects JSON objects for which all of these hold.
    pub when: BTreeMap<String, String>,
    /// The path to the parts that each contain one event; none if the whole object is one.
    pub each: Option<String>,
    /// Selects parts for which all of these hold.
    pub only: BTreeMap<String, String>,
    /// The path, within a part, to the id that links a call and its result.
    pub id: Option<String>,
    /// The name of the tool, if the stream does not contain it.
    pub title: Option<String>,
    /// The path to the name of the tool.
    pub name: Option<String>,
    /// The paths to the arguments.
    pub arguments: Vec<String>,
    /// The paths to the result.
    pub result: Vec<String>,
    /// The call failed if all conditions of one of these hold.
    pub failed: Vec<BTreeMap<String, String>>,
}

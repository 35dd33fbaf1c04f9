//! What an agent's file may say.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::client_retries::ClientRetries;

/// All that is known about one agent.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentFile {
    /// Its id, in small letters.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// The agent that says all that this one does not.
    #[serde(rename = "like")]
    pub base_agent: Option<String>,
    /// Names of its program, without folder and extension; by them `exec` recognises it.
    pub names: Vec<String>,
    /// Packages by which `npx`, `uvx` and the like start it.
    pub packages: Vec<String>,
    /// What it calls itself to the APIs that it asks: the names in its `User-Agent`, without versions. A `*` at the end
    /// stands for any rest.
    pub clients: Vec<String>,
    /// What a person runs to sign in.
    pub login: String,
    /// Whether it asks an API again that has told it not to.
    #[serde(rename = "insists")]
    pub ignores_no_retry: bool,
    /// How long it waits in silence for an answer to begin. Until then it is sent no signs of life: an error after them
    /// is one of the stream, which it would take for a broken one and ask again. Nothing by default.
    #[serde(deserialize_with = "crate::duration::text::deserialize")]
    #[serde(rename = "silence")]
    pub silent_wait: Duration,
    /// How its own client goes about a call that fails; the first that holds for its version counts.
    pub retries: Vec<ClientRetries>,
    /// How it is called for a role.
    pub call: CommandSpec,
    /// By what a command line runs it without a person.
    pub run: HeadlessSpec,
    /// Where its prompt stands.
    pub prompt: PromptSpec,
    /// Its flags.
    pub flags: FlagSpec,
    /// How its conversations are named and resumed.
    pub session: ConversationSpec,
    /// Where its output tells what.
    pub output: OutputSpec,
}

impl AgentFile {
    /// The same under an id, such as the name of its section in a configuration.
    #[must_use]
    pub fn with_id(mut self, id: &str) -> Self {
        self.id = id.to_owned();
        if self.title.is_empty() {
            self.title = id.to_owned();
        }
        self
    }

    /// The same with what another one says where this one says nothing. Names are its own: a command line belongs to
    /// one agent.
    pub(super) fn with_defaults_from(self, base: &Self) -> Self {
        let call = CommandSpec {
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

/// What is said, else what another one says.
fn own_or_inherited<T: Clone + Default + PartialEq>(own: T, other: &T) -> T {
    if own == T::default() {
        other.clone()
    } else {
        own
    }
}

/// How an agent is called for a role.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandSpec {
    /// The command line with its [placeholders](super::Call); empty if the role says it.
    pub command: Vec<CommandPart>,
    /// What a person can do where it has no option for allowed tools.
    pub instead_of_tools: Option<String>,
    /// How its API's base URL is set.
    pub base_url: BaseUrlSpec,
    /// What is set besides where a gateway stands between it and its API.
    pub gateway: GatewayEnvSpec,
    /// What is added to its program to be told its version.
    pub version: Vec<String>,
    /// Folders, besides those of PATH, where its program is often found; `~` is the home folder.
    #[serde(rename = "folders")]
    pub program_directories: Vec<String>,
}

impl CommandSpec {
    /// Its program, if the role does not say it.
    pub fn program(&self) -> Option<&str> {
        match self.command.first()? {
            CommandPart::Word(word) => Some(word),
            CommandPart::Group(words) => words.first().map(String::as_str),
        }
    }
}

/// A part of a command line that is built.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum CommandPart {
    /// A word; one whose placeholder has no value is left out, and so is the flag directly before it.
    Word(String),
    /// Words that are there together: all are left out if a placeholder among them has no value.
    Group(Vec<String>),
}

/// How the base URL of an agent's API is set. `{url}` stands for the gateway: its APIs are at `{url}/anthropic`,
/// `{url}/openai/v1` and `{url}/gemini`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BaseUrlSpec {
    /// Variables of the environment, with `{url}` in their values.
    pub env: BTreeMap<String, String>,
    /// Arguments, with `{url}` in them.
    pub args: Vec<String>,
    /// Variables of which one must be set by the user: without it the agent uses another login, which we would undo.
    #[serde(rename = "needs")]
    pub required_env: Vec<String>,
    /// What shows that the user has told the agent where its API is in a way that we would undo.
    pub unless: Vec<ConfigIndicator>,
}

/// What shows something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigIndicator {
    /// The file that is looked into; `~` is the home folder, and a first part such as `$NAME` what that variable says.
    pub file: Option<String>,
    /// The variable of the environment that is looked at. Where neither a file nor a variable is named, it is the command
    /// line.
    pub env: Option<String>,
    /// The text that it holds; of a variable nothing means that it is set to anything but a no, such as 0.
    pub holds: String,
}

/// What makes an agent wait for a gateway that holds its calls. Its own retries stay: the gateway answers with an error that is
/// worth another try only where it wants one. What the user has set stays.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayEnvSpec {
    /// Variables of the environment.
    pub env: BTreeMap<String, String>,
    /// Variables that name a file, and what is in it.
    pub files: BTreeMap<String, String>,
    /// Arguments.
    pub args: Vec<String>,
}

/// How an agent is run without a person.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HeadlessSpec {
    /// Subcommands that do; if there are any, one of them is needed.
    pub words: Vec<String>,
    /// Flags that do; if there are any, one of them is needed.
    pub flags: Vec<String>,
    /// Subcommands, in the place of the prompt, that do something else.
    pub others: Vec<String>,
    /// Flags with which it does something else, or with a person.
    pub never: Vec<String>,
    /// Whether a prompt without a flag does, too.
    pub by_prompt: bool,
}

/// Where an agent's prompt stands.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PromptSpec {
    /// Flags whose value is the prompt; the first one is used where one has to be added.
    pub flags: Vec<String>,
    /// Flags whose value is a file with the prompt.
    pub files: Vec<String>,
    /// Words without a flag.
    pub positional: PositionalPrompt,
    /// Whether it is read from the standard input where no word is it.
    pub stdin: bool,
    /// The word, or file, that stands for the standard input.
    pub stdin_word: Option<String>,
}

/// Whether words without a flag are the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PositionalPrompt {
    /// They are something else.
    #[default]
    None,
    /// The first one is.
    One,
    /// All of them are, with blanks between them.
    Many,
}

/// The flags of an agent, by what they take. One that is in none of the lists may or may not take a value.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlagSpec {
    /// Name the model; the first one is used where one has to be added.
    pub model: Vec<String>,
    /// Choose the output format, by a value unless they are switches.
    pub format: Vec<String>,
    /// Take one value.
    pub value: Vec<String>,
    /// Take all words up to the next flag.
    pub many: Vec<String>,
    /// Take the next word unless it is a flag.
    pub optional: Vec<String>,
    /// Take nothing.
    pub switch: Vec<String>,
}

/// How an agent's conversations are named and resumed.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConversationSpec {
    /// Flags whose value is the conversation to go on with.
    pub id: Vec<String>,
    /// Flags whose value names a conversation, be it new or not.
    pub new: Vec<String>,
    /// Switches that go on with a conversation: the last one, or the one that is named otherwise.
    pub latest: Vec<String>,
    /// Switches that go on with a copy of it.
    pub fork: Vec<String>,
    /// The subcommand that goes on with the conversation which the next word names.
    pub word: Option<String>,
    /// What is added to go on with the conversation `{id}`; empty if that is not possible.
    pub resume: Vec<String>,
    /// What it says, among other words, when there is no such conversation.
    pub missing: Vec<String>,
    /// The header of its requests that names the conversation, in lower case.
    pub header: Option<String>,
    /// The files that it writes a conversation `{id}` to, with `*` for any part of a name: whoever continues it writes there.
    pub transcript: Vec<String>,
}

/// Where an agent's output tells what; of each list the first source that finds something counts.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSpec {
    /// The final answer.
    pub text: Vec<OutputSource>,
    /// The conversation.
    pub session: Vec<OutputSource>,
    /// The model that answered.
    pub model: Vec<OutputSource>,
    /// What it cost, in USD.
    pub cost_usd: Vec<OutputSource>,
    /// Tokens that were sent anew.
    pub input_tokens: Vec<OutputSource>,
    /// Tokens that the model wrote.
    pub output_tokens: Vec<OutputSource>,
    /// Tokens that the provider had kept.
    pub cached_tokens: Vec<OutputSource>,
    /// How often the model was asked.
    pub turns: Vec<OutputSource>,
    /// How long the conversation is, in tokens, after its newest request.
    pub context_tokens: Vec<OutputSource>,
    /// What it does; all of these count.
    pub action: Vec<AgentEventSource>,
    /// JSON objects of which one is there once a run has come to its end; without it, an answer in JSON is a fragment.
    pub end: Vec<BTreeMap<String, String>>,
    /// Whether only its answer tells of failures, while its exit code and all else say that it went well.
    pub failures_in_text: bool,
    /// Whether its exit code may be 0 although its last API call failed, broke off or came back empty: then the record
    /// of that call decides, where there is one.
    pub last_call_decides: bool,
}

impl OutputSpec {
    /// All sources, with the names of their lists.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&'static str, &OutputSource)> {
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

/// One place in the output.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSource {
    /// Only JSON objects that have these values at these paths; `*` is any value.
    pub when: BTreeMap<String, String>,
    /// Paths such as `/usage/output_tokens`; `*` is every part, `-1` the last one, `#` every key. What they hold is put together.
    pub at: Vec<String>,
    /// Paths to numbers that are taken off.
    #[serde(rename = "less")]
    pub subtract: Vec<String>,
    /// An expression whose first group is the value, for output that is not JSON.
    pub matches: Option<String>,
    /// Only JSON objects that have the same value at this path as the last one has: the parts of one message.
    #[serde(rename = "same")]
    pub same_as_last: Option<String>,
    /// Which of several are taken.
    #[serde(rename = "take")]
    pub selection: ValueSelection,
}

/// Which of several values are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSelection {
    /// The last one.
    #[default]
    Last,
    /// The first one.
    First,
    /// All: texts are joined, numbers added up.
    All,
}

/// Where a stream of JSON objects tells of a call, of what came of it, or of both.
///
/// Conditions are paths with the value that must be there: `*` is any value but null, `!0` any but null and 0.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentEventSource {
    /// Only JSON objects for which all of these hold.
    pub when: BTreeMap<String, String>,
    /// The path to the parts that each tell of one; none if the whole object does.
    pub each: Option<String>,
    /// Only parts for which all of these hold.
    pub only: BTreeMap<String, String>,
    /// The path, in a part, to the id by which a call and its result belong together.
    pub id: Option<String>,
    /// What is called, where the stream does not say it.
    pub title: Option<String>,
    /// The path to the name of what is called.
    pub name: Option<String>,
    /// The paths to what it is called with.
    pub arguments: Vec<String>,
    /// The paths to what came of it.
    pub result: Vec<String>,
    /// It failed if all conditions of one of these hold.
    pub failed: Vec<BTreeMap<String, String>>,
}

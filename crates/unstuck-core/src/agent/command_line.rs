//! Calls of an agent for a role: the command line is built, not read, so that a retry is another call.

use super::Agent;
use super::command_template::{CommandTemplate, Placeholder};
use super::launcher::base_name;
use crate::decision::{Capabilities, Capability};

/// The longest word of a command line that Linux takes, without the byte that ends it.
const MAX_ARG_LEN: usize = 128 * 1024 - 1;

/// Programs that run the word after `-c`.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"];

/// What a role asks of an agent.
///
/// Its values take the place of placeholders in the agent's command line, or in the role's own:
///
/// | placeholder | value |
/// |---|---|
/// | `{prompt}` | what the agent is told: the prompt, or the message of a conversation that goes on |
/// | `{prompt_file}` | the file that holds it |
/// | `{model}` | the model |
/// | `{session}` | the id of the conversation, be it new or not |
/// | `{new}` | the id of a new conversation |
/// | `{resume}` | the id of a conversation that goes on |
/// | `{tools}` | the allowed tools: as a word of its own one word each, inside a word with commas between them |
/// | `{args}` | further arguments; where it is absent they come last |
///
/// `{?resume}` and the like stand for nothing, and only say that there must be a value. Where neither `{prompt}` nor
/// `{prompt_file}` is, the agent is told on its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandInputs<'a> {
    /// The role's own command line, for an agent that has none.
    pub command: &'a [String],
    /// The prompt.
    pub prompt: &'a str,
    /// A file that holds what the agent is told; what is in it is the caller's business.
    pub prompt_file: Option<&'a str>,
    /// The model, as the agent spells it.
    pub model: Option<&'a str>,
    /// The conversation.
    pub session: ConversationRef<'a>,
    /// The tools that it may use without being asked, as the agent spells them.
    pub tools: &'a [String],
    /// Further arguments.
    pub args: &'a [String],
}

/// The conversation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationRef<'a> {
    /// A new one.
    New {
        /// The id that it should have; not every agent can be told.
        id: Option<&'a str>,
    },
    /// An earlier one, which goes on with a message instead of the prompt.
    Resume {
        /// Its id; ignored by agents that only know one.
        id: &'a str,
        /// What the agent is told.
        message: &'a str,
    },
}

impl Default for ConversationRef<'_> {
    fn default() -> Self {
        Self::New { id: None }
    }
}

/// A call as it is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltCommand {
    /// The command line.
    pub command: Vec<String>,
    /// What stands on the standard input; without it there must be nothing, since many agents wait for its end.
    pub stdin: Option<String>,
    /// The id of the conversation, if the agent was told one.
    pub session: Option<String>,
}

/// How an agent is told what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptChannel {
    /// On its standard input.
    Stdin,
    /// As a word of the command line.
    Argument,
    /// In a file.
    File,
}

/// Why a call cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Nobody says which program is run.
    #[error(
        "the agent `{agent}` has no command of its own: give the role one, such as command = [\"my-agent\", \"--model\", \"{{model}}\"]"
    )]
    NoCommand {
        /// The agent.
        agent: String,
    },
    /// The role and the agent both say which program is run.
    #[error(
        "the agent `{agent}` has its own command: leave `command` out of the role, and put what you add into `args`"
    )]
    OwnCommand {
        /// The agent.
        agent: String,
    },
    /// The agent has no option for the model.
    #[error("the model of `{agent}` cannot be chosen: its command has no {{model}}")]
    NoModel {
        /// The agent.
        agent: String,
    },
    /// The agent cannot go on with a conversation.
    #[error(
        "`{agent}` cannot go on with a conversation: its command has no {{resume}} or {{session}}"
    )]
    NoResume {
        /// The agent.
        agent: String,
    },
    /// The conversation to go on with is not known.
    #[error("`{agent}` can only go on with a conversation whose id is known")]
    NoSession {
        /// The agent.
        agent: String,
    },
    /// The agent has no option for allowed tools.
    #[error("`{agent}` has no option for allowed tools: leave `allowed_tools` out{instead}")]
    NoTools {
        /// The agent.
        agent: String,
        /// What can be done instead, after a comma; empty if nothing is known.
        instead: String,
    },
    /// The agent reads its prompt from a file, and none was written.
    #[error("`{agent}` reads its prompt from a file, and there is none")]
    NoPromptFile {
        /// The agent.
        agent: String,
    },
    /// No system takes a word of that length.
    #[error(
        "the prompt has {bytes} bytes, and a word of a command line may have 131071: let the command read its standard input or {{prompt_file}}"
    )]
    TooLong {
        /// The length of the prompt.
        bytes: usize,
    },
    /// A shell would run what the prompt says.
    #[error(
        "{{prompt}} in `{word}` would be run by the shell: let the command read its standard input or {{prompt_file}}"
    )]
    PromptInShell {
        /// The word.
        word: String,
    },
}

impl Agent {
    /// The command line, and the standard input, by which a role calls the agent.
    ///
    /// ```
    /// use unstuck_core::agent::{Agents, Call, ConversationRef};
    ///
    /// let codex = Agents::built_in().get("codex").ok_or("unknown")?;
    /// let call = Call { prompt: "Fix the tests", model: Some("gpt-5"), ..Call::default() };
    /// let built = codex.build(&call)?;
    /// assert_eq!(built.command, ["codex", "exec", "--json", "-m", "gpt-5", "-"]);
    /// assert_eq!(built.stdin.as_deref(), Some("Fix the tests"));
    ///
    /// let session = ConversationRef::Resume { id: "01a1", message: "Go on" };
    /// let again = codex.build(&Call { session, ..call })?;
    /// assert_eq!(again.command, ["codex", "exec", "--json", "-m", "gpt-5", "resume", "01a1", "-"]);
    /// assert_eq!(again.stdin.as_deref(), Some("Go on"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_command(&self, call: &CommandInputs<'_>) -> Result<BuiltCommand, BuildError> {
        let template = self.command_template(call.command);
        self.check_inputs(&template, call)?;
        let mut command = template.fill(|placeholder| call.placeholder_value(placeholder));
        if command.first().is_none_or(String::is_empty) {
            let agent = self.file.id.clone();
            return Err(BuildError::NoCommand { agent });
        }
        if !template.inserts(Placeholder::Args) {
            command.extend(call.args.iter().cloned());
        }
        let is_told = !call.session_id().is_empty() && template.uses_session_id(call.session);
        Ok(BuiltCommand {
            command,
            stdin: (template.prompt_channel() == PromptChannel::Stdin)
                .then(|| call.prompt_text().to_owned()),
            session: is_told.then(|| call.session_id().to_owned()),
        })
    }

    /// What another attempt of the call can change. What else the caller can do (repairs) is not told here.
    pub fn call_capabilities(&self, call: &CommandInputs<'_>) -> Capabilities {
        let template = self.command_template(call.command);
        // The length of an agent's output is a matter of what it is asked for.
        let mut can = Capabilities::NONE
            .with(Capability::Prompt)
            .with(Capability::OutputLimit)
            .with(Capability::Timeout)
            .with(Capability::Fresh);
        if template.inserts(Placeholder::Model) {
            can = can.with(Capability::Model);
        }
        if template.can_resume() {
            can = can.with(Capability::Resume);
        }
        can
    }

    /// How the agent is told what to do, by its own command line or by the role's.
    pub fn prompt_channel(&self, command: &[String]) -> PromptChannel {
        self.command_template(command).prompt_channel()
    }

    /// Whether the call can name the tools that it may use.
    pub fn supports_tools(&self, command: &[String]) -> bool {
        self.command_template(command).inserts(Placeholder::Tools)
    }

    /// Whether a new conversation can be given an id.
    pub fn supports_new_session_id(&self, command: &[String]) -> bool {
        let template = self.command_template(command);
        template.uses_session_id(ConversationRef::New { id: None })
    }

    /// The variables of the environment, and the arguments, by which it asks its API at a gateway.
    pub fn base_url_settings(&self, url: &str) -> (Vec<(String, String)>, Vec<String>) {
        let given = &self.file.call.base_url;
        let put = |text: &String| text.replace("{url}", url);
        let env = given
            .env
            .iter()
            .map(|(name, value)| (name.clone(), put(value)));
        (env.collect(), given.args.iter().map(put).collect())
    }

    fn command_template<'t>(&'t self, command: &'t [String]) -> CommandTemplate<'t> {
        match command {
            [] => CommandTemplate::from_parts(&self.file.call.command),
            words => CommandTemplate::from_words(words),
        }
    }

    fn check_inputs(
        &self,
        template: &CommandTemplate<'_>,
        call: &CommandInputs<'_>,
    ) -> Result<(), BuildError> {
        let agent = || self.file.id.clone();
        if template.is_empty() {
            return Err(BuildError::NoCommand { agent: agent() });
        }
        if !call.command.is_empty() && !self.file.call.command.is_empty() {
            return Err(BuildError::OwnCommand { agent: agent() });
        }
        if call.placeholder_value(Placeholder::Model).is_some()
            && !template.inserts(Placeholder::Model)
        {
            return Err(BuildError::NoModel { agent: agent() });
        }
        if !call.tools.is_empty() && !template.inserts(Placeholder::Tools) {
            let instead = self.file.call.instead_of_tools.as_ref();
            let instead = instead.map(|text| format!(", {text}")).unwrap_or_default();
            return Err(BuildError::NoTools {
                agent: agent(),
                instead,
            });
        }
        if let ConversationRef::Resume { id, .. } = call.session {
            let needs_id = template.uses_session_id(call.session);
            if !template.can_resume() {
                return Err(BuildError::NoResume { agent: agent() });
            } else if needs_id && id.is_empty() {
                return Err(BuildError::NoSession { agent: agent() });
            }
        }
        let is_by_file = template.prompt_channel() == PromptChannel::File;
        if is_by_file && call.prompt_file.is_none() {
            return Err(BuildError::NoPromptFile { agent: agent() });
        }
        if let Some(word) = template.shell_word_with_prompt() {
            return Err(BuildError::PromptInShell {
                word: word.to_owned(),
            });
        }
        let bytes = call.prompt_text().len();
        if template.inserts(Placeholder::Prompt) && bytes > MAX_ARG_LEN {
            Err(BuildError::TooLong { bytes })
        } else {
            Ok(())
        }
    }
}

impl<'a> CommandInputs<'a> {
    /// What the agent is told.
    fn prompt_text(&self) -> &'a str {
        match self.session {
            ConversationRef::New { .. } => self.prompt,
            ConversationRef::Resume { message, .. } => message,
        }
    }

    fn session_id(&self) -> &'a str {
        match self.session {
            ConversationRef::New { id } => id.unwrap_or_default(),
            ConversationRef::Resume { id, .. } => id,
        }
    }

    fn placeholder_value(&self, placeholder: Placeholder) -> Option<Vec<&'a str>> {
        let one = |value: &'a str| (!value.is_empty()).then(|| vec![value]);
        let all = |values: &'a [String]| values.iter().map(String::as_str).collect();
        match placeholder {
            Placeholder::Model => one(self.model?),
            Placeholder::Session => one(self.session_id()),
            Placeholder::New => match self.session {
                ConversationRef::New { id } => one(id?),
                ConversationRef::Resume { .. } => None,
            },
            Placeholder::Resume => match self.session {
                ConversationRef::New { .. } => None,
                ConversationRef::Resume { id, .. } => Some(vec![id]),
            },
            Placeholder::Prompt => Some(vec![self.prompt_text()]),
            Placeholder::PromptFile => one(self.prompt_file?),
            Placeholder::Tools => (!self.tools.is_empty()).then(|| all(self.tools)),
            Placeholder::Args => Some(all(self.args)),
        }
    }
}

impl<'t> CommandTemplate<'t> {
    pub(super) fn prompt_channel(&self) -> PromptChannel {
        if self.inserts(Placeholder::PromptFile) {
            PromptChannel::File
        } else if self.inserts(Placeholder::Prompt) {
            PromptChannel::Argument
        } else {
            PromptChannel::Stdin
        }
    }

    fn can_resume(&self) -> bool {
        self.depends_on(Placeholder::Resume) || self.inserts(Placeholder::Session)
    }

    /// Whether it puts the id of such a conversation somewhere.
    fn uses_session_id(&self, session: ConversationRef<'_>) -> bool {
        let own = match session {
            ConversationRef::New { .. } => Placeholder::New,
            ConversationRef::Resume { .. } => Placeholder::Resume,
        };
        self.inserts(own) || self.inserts(Placeholder::Session)
    }

    /// A word with the prompt in it that a shell would run.
    pub(super) fn shell_word_with_prompt(&self) -> Option<&'t str> {
        let words: Vec<&str> = self.words().collect();
        let is_shell = |word: &&str| SHELLS.contains(&base_name(word));
        let is_script =
            |flag: &str| flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c');
        let script = words.windows(2).enumerate().find(|(at, pair)| {
            is_script(pair[0]) && pair[1].contains("{prompt}") && words[..*at].iter().any(is_shell)
        });
        script.map(|(_, pair)| pair[1])
    }
}

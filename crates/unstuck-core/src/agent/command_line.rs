//! Builds the command line of an agent for a role. It is built, not parsed, so a retry builds another one.

use super::Agent;
use super::command_template::{CommandTemplate, Placeholder};
use super::launcher::base_name;
use crate::decision::{Capabilities, Capability};

/// The longest command-line argument on Linux, without the terminating byte.
const MAX_ARG_LEN: usize = 128 * 1024 - 1;

/// Programs that run the argument of `-c`.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"];

/// The inputs of a role's agent command.
///
/// The values replace placeholders in the agent's command line, or in the role's own:
///
/// | placeholder | value |
/// |---|---|
/// | `{prompt}` | the prompt, or the message that continues a conversation |
/// | `{prompt_file}` | the file that contains it |
/// | `{model}` | the model |
/// | `{session}` | the id of the conversation, new or existing |
/// | `{new}` | the id of a new conversation |
/// | `{resume}` | the id of an existing conversation |
/// | `{tools}` | the allowed tools: one argument each as a word of its own, comma-separated inside a word |
/// | `{args}` | further arguments; appended at the end if absent |
///
/// `{?resume}` and the like insert nothing and only require a value. Without `{prompt}` and `{prompt_file}`, the prompt
/// is passed on stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandInputs<'a> {
    /// The role's own command line, for an agent that has none.
    pub command: &'a [String],
    /// The prompt.
    pub prompt: &'a str,
    /// A file that contains the prompt; the caller writes it.
    pub prompt_file: Option<&'a str>,
    /// The model, as the agent spells it.
    pub model: Option<&'a str>,
    /// The conversation.
    pub session: ConversationRef<'a>,
    /// The tools that it may use without approval, as the agent spells them.
    pub tools: &'a [String],
    /// Further arguments.
    pub args: &'a [String],
}

/// The conversation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationRef<'a> {
    /// A new conversation.
    New {
        /// The requested id; not every agent accepts one.
        id: Option<&'a str>,
    },
    /// An existing conversation, continued with a message instead of the prompt.
    Resume {
        /// The id; ignored by agents with a single conversation.
        id: &'a str,
        /// The message.
        message: &'a str,
    },
}

impl Default for ConversationRef<'_> {
    fn default() -> Self {
        Self::New { id: None }
    }
}

/// A command ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltCommand {
    /// The command line.
    pub command: Vec<String>,
    /// The contents of stdin; without it, stdin must be empty, since many agents wait for its end.
    pub stdin: Option<String>,
    /// The id of the conversation, if one was passed to the agent.
    pub session: Option<String>,
}

/// How an agent receives its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptChannel {
    /// On stdin.
    Stdin,
    /// As an argument.
    Argument,
    /// In a file.
    File,
}

/// An error that prevents building a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No program is configured.
    #[error(
        "the agent `{agent}` has no command of its own: give the role one, such as command = [\"my-agent\", \"--model\", \"{{model}}\"]"
    )]
    NoCommand {
        /// The agent.
        agent: String,
    },
    /// Both the role and the agent define a program.
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
    /// The agent cannot continue a conversation.
    #[error(
        "`{agent}` cannot go on with a conversation: its command has no {{resume}} or {{session}}"
    )]
    NoResume {
        /// The agent.
        agent: String,
    },
    /// The conversation to continue is unknown.
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
        /// The alternative, after a comma; empty if none is known.
        instead: String,
    },
    /// The agent reads its prompt from a file, but none was written.
    #[error("`{agent}` reads its prompt from a file, and there is none")]
    NoPromptFile {
        /// The agent.
        agent: String,
    },
    /// The argument is too long for the operating system.
    #[error(
        "the prompt has {bytes} bytes, and a word of a command line may have 131071: let the command read its standard input or {{prompt_file}}"
    )]
    TooLong {
        /// The length of the prompt.
        bytes: usize,
    },
    /// A shell would execute the prompt.
    #[error(
        "{{prompt}} in `{word}` would be run by the shell: let the command read its standard input or {{prompt_file}}"
    )]
    PromptInShell {
        /// The word.
        word: String,
    },
}

impl Agent {
    /// Builds the command line and stdin with which a role runs the agent.
    ///
    /// ```
    /// use unstuck_core::agent::{Agents, CommandInputs, ConversationRef};
    ///
    /// let codex = Agents::built_in().get("codex").ok_or("unknown")?;
    /// let inputs = CommandInputs { prompt: "Fix the tests", model: Some("gpt-5"), ..CommandInputs::default() };
    /// let built = codex.build_command(&inputs)?;
    /// assert_eq!(built.command, ["codex", "exec", "--json", "-m", "gpt-5", "-"]);
    /// assert_eq!(built.stdin.as_deref(), Some("Fix the tests"));
    ///
    /// let session = ConversationRef::Resume { id: "01a1", message: "Go on" };
    /// let again = codex.build_command(&CommandInputs { session, ..inputs })?;
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

    /// Returns the changes another attempt can make. Other means of the caller (repairs) are not included.
    pub fn call_capabilities(&self, call: &CommandInputs<'_>) -> Capabilities {
        let template = self.command_template(call.command);
        // The output length is controlled by the prompt.
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

    /// Returns how the agent receives its prompt, by its own command line or the role's.
    pub fn prompt_channel(&self, command: &[String]) -> PromptChannel {
        self.command_template(command).prompt_channel()
    }

    /// Returns true if the command line can contain the allowed tools.
    pub fn supports_tools(&self, command: &[String]) -> bool {
        self.command_template(command).inserts(Placeholder::Tools)
    }

    /// Returns true if a new conversation can be given an id.
    pub fn supports_new_session_id(&self, command: &[String]) -> bool {
        let template = self.command_template(command);
        template.uses_session_id(ConversationRef::New { id: None })
    }

    /// Returns the environment variables and arguments that set the base URL of the agent's API.
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
    /// Returns the prompt or message.
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

    /// Returns true if it inserts the id of such a conversation.
    fn uses_session_id(&self, session: ConversationRef<'_>) -> bool {
        let own = match session {
            ConversationRef::New { .. } => Placeholder::New,
            ConversationRef::Resume { .. } => Placeholder::Resume,
        };
        self.inserts(own) || self.inserts(Placeholder::Session)
    }

    /// Returns an argument with the prompt that a shell would execute.
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

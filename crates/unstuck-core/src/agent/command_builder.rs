//! Builds the command line of an agent for a role. It is built, not parsed, so a retry builds another one.

use super::Agent;
use super::command_template::{CommandTemplate, Placeholder};
use super::program_behind_launcher::base_name;
use crate::decision::{RetryCapabilities, RetryChangeCapability};

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
pub struct AgentCommandInputs<'a> {
    /// The role's own command line, for an agent that has none.
    pub command: &'a [String],
    /// The prompt.
    pub prompt: &'a str,
    /// A file that contains the prompt; the caller writes it.
    pub prompt_file: Option<&'a str>,
    /// The model, as the agent spells it.
    pub model: Option<&'a str>,
    /// The conversation.
    pub session: ConversationStart<'a>,
    /// The tools that it may use without approval, as the agent spells them.
    pub tools: &'a [String],
    /// Further arguments.
    pub args: &'a [String],
}

/// The conversation in which an agent starts: a new one, or a resumed one with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationStart<'a> {
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

impl Default for ConversationStart<'_> {
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
pub enum CommandBuildError {
    /// No program is configured.
    #[error(
        "agent `{agent}` has no command; set one in the role, such as command = [\"my-agent\", \"--model\", \"{{model}}\"]"
    )]
    NoCommand {
        /// The agent.
        agent: String,
    },
    /// Both the role and the agent define a program.
    #[error(
        "agent `{agent}` already has a command; remove `command` from the role and add arguments with `args`"
    )]
    OwnCommand {
        /// The agent.
        agent: String,
    },
    /// The agent has no option for the model.
    #[error("cannot set the model of `{agent}`: its command has no {{model}}")]
    NoModel {
        /// The agent.
        agent: String,
    },
    /// The agent cannot continue a conversation.
    #[error("`{agent}` cannot resume a conversation: its command has no {{resume}} or {{session}}")]
    NoResume {
        /// The agent.
        agent: String,
    },
    /// The conversation to continue is unknown.
    #[error("`{agent}` cannot resume a conversation without its id")]
    NoSession {
        /// The agent.
        agent: String,
    },
    /// The agent has no option for allowed tools.
    #[error("`{agent}` has no option for allowed tools: omit `allowed_tools`{instead}")]
    NoTools {
        /// The agent.
        agent: String,
        /// The alternative, after a comma; empty if none is known.
        instead: String,
    },
    /// The agent reads its prompt from a file, but none was written.
    #[error("`{agent}` reads its prompt from a file, but none was written")]
    NoPromptFile {
        /// The agent.
        agent: String,
    },
    /// The argument is too long for the operating system.
    #[error(
        "the prompt has {bytes} bytes, but a command-line argument is limited to 131071; pass the prompt on stdin or with {{prompt_file}}"
    )]
    TooLong {
        /// The length of the prompt.
        bytes: usize,
    },
    /// A shell would execute the prompt.
    #[error(
        "the shell would execute {{prompt}} in `{word}`; pass the prompt on stdin or with {{prompt_file}}"
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
    /// use unstuck_core::agent::{Agents, AgentCommandInputs, ConversationStart};
    ///
    /// let codex = Agents::built_in().get("codex").ok_or("unknown")?;
    /// let inputs = AgentCommandInputs { prompt: "Fix the tests", model: Some("gpt-5"), ..AgentCommandInputs::default() };
    /// let built = codex.build_command(&inputs)?;
    /// assert_eq!(built.command, ["codex", "exec", "--json", "-m", "gpt-5", "-"]);
    /// assert_eq!(built.stdin.as_deref(), Some("Fix the tests"));
    ///
    /// let session = ConversationStart::Resume { id: "01a1", message: "Go on" };
    /// let again = codex.build_command(&AgentCommandInputs { session, ..inputs })?;
    /// assert_eq!(again.command, ["codex", "exec", "--json", "-m", "gpt-5", "resume", "01a1", "-"]);
    /// assert_eq!(again.stdin.as_deref(), Some("Go on"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_command(
        &self,
        call: &AgentCommandInputs<'_>,
    ) -> Result<BuiltCommand, CommandBuildError> {
        let template = self.command_template(call.command);
        self.check_inputs(&template, call)?;
        let mut command = template.fill(|placeholder| call.placeholder_value(placeholder));
        if command.first().is_none_or(String::is_empty) {
            let agent = self.file.id.clone();
            return Err(CommandBuildError::NoCommand { agent });
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
    pub fn call_capabilities(&self, call: &AgentCommandInputs<'_>) -> RetryCapabilities {
        let template = self.command_template(call.command);
        // The output length is controlled by the prompt.
        let mut can = RetryCapabilities::NONE
            .with(RetryChangeCapability::Prompt)
            .with(RetryChangeCapability::OutputLimit)
            .with(RetryChangeCapability::Timeout)
            .with(RetryChangeCapability::Fresh);
        if template.inserts(Placeholder::Model) {
            can = can.with(RetryChangeCapability::Model);
        }
        if template.can_resume() {
            can = can.with(RetryChangeCapability::Resume);
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
        template.uses_session_id(ConversationStart::New { id: None })
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
            words => CommandTemplate::from_args(words),
        }
    }

    fn check_inputs(
        &self,
        template: &CommandTemplate<'_>,
        call: &AgentCommandInputs<'_>,
    ) -> Result<(), CommandBuildError> {
        let agent = || self.file.id.clone();
        if template.is_empty() {
            return Err(CommandBuildError::NoCommand { agent: agent() });
        }
        if !call.command.is_empty() && !self.file.call.command.is_empty() {
            return Err(CommandBuildError::OwnCommand { agent: agent() });
        }
        if call.placeholder_value(Placeholder::Model).is_some()
            && !template.inserts(Placeholder::Model)
        {
            return Err(CommandBuildError::NoModel { agent: agent() });
        }
        if !call.tools.is_empty() && !template.inserts(Placeholder::Tools) {
            let instead = self.file.call.instead_of_tools.as_ref();
            let instead = instead.map(|text| format!(", {text}")).unwrap_or_default();
            return Err(CommandBuildError::NoTools {
                agent: agent(),
                instead,
            });
        }
        if let ConversationStart::Resume { id, .. } = call.session {
            let needs_id = template.uses_session_id(call.session);
            if !template.can_resume() {
                return Err(CommandBuildError::NoResume { agent: agent() });
            } else if needs_id && id.is_empty() {
                return Err(CommandBuildError::NoSession { agent: agent() });
            }
        }
        let is_by_file = template.prompt_channel() == PromptChannel::File;
        if is_by_file && call.prompt_file.is_none() {
            return Err(CommandBuildError::NoPromptFile { agent: agent() });
        }
        if let Some(word) = template.shell_word_with_prompt() {
            return Err(CommandBuildError::PromptInShell {
                word: word.to_owned(),
            });
        }
        let bytes = call.prompt_text().len();
        if template.inserts(Placeholder::Prompt) && bytes > MAX_ARG_LEN {
            Err(CommandBuildError::TooLong { bytes })
        } else {
            Ok(())
        }
    }
}

impl<'a> AgentCommandInputs<'a> {
    /// Returns the prompt or message.
    fn prompt_text(&self) -> &'a str {
        match self.session {
            ConversationStart::New { .. } => self.prompt,
            ConversationStart::Resume { message, .. } => message,
        }
    }

    fn session_id(&self) -> &'a str {
        match self.session {
            ConversationStart::New { id } => id.unwrap_or_default(),
            ConversationStart::Resume { id, .. } => id,
        }
    }

    fn placeholder_value(&self, placeholder: Placeholder) -> Option<Vec<&'a str>> {
        let one = |value: &'a str| (!value.is_empty()).then(|| vec![value]);
        let all = |values: &'a [String]| values.iter().map(String::as_str).collect();
        match placeholder {
            Placeholder::Model => one(self.model?),
            Placeholder::Session => one(self.session_id()),
            Placeholder::New => match self.session {
                ConversationStart::New { id } => one(id?),
                ConversationStart::Resume { .. } => None,
            },
            Placeholder::Resume => match self.session {
                ConversationStart::New { .. } => None,
                ConversationStart::Resume { id, .. } => Some(vec![id]),
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
    fn uses_session_id(&self, session: ConversationStart<'_>) -> bool {
        let own = match session {
            ConversationStart::New { .. } => Placeholder::New,
            ConversationStart::Resume { .. } => Placeholder::Resume,
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

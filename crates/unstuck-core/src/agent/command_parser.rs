//! Parses an agent's command line: its prompt, model, output format and conversation.

use super::Agent;
use super::agent_file::PositionalPromptWords;
use super::argv::{ArgSpan, ArgvFlag, ArgvPart, FlagValueCertainty, parse_argv};
use super::program_behind_launcher;
use crate::decision::{RetryCapabilities, RetryChangeCapability};

/// A parsed command line of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedAgentCommandLine<'a> {
    pub(super) agent: &'a Agent,
    pub(super) command: Vec<String>,
    /// Index of its program, if present.
    program: Option<usize>,
    pub(super) parts: Vec<ArgvPart>,
    /// Index at which flags are added: after the program, or after the subcommand that runs it.
    pub(super) start: usize,
    pub(super) prompt_at: PromptPosition,
    /// Indexes of the words of a resume subcommand.
    pub(super) resume_words: Vec<usize>,
    headless: bool,
    model: Option<String>,
    format: Option<String>,
    session: CommandLineConversation,
}

/// The source of the prompt, as far as the command line shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptSource {
    /// This text.
    Text(String),
    /// Stdin.
    Stdin,
    /// This file.
    File(String),
    /// Passed in another way, or not at all.
    Elsewhere,
}

/// The conversation that a command line requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLineConversation {
    /// The id or name, if known.
    pub id: Option<String>,
    /// True if an existing conversation is continued.
    pub resumes: bool,
}

/// The position of the prompt.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PromptPosition {
    Value(ArgSpan),
    Words(Vec<usize>),
    File(ArgvFlag),
    Stdin,
    Nowhere,
}

impl<'a> ParsedAgentCommandLine<'a> {
    /// Parses a command line of an agent.
    pub fn parse(agent: &'a Agent, command: &[String]) -> Self {
        let program =
            program_behind_launcher::find_program(command, |word| agent.matches_program(word));
        let start = program.map_or(command.len(), |at| at + 1);
        let mut invocation = Self {
            agent,
            command: command.to_vec(),
            program,
            parts: parse_argv(&agent.file, command, start),
            start,
            prompt_at: PromptPosition::Nowhere,
            resume_words: Vec::new(),
            headless: false,
            model: None,
            format: None,
            session: CommandLineConversation::default(),
        };
        invocation.interpret();
        invocation
    }

    /// Returns true if it is a headless run. Only headless runs can be changed.
    pub fn is_headless(&self) -> bool {
        self.headless
    }

    /// The agent.
    pub fn agent(&self) -> &'a Agent {
        self.agent
    }

    /// The prompt.
    pub fn prompt(&self) -> PromptSource {
        match &self.prompt_at {
            PromptPosition::Value(place) => {
                PromptSource::Text(place.text(&self.command).to_owned())
            }
            PromptPosition::Words(words) => {
                let words: Vec<&str> = words.iter().map(|at| self.command[*at].as_str()).collect();
                PromptSource::Text(words.join(" "))
            }
            PromptPosition::File(flag) => {
                PromptSource::File(self.flag_value(flag).unwrap_or_default().to_owned())
            }
            PromptPosition::Stdin => PromptSource::Stdin,
            PromptPosition::Nowhere => PromptSource::Elsewhere,
        }
    }

    /// The model, if specified.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The output format: the value of its flag, or the switch.
    pub fn format(&self) -> Option<&str> {
        self.format.as_deref()
    }

    /// The conversation.
    pub fn session(&self) -> &CommandLineConversation {
        &self.session
    }

    /// Returns the same with the conversation id that the agent reported.
    #[must_use]
    pub fn with_reported_session(mut self, id: Option<String>) -> Self {
        self.session.id = id.or(self.session.id);
        self
    }

    /// Returns the possible changes. Other means of the caller (repairs, the time limit) are not included.
    pub fn capabilities(&self) -> RetryCapabilities {
        let mut can = RetryCapabilities::NONE;
        if !self.headless {
            return can;
        }
        if self.prompt_at != PromptPosition::Nowhere {
            can = can
                .with(RetryChangeCapability::Prompt)
                .with(RetryChangeCapability::Steps);
        }
        if !self.agent.file.flags.model.is_empty() {
            can = can.with(RetryChangeCapability::Model);
        }
        let resume = &self.agent.file.session.resume;
        let needs_id = resume.iter().any(|word| word.contains("{id}"));
        let knows = !needs_id || self.session.id.is_some();
        if !resume.is_empty() && knows && self.prompt_at != PromptPosition::Nowhere {
            can = can.with(RetryChangeCapability::Resume);
        }
        can.with(RetryChangeCapability::Fresh)
    }

    /// Returns the command line with further arguments in the right position; none if it does not contain the program.
    pub fn with_args(&self, args: &[String]) -> Option<Vec<String>> {
        self.program?;
        let mut command = self.command.clone();
        command.splice(self.start..self.start, args.iter().cloned());
        Some(command)
    }

    pub(super) fn flags(&self) -> impl Iterator<Item = &ArgvFlag> {
        self.parts.iter().filter_map(|part| match part {
            ArgvPart::Flag(flag) => Some(flag),
            _ => None,
        })
    }

    fn flag_value(&self, flag: &ArgvFlag) -> Option<&str> {
        flag.value.map(|place| place.text(&self.command))
    }

    /// Returns the last of these flags.
    fn last_flag(&self, names: &[String]) -> Option<&ArgvFlag> {
        self.flags().filter(|flag| flag.is_one_of(names)).last()
    }

    /// Returns the value of the last of these flags.
    fn last_value(&self, names: &[String]) -> Option<String> {
        self.last_flag(names)
            .and_then(|flag| self.flag_value(flag))
            .map(str::to_owned)
    }

    fn has_flag(&self, names: &[String]) -> bool {
        self.last_flag(names).is_some()
    }

    fn interpret(&mut self) {
        let file = &self.agent.file;
        let mut words: Vec<(usize, FlagValueCertainty)> = self.words().collect();
        let runs = self.take_run_subcommands(&mut words);
        self.headless = runs && !self.has_flag(&file.run.excluded_flags);
        self.model = self.last_value(&file.flags.model);
        let format = self.last_flag(&file.flags.format);
        self.format = format.map(|flag| self.flag_value(flag).unwrap_or(&flag.name).to_owned());
        let session = &file.session;
        self.session = CommandLineConversation {
            id: self
                .last_value(&session.id)
                .or(self.last_value(&session.new)),
            resumes: self.has_flag(&session.id) || self.has_flag(&session.latest),
        };
        self.take_resume_subcommands(&mut words);
        self.prompt_at = self.find_prompt(&words);
    }

    fn words(&self) -> impl Iterator<Item = (usize, FlagValueCertainty)> + '_ {
        self.parts.iter().filter_map(|part| match part {
            ArgvPart::Word { at, sure } => Some((*at, *sure)),
            _ => None,
        })
    }

    /// Returns true for a headless run; removes the words that request it.
    fn take_run_subcommands(&mut self, words: &mut Vec<(usize, FlagValueCertainty)>) -> bool {
        let run = &self.agent.file.run;
        let is_among = |list: &[String], word: Option<&(usize, FlagValueCertainty)>| {
            word.is_some_and(|(at, _)| list.contains(&self.command[*at]))
        };
        if run.subcommands.is_empty() {
            let is_other = words.first().is_some_and(|(at, _)| *at == self.start);
            let is_other = is_other && is_among(&run.other_subcommands, words.first());
            let by_prompt = run.by_prompt && !words.is_empty();
            return !is_other && (run.flags.is_empty() || self.has_flag(&run.flags) || by_prompt);
        }
        if !is_among(&run.subcommands, words.first()) {
            return false;
        }
        self.start = words.remove(0).0 + 1;
        !run.other_subcommands.iter().any(|other| {
            words
                .first()
                .is_some_and(|(at, _)| self.command[*at] == *other)
        })
    }

    /// Parses the resume subcommand and its conversation.
    fn take_resume_subcommands(&mut self, words: &mut Vec<(usize, FlagValueCertainty)>) {
        let Some(word) = &self.agent.file.session.subcommand else {
            return;
        };
        let is_there = words
            .first()
            .is_some_and(|(at, _)| self.command[*at] == *word);
        if !self.headless || !is_there {
            return;
        }
        self.resume_words.push(words.remove(0).0);
        self.session.resumes = true;
        if !words.is_empty() && !self.has_flag(&self.agent.file.session.latest) {
            let at = words.remove(0).0;
            self.resume_words.push(at);
            self.session.id = Some(self.command[at].clone());
        }
    }

    fn find_prompt(&self, words: &[(usize, FlagValueCertainty)]) -> PromptPosition {
        let prompt = &self.agent.file.prompt;
        let is_stdin = |text: &str| prompt.stdin_word.as_deref() == Some(text);
        if let Some(place) = self.last_flag(&prompt.flags).and_then(|flag| flag.value) {
            return if prompt.stdin && place.text(&self.command).is_empty() {
                PromptPosition::Stdin
            } else {
                PromptPosition::Value(place)
            };
        }
        if let Some(flag) = self.last_flag(&prompt.files) {
            return match self.flag_value(flag) {
                Some(file) if is_stdin(file) => PromptPosition::Stdin,
                _ => PromptPosition::File(flag.clone()),
            };
        }
        let words = self.prompt_words(words);
        match words.first() {
            Some(at) if !is_stdin(&self.command[*at]) => PromptPosition::Words(words),
            None if !prompt.stdin => PromptPosition::Nowhere,
            _ => PromptPosition::Stdin,
        }
    }

    /// Returns the words of the prompt. A word after an unknown flag is assumed to be its value.
    fn prompt_words(&self, words: &[(usize, FlagValueCertainty)]) -> Vec<usize> {
        let of = |wanted: FlagValueCertainty| {
            words
                .iter()
                .filter(move |(_, sure)| *sure == wanted)
                .map(|(at, _)| *at)
        };
        let is_phrase = |at: &usize| self.command[*at].contains(char::is_whitespace);
        let mut found: Vec<usize> = of(FlagValueCertainty::Yes).collect();
        if found.is_empty() {
            found.extend(of(FlagValueCertainty::No).filter(is_phrase));
        }
        match self.agent.file.prompt.positional {
            PositionalPromptWords::None => Vec::new(),
            PositionalPromptWords::One => found.into_iter().take(1).collect(),
            PositionalPromptWords::Many => found,
        }
    }
}

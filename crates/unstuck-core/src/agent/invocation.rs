//! What a command line asks of an agent.

use super::Agent;
use super::agent_file::PositionalPrompt;
use super::argv::{ArgSpan, ArgvFlag, ArgvPart, FlagValueCertainty, parse_argv};
use super::launcher;
use crate::decision::{Capabilities, Capability};

/// What a command line asks of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation<'a> {
    pub(super) agent: &'a Agent,
    pub(super) command: Vec<String>,
    /// Where its program stands, if it does.
    program: Option<usize>,
    pub(super) parts: Vec<ArgvPart>,
    /// Where flags are added: after the program, or after the subcommand that runs it.
    pub(super) start: usize,
    pub(super) prompt_at: PromptPosition,
    /// The words of a subcommand that resumes.
    pub(super) resume_words: Vec<usize>,
    headless: bool,
    model: Option<String>,
    format: Option<String>,
    session: RequestedConversation,
}

/// What the prompt is, as far as the command line tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptSource {
    /// This text.
    Text(String),
    /// What is on the standard input.
    Stdin,
    /// What is in this file.
    File(String),
    /// It is given in another way, or not at all.
    Elsewhere,
}

/// Which conversation a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestedConversation {
    /// Its id or name, if it is known.
    pub id: Option<String>,
    /// Whether an earlier conversation goes on.
    pub resumes: bool,
}

/// Where the prompt stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PromptPosition {
    Value(ArgSpan),
    Words(Vec<usize>),
    File(ArgvFlag),
    Stdin,
    Nowhere,
}

impl<'a> Invocation<'a> {
    /// Reads a command line of an agent.
    pub fn parse(agent: &'a Agent, command: &[String]) -> Self {
        let program = launcher::find_program(command, |word| agent.matches_program(word));
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
            session: RequestedConversation::default(),
        };
        invocation.interpret();
        invocation
    }

    /// Whether it runs without a person. Only then it can be changed.
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

    /// The model, if one is named.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The output format: the value of the flag that chooses it, or the switch.
    pub fn format(&self) -> Option<&str> {
        self.format.as_deref()
    }

    /// The conversation.
    pub fn session(&self) -> &RequestedConversation {
        &self.session
    }

    /// The same, knowing the conversation that the agent reported.
    #[must_use]
    pub fn with_reported_session(mut self, id: Option<String>) -> Self {
        self.session.id = id.or(self.session.id);
        self
    }

    /// What can be changed in it. What else the caller can do (repairs, the allowed time) is not told here.
    pub fn capabilities(&self) -> Capabilities {
        let mut can = Capabilities::NONE;
        if !self.headless {
            return can;
        }
        if self.prompt_at != PromptPosition::Nowhere {
            can = can.with(Capability::Prompt).with(Capability::Steps);
        }
        if !self.agent.file.flags.model.is_empty() {
            can = can.with(Capability::Model);
        }
        let resume = &self.agent.file.session.resume;
        let needs_id = resume.iter().any(|word| word.contains("{id}"));
        let knows = !needs_id || self.session.id.is_some();
        if !resume.is_empty() && knows && self.prompt_at != PromptPosition::Nowhere {
            can = can.with(Capability::Resume);
        }
        can.with(Capability::Fresh)
    }

    /// The command line with further arguments where the agent takes them; none if its program is not in it.
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

    /// The last of these flags.
    fn last_flag(&self, names: &[String]) -> Option<&ArgvFlag> {
        self.flags().filter(|flag| flag.is_one_of(names)).last()
    }

    /// The value of the last of these flags.
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
        let runs = self.take_run_words(&mut words);
        self.headless = runs && !self.has_flag(&file.run.never);
        self.model = self.last_value(&file.flags.model);
        let format = self.last_flag(&file.flags.format);
        self.format = format.map(|flag| self.flag_value(flag).unwrap_or(&flag.name).to_owned());
        let session = &file.session;
        self.session = RequestedConversation {
            id: self
                .last_value(&session.id)
                .or(self.last_value(&session.new)),
            resumes: self.has_flag(&session.id) || self.has_flag(&session.latest),
        };
        self.take_resume_words(&mut words);
        self.prompt_at = self.find_prompt(&words);
    }

    fn words(&self) -> impl Iterator<Item = (usize, FlagValueCertainty)> + '_ {
        self.parts.iter().filter_map(|part| match part {
            ArgvPart::Word { at, sure } => Some((*at, *sure)),
            _ => None,
        })
    }

    /// Whether the agent is run, and without a person; takes the words that say so away.
    fn take_run_words(&mut self, words: &mut Vec<(usize, FlagValueCertainty)>) -> bool {
        let run = &self.agent.file.run;
        let is_among = |list: &[String], word: Option<&(usize, FlagValueCertainty)>| {
            word.is_some_and(|(at, _)| list.contains(&self.command[*at]))
        };
        if run.words.is_empty() {
            let is_other = words.first().is_some_and(|(at, _)| *at == self.start);
            let is_other = is_other && is_among(&run.others, words.first());
            let by_prompt = run.by_prompt && !words.is_empty();
            return !is_other && (run.flags.is_empty() || self.has_flag(&run.flags) || by_prompt);
        }
        if !is_among(&run.words, words.first()) {
            return false;
        }
        self.start = words.remove(0).0 + 1;
        !run.others.iter().any(|other| {
            words
                .first()
                .is_some_and(|(at, _)| self.command[*at] == *other)
        })
    }

    /// Reads the subcommand that resumes, and the conversation that it names.
    fn take_resume_words(&mut self, words: &mut Vec<(usize, FlagValueCertainty)>) {
        let Some(word) = &self.agent.file.session.word else {
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

    /// The words that are the prompt. After a flag of which nothing is known, one word is rather its value.
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
            PositionalPrompt::None => Vec::new(),
            PositionalPrompt::One => found.into_iter().take(1).collect(),
            PositionalPrompt::Many => found,
        }
    }
}

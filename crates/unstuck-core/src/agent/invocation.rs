//! What a command line asks of an agent.

use super::Agent;
use super::file::Positional;
use super::launcher;
use super::words::{Flag, Part, Place, Sure, parts};
use crate::decision::{Capabilities, Capability};

/// What a command line asks of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation<'a> {
    pub(super) agent: &'a Agent,
    pub(super) command: Vec<String>,
    /// Where its program stands, if it does.
    program: Option<usize>,
    pub(super) parts: Vec<Part>,
    /// Where flags are added: after the program, or after the subcommand that runs it.
    pub(super) start: usize,
    pub(super) prompt_at: PromptAt,
    /// The words of a subcommand that resumes.
    pub(super) resume_words: Vec<usize>,
    headless: bool,
    model: Option<String>,
    format: Option<String>,
    session: SessionUse,
}

/// What the prompt is, as far as the command line tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
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
pub struct SessionUse {
    /// Its id or name, if it is known.
    pub id: Option<String>,
    /// Whether an earlier conversation goes on.
    pub resumes: bool,
}

/// Where the prompt stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PromptAt {
    Value(Place),
    Words(Vec<usize>),
    File(Flag),
    Stdin,
    Nowhere,
}

impl<'a> Invocation<'a> {
    /// Reads a command line of an agent.
    pub fn read(agent: &'a Agent, command: &[String]) -> Self {
        let program = launcher::program(command, |word| agent.is_named(word));
        let start = program.map_or(command.len(), |at| at + 1);
        let mut invocation = Self {
            agent,
            command: command.to_vec(),
            program,
            parts: parts(&agent.file, command, start),
            start,
            prompt_at: PromptAt::Nowhere,
            resume_words: Vec::new(),
            headless: false,
            model: None,
            format: None,
            session: SessionUse::default(),
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
    pub fn prompt(&self) -> Prompt {
        match &self.prompt_at {
            PromptAt::Value(place) => Prompt::Text(place.text(&self.command).to_owned()),
            PromptAt::Words(words) => {
                let words: Vec<&str> = words.iter().map(|at| self.command[*at].as_str()).collect();
                Prompt::Text(words.join(" "))
            }
            PromptAt::File(flag) => Prompt::File(self.value(flag).unwrap_or_default().to_owned()),
            PromptAt::Stdin => Prompt::Stdin,
            PromptAt::Nowhere => Prompt::Elsewhere,
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
    pub fn session(&self) -> &SessionUse {
        &self.session
    }

    /// The same, knowing the conversation that the agent reported.
    #[must_use]
    pub fn knowing_session(mut self, id: Option<String>) -> Self {
        self.session.id = id.or(self.session.id);
        self
    }

    /// What can be changed in it. What else the caller can do (repairs, the allowed time) is not told here.
    pub fn capabilities(&self) -> Capabilities {
        let mut can = Capabilities::NONE;
        if !self.headless {
            return can;
        }
        if self.prompt_at != PromptAt::Nowhere {
            can = can.with(Capability::Prompt).with(Capability::Steps);
        }
        if !self.agent.file.flags.model.is_empty() {
            can = can.with(Capability::Model);
        }
        let resume = &self.agent.file.session.resume;
        let needs_id = resume.iter().any(|word| word.contains("{id}"));
        let knows = !needs_id || self.session.id.is_some();
        if !resume.is_empty() && knows && self.prompt_at != PromptAt::Nowhere {
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

    pub(super) fn flags(&self) -> impl Iterator<Item = &Flag> {
        self.parts.iter().filter_map(|part| match part {
            Part::Flag(flag) => Some(flag),
            _ => None,
        })
    }

    fn value(&self, flag: &Flag) -> Option<&str> {
        flag.value.map(|place| place.text(&self.command))
    }

    /// The last of these flags.
    fn last(&self, names: &[String]) -> Option<&Flag> {
        self.flags().filter(|flag| flag.is_one_of(names)).last()
    }

    /// The value of the last of these flags.
    fn given(&self, names: &[String]) -> Option<String> {
        self.last(names)
            .and_then(|flag| self.value(flag))
            .map(str::to_owned)
    }

    fn has(&self, names: &[String]) -> bool {
        self.last(names).is_some()
    }

    fn interpret(&mut self) {
        let file = &self.agent.file;
        let mut words: Vec<(usize, Sure)> = self.words().collect();
        let runs = self.is_run(&mut words);
        self.headless = runs && !self.has(&file.run.never);
        self.model = self.given(&file.flags.model);
        let format = self.last(&file.flags.format);
        self.format = format.map(|flag| self.value(flag).unwrap_or(&flag.name).to_owned());
        let session = &file.session;
        self.session = SessionUse {
            id: self.given(&session.id).or(self.given(&session.new)),
            resumes: self.has(&session.id) || self.has(&session.latest),
        };
        self.take_resume_words(&mut words);
        self.prompt_at = self.find_prompt(&words);
    }

    fn words(&self) -> impl Iterator<Item = (usize, Sure)> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::Word { at, sure } => Some((*at, *sure)),
            _ => None,
        })
    }

    /// Whether the agent is run, and without a person; takes the words that say so away.
    fn is_run(&mut self, words: &mut Vec<(usize, Sure)>) -> bool {
        let run = &self.agent.file.run;
        let is_among = |list: &[String], word: Option<&(usize, Sure)>| {
            word.is_some_and(|(at, _)| list.contains(&self.command[*at]))
        };
        if run.words.is_empty() {
            let is_other = words.first().is_some_and(|(at, _)| *at == self.start);
            let is_other = is_other && is_among(&run.others, words.first());
            let by_prompt = run.by_prompt && !words.is_empty();
            return !is_other && (run.flags.is_empty() || self.has(&run.flags) || by_prompt);
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
    fn take_resume_words(&mut self, words: &mut Vec<(usize, Sure)>) {
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
        if !words.is_empty() && !self.has(&self.agent.file.session.latest) {
            let at = words.remove(0).0;
            self.resume_words.push(at);
            self.session.id = Some(self.command[at].clone());
        }
    }

    fn find_prompt(&self, words: &[(usize, Sure)]) -> PromptAt {
        let prompt = &self.agent.file.prompt;
        let is_stdin = |text: &str| prompt.stdin_word.as_deref() == Some(text);
        if let Some(place) = self.last(&prompt.flags).and_then(|flag| flag.value) {
            return match prompt.stdin && place.text(&self.command).is_empty() {
                true => PromptAt::Stdin,
                false => PromptAt::Value(place),
            };
        }
        if let Some(flag) = self.last(&prompt.files) {
            return match self.value(flag) {
                Some(file) if is_stdin(file) => PromptAt::Stdin,
                _ => PromptAt::File(flag.clone()),
            };
        }
        let words = self.prompt_words(words);
        match words.first() {
            Some(at) if !is_stdin(&self.command[*at]) => PromptAt::Words(words),
            None if !prompt.stdin => PromptAt::Nowhere,
            _ => PromptAt::Stdin,
        }
    }

    /// The words that are the prompt. After a flag of which nothing is known, one word is rather its value.
    fn prompt_words(&self, words: &[(usize, Sure)]) -> Vec<usize> {
        let of = |wanted: Sure| {
            words
                .iter()
                .filter(move |(_, sure)| *sure == wanted)
                .map(|(at, _)| *at)
        };
        let is_phrase = |at: &usize| self.command[*at].contains(char::is_whitespace);
        let mut found: Vec<usize> = of(Sure::Yes).collect();
        if found.is_empty() {
            found.extend(of(Sure::No).filter(is_phrase));
        }
        match self.agent.file.prompt.positional {
            Positional::None => Vec::new(),
            Positional::One => found.into_iter().take(1).collect(),
            Positional::Many => found,
        }
    }
}

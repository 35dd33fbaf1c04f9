//! The same command line with another prompt, model or conversation. All else stays, byte for byte and in order.

use super::invocation::{Invocation, PromptAt};
use super::template::undashed;
use super::words::{Flag, Part};

/// What is to be changed; what is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// The new prompt; where a conversation is resumed its message counts instead.
    pub prompt: Option<String>,
    /// The new model, as the agent spells it.
    pub model: Option<String>,
    /// The conversation.
    pub session: Option<Session>,
}

/// The conversation in which an agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Session {
    /// An earlier one, which goes on with a message.
    Resume {
        /// Its id or name; ignored by agents that only know one.
        id: String,
        /// What it is told.
        message: String,
    },
    /// A new one.
    Fresh,
    /// A new one that is known by this id from the start; ignored where [it cannot be](Invocation::takes_new_session).
    New {
        /// Its id.
        id: String,
    },
}

/// A changed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The command line.
    pub command: Vec<String>,
    /// What must stand on the standard input instead of what stood there.
    pub stdin: Option<String>,
}

/// Why a command line cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CannotChange {
    /// A person works with it.
    #[error("the agent is not run without a person")]
    Interactive,
    /// Nobody knows where the prompt is.
    #[error("the command line does not tell where the prompt is")]
    NoPrompt,
    /// The agent has no flag for the model.
    #[error("the agent's model cannot be chosen on the command line")]
    NoModel,
    /// The agent cannot go on with a conversation.
    #[error("the agent cannot resume a conversation")]
    NoResume,
}

/// Words as they will be.
struct Edit {
    words: Vec<Option<String>>,
    /// What is put before the word of a number.
    inserted: Vec<(usize, String)>,
    tail: Vec<String>,
}

impl Edit {
    fn insert(&mut self, at: usize, words: impl IntoIterator<Item = String>) {
        self.inserted
            .extend(words.into_iter().map(|word| (at, word)));
    }

    fn drop(&mut self, words: impl IntoIterator<Item = usize>) {
        for at in words {
            if let Some(word) = self.words.get_mut(at) {
                *word = None;
            }
        }
    }

    fn set(&mut self, at: usize, word: String) {
        if let Some(old) = self.words.get_mut(at) {
            *old = Some(word);
        }
    }

    fn into_words(self) -> Vec<String> {
        let count = self.words.len();
        let mut out = Vec::with_capacity(count + self.inserted.len() + self.tail.len());
        let mut old = self.words.into_iter();
        for at in 0..=count {
            let here = self.inserted.iter().filter(|(before, _)| *before == at);
            out.extend(here.map(|(_, word)| word.clone()));
            out.extend(old.next().flatten());
        }
        out.extend(self.tail);
        out
    }
}

impl Invocation<'_> {
    /// The command line with the changes.
    pub fn with(&self, changes: &Changes) -> Result<Changed, CannotChange> {
        let mut edit = Edit {
            words: self.command.iter().cloned().map(Some).collect(),
            inserted: Vec::new(),
            tail: Vec::new(),
        };
        if *changes != Changes::default() && !self.is_headless() {
            return Err(CannotChange::Interactive);
        }
        if let Some(model) = &changes.model {
            self.put_model(&mut edit, model)?;
        }
        let stdin = match &changes.session {
            Some(Session::Resume { id, message }) => self.resume(&mut edit, id, message)?,
            session => {
                match session {
                    Some(Session::New { id }) => self.put_new_session(&mut edit, id),
                    Some(_) => self.leave_session(&mut edit),
                    None => {}
                }
                let prompt = changes.prompt.as_deref();
                prompt.map_or(Ok(None), |prompt| self.put_prompt(&mut edit, prompt))?
            }
        };
        let command = edit.into_words();
        Ok(Changed { command, stdin })
    }

    /// Whether a new conversation can be given an id of our choice: the agent has a flag for it, and the command line
    /// names no conversation.
    pub fn takes_new_session(&self) -> bool {
        let session = &self.agent.file.session;
        let named = [&session.id, &session.new, &session.latest, &session.fork];
        let names_one = |flag: &Flag| named.iter().any(|names| flag.is_one_of(names));
        self.is_headless()
            && !session.new.is_empty()
            && self.resume_words.is_empty()
            && !self.flags().any(names_one)
    }

    fn put_new_session(&self, edit: &mut Edit, id: &str) {
        if self.takes_new_session()
            && let Some(name) = self.agent.file.session.new.last()
        {
            edit.insert(self.start, [name.clone(), id.to_owned()]);
        }
    }

    fn put_model(&self, edit: &mut Edit, model: &str) -> Result<(), CannotChange> {
        let names = &self.agent.file.flags.model;
        let mut is_there = false;
        for flag in self.flags().filter(|flag| flag.is_one_of(names)) {
            if self.put_value(edit, flag, model) {
                is_there = true;
            } else {
                // Without its value it would take the next word for one.
                edit.drop(flag.words.clone());
            }
        }
        if !is_there {
            let name = names.first().ok_or(CannotChange::NoModel)?;
            edit.insert(self.start, [name.clone(), model.to_owned()]);
        }
        Ok(())
    }

    /// Replaces the value of a flag; tells whether it has one.
    fn put_value(&self, edit: &mut Edit, flag: &Flag, value: &str) -> bool {
        let Some(place) = flag.value else {
            return false;
        };
        let before = self.command[place.word]
            .get(..place.from)
            .unwrap_or_default();
        edit.set(place.word, format!("{before}{value}"));
        true
    }

    /// Replaces the prompt, or says what must be on the standard input.
    fn put_prompt(&self, edit: &mut Edit, text: &str) -> Result<Option<String>, CannotChange> {
        match &self.prompt_at {
            PromptAt::Value(place) if place.from == 0 => edit.set(place.word, undashed(text)),
            PromptAt::Value(place) => {
                let before = self.command[place.word]
                    .get(..place.from)
                    .unwrap_or_default();
                edit.set(place.word, format!("{before}{text}"));
            }
            PromptAt::Words(words) => self.put_words(edit, words, text),
            PromptAt::File(flag) => {
                edit.drop(flag.words.clone());
                let name = self.agent.file.prompt.flags.first().cloned();
                edit.insert(flag.words.start, name.into_iter().chain([undashed(text)]));
            }
            PromptAt::Stdin => return Ok(Some(text.to_owned())),
            PromptAt::Nowhere => return Err(CannotChange::NoPrompt),
        }
        Ok(None)
    }

    fn put_words(&self, edit: &mut Edit, words: &[usize], text: &str) {
        let Some((first, others)) = words.split_first() else {
            return;
        };
        let is_after_end = self.ends().any(|end| end < *first);
        let text = if is_after_end {
            text.to_owned()
        } else {
            undashed(text)
        };
        edit.set(*first, text);
        edit.drop(others.iter().copied());
    }

    /// Takes everything away that names a conversation.
    fn leave_session(&self, edit: &mut Edit) {
        let session = &self.agent.file.session;
        let named = [&session.id, &session.new, &session.latest, &session.fork];
        for flag in self
            .flags()
            .filter(|flag| named.iter().any(|names| flag.is_one_of(names)))
        {
            edit.drop(flag.words.clone());
        }
        edit.drop(self.resume_words.iter().copied());
    }

    fn resume(
        &self,
        edit: &mut Edit,
        id: &str,
        message: &str,
    ) -> Result<Option<String>, CannotChange> {
        let session = &self.agent.file.session;
        if session.resume.is_empty() {
            return Err(CannotChange::NoResume);
        }
        self.leave_session(edit);
        let words = session.resume.iter().map(|word| word.replace("{id}", id));
        if session.word.is_none() {
            edit.insert(self.start, words);
            return self.put_prompt(edit, message);
        }
        // Flags that only the outer command takes must come before a subcommand.
        edit.tail = words.collect();
        self.put_last(edit, message)
    }

    /// Moves the prompt to the end of the command line.
    fn put_last(&self, edit: &mut Edit, text: &str) -> Result<Option<String>, CannotChange> {
        edit.drop(self.ends());
        match &self.prompt_at {
            PromptAt::Words(words) => {
                edit.drop(words.iter().copied());
                edit.tail.push(undashed(text));
                Ok(None)
            }
            PromptAt::Stdin => {
                let stdin = self.agent.file.prompt.stdin_word.clone();
                let is_stdin = |word: &usize| Some(&self.command[*word]) == stdin.as_ref();
                edit.drop(self.words_from_start().filter(is_stdin));
                edit.tail.extend(stdin.clone());
                Ok(Some(text.to_owned()))
            }
            _ => self.put_prompt(edit, text),
        }
    }

    fn ends(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::End { at } => Some(*at),
            _ => None,
        })
    }

    fn words_from_start(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::Word { at, .. } => Some(*at),
            _ => None,
        })
    }
}

//! Rewrites a command line with another prompt, model or conversation. Everything else stays, byte for byte and in
//! order.

use super::argv::{ArgvFlag, ArgvPart};
use super::command_parser::{ParsedAgentCommandLine, PromptPosition};
use super::command_template::without_leading_dash;

/// The requested changes of a command line; absent ones stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLineRewrite {
    /// The new prompt; ignored when a conversation is resumed, in favor of its message.
    pub prompt: Option<String>,
    /// The new model, as the agent spells it.
    pub model: Option<String>,
    /// The conversation.
    pub session: Option<ConversationChoice>,
}

/// The conversation in which an agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationChoice {
    /// An existing conversation, continued with a message.
    Resume {
        /// The id or name; ignored by agents with a single conversation.
        id: String,
        /// The message.
        message: String,
    },
    /// A new conversation.
    Fresh,
    /// A new conversation with this id; the id is ignored if it [is not
    /// supported](ParsedAgentCommandLine::supports_new_session_id).
    New {
        /// The id.
        id: String,
    },
}

/// A changed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenCommandLine {
    /// The command line.
    pub command: Vec<String>,
    /// The new contents of stdin.
    pub stdin: Option<String>,
}

/// An error that prevents changing a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandRewriteError {
    /// The run is interactive.
    #[error("the agent runs interactively")]
    Interactive,
    /// The position of the prompt is unknown.
    #[error("cannot locate the prompt in the command line")]
    NoPrompt,
    /// The agent has no flag for the model.
    #[error("the agent has no command-line option for the model")]
    NoModel,
    /// The agent cannot continue a conversation.
    #[error("the agent cannot resume a conversation")]
    NoResume,
}

/// Edits to the words of a command line.
struct ArgvEdit {
    words: Vec<Option<String>>,
    /// Insertions before the word of this index.
    inserted: Vec<(usize, String)>,
    tail: Vec<String>,
}

impl ArgvEdit {
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

    fn into_args(self) -> Vec<String> {
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

impl ParsedAgentCommandLine<'_> {
    /// Returns the command line with the changes.
    pub fn with_changes(
        &self,
        changes: &CommandLineRewrite,
    ) -> Result<RewrittenCommandLine, CommandRewriteError> {
        let mut edit = ArgvEdit {
            words: self.command.iter().cloned().map(Some).collect(),
            inserted: Vec::new(),
            tail: Vec::new(),
        };
        if *changes != CommandLineRewrite::default() && !self.is_headless() {
            return Err(CommandRewriteError::Interactive);
        }
        if let Some(model) = &changes.model {
            self.set_model(&mut edit, model)?;
        }
        let stdin = match &changes.session {
            Some(ConversationChoice::Resume { id, message }) => {
                self.resume(&mut edit, id, message)?
            }
            session => {
                match session {
                    Some(ConversationChoice::New { id }) => self.set_new_session(&mut edit, id),
                    Some(_) => self.remove_session(&mut edit),
                    None => {}
                }
                let prompt = changes.prompt.as_deref();
                prompt.map_or(Ok(None), |prompt| self.set_prompt(&mut edit, prompt))?
            }
        };
        let command = edit.into_args();
        Ok(RewrittenCommandLine { command, stdin })
    }

    /// Returns true if a new conversation can be given an id: the agent has a flag for it, and the command line names
    /// no conversation.
    pub fn supports_new_session_id(&self) -> bool {
        let session = &self.agent.file.session;
        let named = [&session.id, &session.new, &session.latest, &session.fork];
        let names_one = |flag: &ArgvFlag| named.iter().any(|names| flag.is_one_of(names));
        self.is_headless()
            && !session.new.is_empty()
            && self.resume_words.is_empty()
            && !self.flags().any(names_one)
    }

    fn set_new_session(&self, edit: &mut ArgvEdit, id: &str) {
        if self.supports_new_session_id()
            && let Some(name) = self.agent.file.session.new.last()
        {
            edit.insert(self.start, [name.clone(), id.to_owned()]);
        }
    }

    fn set_model(&self, edit: &mut ArgvEdit, model: &str) -> Result<(), CommandRewriteError> {
        let names = &self.agent.file.flags.model;
        let mut is_there = false;
        for flag in self.flags().filter(|flag| flag.is_one_of(names)) {
            if self.set_flag_value(edit, flag, model) {
                is_there = true;
            } else {
                // Without its value, the flag would consume the next word.
                edit.drop(flag.words.clone());
            }
        }
        if !is_there {
            let name = names.first().ok_or(CommandRewriteError::NoModel)?;
            edit.insert(self.start, [name.clone(), model.to_owned()]);
        }
        Ok(())
    }

    /// Replaces the value of a flag; returns false if it has none.
    fn set_flag_value(&self, edit: &mut ArgvEdit, flag: &ArgvFlag, value: &str) -> bool {
        let Some(place) = flag.value else {
            return false;
        };
        let before = self.command[place.word]
            .get(..place.from)
            .unwrap_or_default();
        edit.set(place.word, format!("{before}{value}"));
        true
    }

    /// Replaces the prompt, or returns the new contents of stdin.
    fn set_prompt(
        &self,
        edit: &mut ArgvEdit,
        text: &str,
    ) -> Result<Option<String>, CommandRewriteError> {
        match &self.prompt_at {
            PromptPosition::Value(place) if place.from == 0 => {
                edit.set(place.word, without_leading_dash(text))
            }
            PromptPosition::Value(place) => {
                let before = self.command[place.word]
                    .get(..place.from)
                    .unwrap_or_default();
                edit.set(place.word, format!("{before}{text}"));
            }
            PromptPosition::Words(words) => self.set_prompt_args(edit, words, text),
            PromptPosition::File(flag) => {
                edit.drop(flag.words.clone());
                let name = self.agent.file.prompt.flags.first().cloned();
                edit.insert(
                    flag.words.start,
                    name.into_iter().chain([without_leading_dash(text)]),
                );
            }
            PromptPosition::Stdin => return Ok(Some(text.to_owned())),
            PromptPosition::Nowhere => return Err(CommandRewriteError::NoPrompt),
        }
        Ok(None)
    }

    fn set_prompt_args(&self, edit: &mut ArgvEdit, words: &[usize], text: &str) {
        let Some((first, others)) = words.split_first() else {
            return;
        };
        let is_after_end = self.end_markers().any(|end| end < *first);
        let text = if is_after_end {
            text.to_owned()
        } else {
            without_leading_dash(text)
        };
        edit.set(*first, text);
        edit.drop(others.iter().copied());
    }

    /// Removes everything that names a conversation.
    fn remove_session(&self, edit: &mut ArgvEdit) {
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
        edit: &mut ArgvEdit,
        id: &str,
        message: &str,
    ) -> Result<Option<String>, CommandRewriteError> {
        let session = &self.agent.file.session;
        if session.resume.is_empty() {
            return Err(CommandRewriteError::NoResume);
        }
        self.remove_session(edit);
        let words = session.resume.iter().map(|word| word.replace("{id}", id));
        if session.subcommand.is_none() {
            edit.insert(self.start, words);
            return self.set_prompt(edit, message);
        }
        // Flags that only the outer command accepts must precede a subcommand.
        edit.tail = words.collect();
        self.move_prompt_last(edit, message)
    }

    /// Moves the prompt to the end of the command line.
    fn move_prompt_last(
        &self,
        edit: &mut ArgvEdit,
        text: &str,
    ) -> Result<Option<String>, CommandRewriteError> {
        edit.drop(self.end_markers());
        match &self.prompt_at {
            PromptPosition::Words(words) => {
                edit.drop(words.iter().copied());
                edit.tail.push(without_leading_dash(text));
                Ok(None)
            }
            PromptPosition::Stdin => {
                let stdin = self.agent.file.prompt.stdin_word.clone();
                let is_stdin = |word: &usize| Some(&self.command[*word]) == stdin.as_ref();
                edit.drop(self.words_from_start().filter(is_stdin));
                edit.tail.extend(stdin.clone());
                Ok(Some(text.to_owned()))
            }
            _ => self.set_prompt(edit, text),
        }
    }

    fn end_markers(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().filter_map(|part| match part {
            ArgvPart::End { at } => Some(*at),
            _ => None,
        })
    }

    fn words_from_start(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().filter_map(|part| match part {
            ArgvPart::Word { at, .. } => Some(*at),
            _ => None,
        })
    }
}

//! One question that the person has opened, and what a key does there.

use unstuck_core::question::{Answer, Choice, offered};
use unstuck_core::repair::needs_network;
use unstuck_store::Question;

use super::desk::{Giving, Request};
use super::keys::Key;

/// How far a page key scrolls.
const PAGE: usize = 10;

/// A question that is open on the screen.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) question: Question,
    pub(super) choices: Vec<Choice>,
    pub(super) scroll: usize,
    /// What goes with the answer.
    pub(super) note: String,
    pub(super) asks: Asks,
    /// Whether it no longer waits.
    pub(super) settled: bool,
}

/// What the next key is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asks {
    /// Which answer it is.
    Answer,
    /// The words of an answer, or of a note where it is for none.
    Words(Option<Answer>, String),
    /// Whether something shall really end.
    Sure(Answer),
    /// The answer is being given.
    Giving(Answer),
    /// The preview is being made.
    Previewing { network: bool },
    /// The preview is read.
    Preview(Vec<String>),
}

/// What follows from a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Stay,
    Help,
    Close,
    Say(String),
    Ask(Request),
}

impl Opened {
    pub(super) fn new(question: Question) -> Self {
        Self {
            choices: offered(&question.asked),
            question,
            scroll: 0,
            note: String::new(),
            asks: Asks::Answer,
            settled: false,
        }
    }

    /// Whether there is a command to be previewed.
    pub(super) fn can_preview(&self) -> bool {
        self.question.asked.repair.is_some()
    }

    /// Whether the command is known to need the network, which a preview has only if a person lets it.
    pub(super) fn needs_network(&self) -> bool {
        let command = self.question.asked.shown.command.as_deref();
        self.can_preview() && command.is_some_and(needs_network)
    }

    fn preview(&mut self, network: bool) -> Step {
        self.asks = Asks::Previewing { network };
        Step::Ask(Request::Preview {
            question: Box::new(self.question.clone()),
            network,
        })
    }

    /// Something else is asked now. Words that were being written are kept.
    pub(super) fn changed(&mut self, question: Question) {
        let words = match &mut self.asks {
            Asks::Words(_, words) => std::mem::take(words),
            _ => std::mem::take(&mut self.note),
        };
        *self = Self::new(question);
        self.note = words;
    }

    /// It no longer waits.
    pub(super) fn settle(&mut self) {
        self.settled = true;
        self.asks = Asks::Answer;
    }

    /// What a preview has shown, unless nobody wants it any more.
    pub(super) fn previewed(&mut self, lines: Vec<String>) {
        if matches!(self.asks, Asks::Previewing { .. }) {
            self.asks = Asks::Preview(lines);
            self.scroll = 0;
        }
    }

    /// Takes in a key.
    pub(super) fn press(&mut self, key: Key) -> Step {
        match std::mem::replace(&mut self.asks, Asks::Answer) {
            Asks::Answer => self.answered(&key),
            Asks::Words(answer, words) => self.written(answer, words, key),
            Asks::Sure(answer) => match key {
                Key::Letter('y' | 'Y') => self.give(answer),
                _ => Step::Say(format!("not done: {answer}")),
            },
            Asks::Giving(answer) => {
                self.asks = Asks::Giving(answer);
                Step::Stay
            }
            Asks::Previewing { network } => match key {
                Key::Escape | Key::Letter('q') => Step::Ask(Request::StopPreview),
                _ => {
                    self.asks = Asks::Previewing { network };
                    Step::Stay
                }
            },
            Asks::Preview(lines) => {
                let scrolled = self.scrolled(&key);
                match scrolled {
                    true => self.asks = Asks::Preview(lines),
                    false => self.scroll = 0,
                }
                Step::Stay
            }
        }
    }

    fn answered(&mut self, key: &Key) -> Step {
        if self.scrolled(key) {
            return Step::Stay;
        }
        match key {
            Key::Letter('q') | Key::Escape => Step::Close,
            Key::Letter('?') => Step::Help,
            _ if self.settled => Step::Close,
            Key::Letter('p') if self.can_preview() => self.preview(false),
            Key::Letter('P') if self.needs_network() => self.preview(true),
            Key::Letter('n') => {
                self.asks = Asks::Words(None, self.note.clone());
                Step::Stay
            }
            Key::Letter(letter) => self.chosen(*letter),
            _ => Step::Stay,
        }
    }

    fn chosen(&mut self, letter: char) -> Step {
        let mut offered = self.choices.iter().map(|choice| choice.answer);
        let Some(answer) = offered.find(|answer| answer.key() == letter) else {
            return Step::Say(format!("`{letter}` is no answer here; ? shows the keys"));
        };
        match answer {
            Answer::Retry => {
                self.asks = Asks::Words(Some(answer), self.note.clone());
                Step::Stay
            }
            Answer::Skip | Answer::Abort => {
                self.asks = Asks::Sure(answer);
                Step::Stay
            }
            answer => self.give(answer),
        }
    }

    /// Goes on with a line that is being written.
    fn written(&mut self, answer: Option<Answer>, mut words: String, key: Key) -> Step {
        match key {
            Key::Letter(letter) => words.push(letter),
            Key::Pasted(text) => {
                words.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }))
            }
            Key::Backspace => drop(words.pop()),
            Key::Clear => words.clear(),
            Key::Escape => return Step::Say("nothing was answered".to_owned()),
            Key::Enter => {
                let words = words.trim();
                return match answer {
                    Some(answer) if words.is_empty() => {
                        self.asks = Asks::Words(Some(answer), String::new());
                        Step::Say(format!("{answer} needs your words; Esc takes it back"))
                    }
                    answer => {
                        self.note = words.to_owned();
                        answer.map_or(Step::Stay, |answer| self.give(answer))
                    }
                };
            }
            _ => {}
        }
        self.asks = Asks::Words(answer, words);
        Step::Stay
    }

    /// Gives an answer to exactly what is shown.
    fn give(&mut self, answer: Answer) -> Step {
        self.asks = Asks::Giving(answer);
        Step::Ask(Request::Give(Box::new(Giving {
            question: self.question.clone(),
            answer,
            note: self.note.clone(),
        })))
    }

    /// Whether a key was about scrolling.
    fn scrolled(&mut self, key: &Key) -> bool {
        self.scroll = match key {
            Key::Up | Key::Letter('k') => self.scroll.saturating_sub(1),
            Key::Down | Key::Letter('j') => self.scroll + 1,
            Key::PageUp => self.scroll.saturating_sub(PAGE),
            Key::PageDown | Key::Letter(' ') => self.scroll + PAGE,
            Key::Home | Key::Letter('g') => 0,
            Key::End | Key::Letter('G') => usize::MAX,
            _ => return false,
        };
        true
    }
}

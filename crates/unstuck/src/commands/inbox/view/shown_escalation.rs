//! The escalation shown on the inbox screen, and its key handling.

use unstuck_core::escalation::{AnswerOption, EscalationAnswer, offered_options};
use unstuck_core::repair::needs_network;
use unstuck_store::EscalationRow;

use super::keys::KeyPress;
use super::worker::{AnswerSubmission, InboxWorkerRequest};

/// Rows that a page key scrolls.
const PAGE_ROWS: usize = 10;

/// The escalation shown on the screen, with scroll position, note and input mode; it may already be closed.
#[derive(Debug)]
pub(super) struct ShownEscalation {
    pub(super) question: EscalationRow,
    pub(super) choices: Vec<AnswerOption>,
    pub(super) scroll: usize,
    /// Note to send with the answer.
    pub(super) note: String,
    pub(super) input: InputMode,
    /// True if the escalation is no longer pending.
    pub(super) settled: bool,
}

/// Mode that decides what the next key does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InputMode {
    /// Choosing an answer.
    Answer,
    /// Editing the message of an answer, or a note if no answer is chosen yet.
    Note(Option<EscalationAnswer>, String),
    /// Confirming an answer that ends the run.
    Confirm(EscalationAnswer),
    /// Waiting for the answer to be recorded.
    Submitting(EscalationAnswer),
    /// Waiting for the preview.
    Previewing { network: bool },
    /// Reading the preview.
    Preview(Vec<String>),
}

/// Effect of a key press.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KeyEffect {
    Stay,
    Help,
    Close,
    Notice(String),
    Send(InboxWorkerRequest),
}

impl ShownEscalation {
    pub(super) fn new(question: EscalationRow) -> Self {
        Self {
            choices: offered_options(&question.request),
            question,
            scroll: 0,
            note: String::new(),
            input: InputMode::Answer,
            settled: false,
        }
    }

    /// True if the escalation proposes a command that can be previewed.
    pub(super) fn can_preview(&self) -> bool {
        self.question.request.repair.is_some()
    }

    /// True if the command is known to need the network, which a preview has only with the user's permission.
    pub(super) fn needs_network(&self) -> bool {
        let command = self.question.request.details.command.as_deref();
        self.can_preview() && command.is_some_and(needs_network)
    }

    fn preview(&mut self, network: bool) -> KeyEffect {
        self.input = InputMode::Previewing { network };
        KeyEffect::Send(InboxWorkerRequest::Preview {
            question: Box::new(self.question.clone()),
            network,
        })
    }

    /// Replaces the escalation with a newer one; a message being edited is kept.
    pub(super) fn replace(&mut self, question: EscalationRow) {
        let words = match &mut self.input {
            InputMode::Note(_, words) => std::mem::take(words),
            _ => std::mem::take(&mut self.note),
        };
        *self = Self::new(question);
        self.note = words;
    }

    /// Marks the escalation as no longer pending.
    pub(super) fn mark_closed(&mut self) {
        self.settled = true;
        self.input = InputMode::Answer;
    }

    /// Shows the result of a preview unless it was canceled.
    pub(super) fn show_preview(&mut self, lines: Vec<String>) {
        if matches!(self.input, InputMode::Previewing { .. }) {
            self.input = InputMode::Preview(lines);
            self.scroll = 0;
        }
    }

    /// Handles a key press.
    pub(super) fn on_key(&mut self, key: KeyPress) -> KeyEffect {
        match std::mem::replace(&mut self.input, InputMode::Answer) {
            InputMode::Answer => self.on_answer_key(&key),
            InputMode::Note(answer, words) => self.on_text_key(answer, words, key),
            InputMode::Confirm(answer) => match key {
                KeyPress::Char('y' | 'Y') => self.submit(answer),
                _ => KeyEffect::Notice(format!("{answer} canceled")),
            },
            InputMode::Submitting(answer) => {
                self.input = InputMode::Submitting(answer);
                KeyEffect::Stay
            }
            InputMode::Previewing { network } => match key {
                KeyPress::Escape | KeyPress::Char('q') => {
                    KeyEffect::Send(InboxWorkerRequest::StopPreview)
                }
                _ => {
                    self.input = InputMode::Previewing { network };
                    KeyEffect::Stay
                }
            },
            InputMode::Preview(lines) => {
                let scrolled = self.try_scroll(&key);
                if scrolled {
                    self.input = InputMode::Preview(lines)
                } else {
                    self.scroll = 0
                }
                KeyEffect::Stay
            }
        }
    }

    fn on_answer_key(&mut self, key: &KeyPress) -> KeyEffect {
        if self.try_scroll(key) {
            return KeyEffect::Stay;
        }
        match key {
            KeyPress::Char('q') | KeyPress::Escape => KeyEffect::Close,
            KeyPress::Char('?') => KeyEffect::Help,
            _ if self.settled => KeyEffect::Close,
            KeyPress::Char('p') if self.can_preview() => self.preview(false),
            KeyPress::Char('P') if self.needs_network() => self.preview(true),
            KeyPress::Char('n') => {
                self.input = InputMode::Note(None, self.note.clone());
                KeyEffect::Stay
            }
            KeyPress::Char(letter) => self.select_answer_by_key(*letter),
            _ => KeyEffect::Stay,
        }
    }

    fn select_answer_by_key(&mut self, letter: char) -> KeyEffect {
        let mut offered = self.choices.iter().map(|choice| choice.answer);
        let Some(answer) = offered.find(|answer| answer.key() == letter) else {
            return KeyEffect::Notice(format!("unknown key `{letter}`; press ? for help"));
        };
        match answer {
            EscalationAnswer::Retry => {
                self.input = InputMode::Note(Some(answer), self.note.clone());
                KeyEffect::Stay
            }
            EscalationAnswer::Skip | EscalationAnswer::Abort => {
                self.input = InputMode::Confirm(answer);
                KeyEffect::Stay
            }
            answer => self.submit(answer),
        }
    }

    /// Handles a key press while a line is edited.
    fn on_text_key(
        &mut self,
        answer: Option<EscalationAnswer>,
        mut words: String,
        key: KeyPress,
    ) -> KeyEffect {
        match key {
            KeyPress::Char(letter) => words.push(letter),
            KeyPress::Pasted(text) => {
                words.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }))
            }
            KeyPress::Backspace => drop(words.pop()),
            KeyPress::Clear => words.clear(),
            KeyPress::Escape => return KeyEffect::Notice("canceled".to_owned()),
            KeyPress::Enter => {
                let words = words.trim();
                return match answer {
                    Some(answer) if words.is_empty() => {
                        self.input = InputMode::Note(Some(answer), String::new());
                        KeyEffect::Notice(format!("{answer} needs a message; Esc cancels"))
                    }
                    answer => {
                        self.note = words.to_owned();
                        answer.map_or(KeyEffect::Stay, |answer| self.submit(answer))
                    }
                };
            }
            _ => {}
        }
        self.input = InputMode::Note(answer, words);
        KeyEffect::Stay
    }

    /// Submits an answer to exactly what is shown.
    fn submit(&mut self, answer: EscalationAnswer) -> KeyEffect {
        self.input = InputMode::Submitting(answer);
        KeyEffect::Send(InboxWorkerRequest::Answer(Box::new(AnswerSubmission {
            question: self.question.clone(),
            answer,
            note: self.note.clone(),
        })))
    }

    /// Scrolls if the key is a scroll key; returns true if it was.
    fn try_scroll(&mut self, key: &KeyPress) -> bool {
        self.scroll = match key {
            KeyPress::Up | KeyPress::Char('k') => self.scroll.saturating_sub(1),
            KeyPress::Down | KeyPress::Char('j') => self.scroll + 1,
            KeyPress::PageUp => self.scroll.saturating_sub(PAGE_ROWS),
            KeyPress::PageDown | KeyPress::Char(' ') => self.scroll + PAGE_ROWS,
            KeyPress::Home | KeyPress::Char('g') => 0,
            KeyPress::End | KeyPress::Char('G') => usize::MAX,
            _ => return false,
        };
        true
    }
}

//! State of the inbox view, changed only by keys and worker events.

use unstuck_core::command_policy::sanitize;
use unstuck_store::EscalationRow;

use super::keys::KeyPress;
use super::shown_escalation::{InputMode, KeyEffect, ShownEscalation};
use super::worker::{AnswerFollowUp, AnswerSubmission, InboxWorkerEvent, InboxWorkerRequest};

/// Rows that a page key moves in the list.
const PAGE_ROWS: usize = 10;

/// The state of the inbox view.
#[derive(Debug)]
pub(super) struct InboxView {
    /// Pending escalations, newest first.
    pub(super) open_escalations: Vec<EscalationRow>,
    pub(super) selected: usize,
    pub(super) opened: Option<ShownEscalation>,
    /// Bulk abort in progress.
    pub(super) bulk: Option<BulkAbort>,
    pub(super) shows_help: bool,
    /// Latest notice.
    pub(super) notice: String,
    /// Error that makes the shown list potentially outdated.
    pub(super) store_error: Option<String>,
}

/// A bulk abort of all requests of a project.
#[derive(Debug)]
pub(super) enum BulkAbort {
    /// Waiting for confirmation.
    Confirm(Vec<EscalationRow>),
    /// Waiting until this many runs are aborted.
    Submitting(usize),
}

/// Action requested by a key press.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum InboxAction {
    Leave,
    Interrupt,
    Send(InboxWorkerRequest),
}

impl InboxView {
    pub(super) fn new(open_escalations: Vec<EscalationRow>) -> Self {
        Self {
            open_escalations,
            selected: 0,
            opened: None,
            bulk: None,
            shows_help: false,
            notice: String::new(),
            store_error: None,
        }
    }

    /// Handles a key press.
    pub(super) fn on_key(&mut self, key: KeyPress) -> Option<InboxAction> {
        if key == KeyPress::Interrupt {
            return Some(InboxAction::Interrupt);
        }
        if self.shows_help {
            self.shows_help = false;
            return None;
        }
        match self.bulk.take() {
            Some(BulkAbort::Confirm(questions)) => {
                return self.on_bulk_confirm_key(questions, &key);
            }
            Some(giving) => {
                self.bulk = Some(giving);
                return None;
            }
            None => {}
        }
        self.notice.clear();
        let Some(opened) = &mut self.opened else {
            return self.on_list_key(&key);
        };
        match opened.on_key(key) {
            KeyEffect::Stay => None,
            KeyEffect::Help => {
                self.shows_help = true;
                None
            }
            KeyEffect::Notice(text) => {
                self.notice = text;
                None
            }
            KeyEffect::Close => {
                self.opened = None;
                None
            }
            KeyEffect::Send(request) => Some(InboxAction::Send(request)),
        }
    }

    fn on_list_key(&mut self, key: &KeyPress) -> Option<InboxAction> {
        let last = self.open_escalations.len().saturating_sub(1);
        self.selected = match key {
            KeyPress::Up | KeyPress::Char('k') => self.selected.saturating_sub(1),
            KeyPress::Down | KeyPress::Char('j') => self.selected + 1,
            KeyPress::PageUp => self.selected.saturating_sub(PAGE_ROWS),
            KeyPress::PageDown => self.selected + PAGE_ROWS,
            KeyPress::Home | KeyPress::Char('g') => 0,
            KeyPress::End | KeyPress::Char('G') => last,
            _ => self.selected,
        }
        .min(last);
        match key {
            KeyPress::Enter => {
                let question = self.open_escalations.get(self.selected);
                self.opened = question.cloned().map(ShownEscalation::new);
            }
            KeyPress::Char('X') => self.bulk = self.of_project().map(BulkAbort::Confirm),
            KeyPress::Char('?') => self.shows_help = true,
            KeyPress::Char('q') | KeyPress::Escape => return Some(InboxAction::Leave),
            _ => {}
        }
        None
    }

    /// Returns all open requests of the selected request's project, newest first.
    fn of_project(&self) -> Option<Vec<EscalationRow>> {
        let project = &self.open_escalations.get(self.selected)?.project;
        let of_project = self
            .open_escalations
            .iter()
            .filter(|one| one.project == *project);
        Some(of_project.cloned().collect())
    }

    /// Aborts exactly the counted requests if confirmed.
    fn on_bulk_confirm_key(
        &mut self,
        questions: Vec<EscalationRow>,
        key: &KeyPress,
    ) -> Option<InboxAction> {
        if !matches!(key, KeyPress::Char('y' | 'Y')) {
            self.notice = "abort canceled".to_owned();
            return None;
        }
        self.bulk = Some(BulkAbort::Submitting(questions.len()));
        Some(InboxAction::Send(InboxWorkerRequest::AbortAll(questions)))
    }

    /// Handles a worker event.
    pub(super) fn on_event(&mut self, news: InboxWorkerEvent) -> Option<InboxAction> {
        match news {
            InboxWorkerEvent::Waiting(waiting) => return self.update_open(waiting),
            InboxWorkerEvent::StoreError(why) => self.store_error = Some(why),
            InboxWorkerEvent::Answered(giving, follows) => self.on_answered(&giving, follows),
            InboxWorkerEvent::AbortedAll { count, refused } => {
                self.bulk = None;
                self.notice = match refused {
                    None => format!("{count} aborted"),
                    Some(why) => format!("{count} aborted; error: {}", sanitize(&why)),
                };
            }
            InboxWorkerEvent::Resolution { id, text } => {
                if self.opened_id() == Some(&id) {
                    self.notice = text;
                }
            }
            InboxWorkerEvent::PreviewDone { id, lines } => {
                let opened = self.opened.as_mut();
                if let Some(opened) = opened.filter(|one| one.question.request.id == id) {
                    opened.show_preview(lines);
                }
            }
            InboxWorkerEvent::Ended { run, code } => {
                let how = match code {
                    Some(0) => "succeeded".to_owned(),
                    Some(3) => "needs your input again".to_owned(),
                    Some(code) => format!("exited with code {code}; details: unstuck show {run}"),
                    None => format!("was killed; to continue: unstuck resume {run}"),
                };
                if self.opened.is_none() {
                    self.notice = format!("run {run} {how}");
                }
            }
        }
        None
    }

    fn opened_id(&self) -> Option<&String> {
        self.opened.as_ref().map(|one| &one.question.request.id)
    }

    /// Updates the pending escalations and keeps the selection.
    fn update_open(&mut self, waiting: Vec<EscalationRow>) -> Option<InboxAction> {
        self.store_error = None;
        let selected = self.open_escalations.get(self.selected);
        let at = selected.and_then(|selected| {
            let is_it = |one: &EscalationRow| one.request.id == selected.request.id;
            waiting.iter().position(is_it)
        });
        let last = waiting.len().saturating_sub(1);
        self.selected = at.unwrap_or(self.selected).min(last);
        self.open_escalations = waiting;
        let opened = self.opened.as_mut()?;
        if opened.settled || matches!(opened.input, InputMode::Submitting(_)) {
            return None;
        }
        let id = opened.question.request.id.clone();
        match self
            .open_escalations
            .iter()
            .find(|one| one.request.id == id)
        {
            Some(one) if one.request == opened.question.request => None,
            Some(one) => {
                opened.replace(one.clone());
                self.notice = format!("{id} has changed; showing the new version");
                None
            }
            None => {
                opened.mark_closed();
                self.notice = format!("{id} is no longer pending");
                Some(InboxAction::Send(InboxWorkerRequest::Resolution(id)))
            }
        }
    }

    fn on_answered(&mut self, giving: &AnswerSubmission, follows: Result<AnswerFollowUp, String>) {
        let id = &giving.question.request.id;
        let is_open = self.opened_id() == Some(id);
        match follows {
            Ok(follows) => {
                self.notice = follow_up_text(giving, &follows);
                self.open_escalations.retain(|one| one.request.id != *id);
                let last = self.open_escalations.len().saturating_sub(1);
                self.selected = self.selected.min(last);
                if is_open {
                    self.opened = None;
                }
            }
            Err(why) => {
                self.notice = sanitize(&why);
                if let Some(opened) = self.opened.as_mut().filter(|_| is_open) {
                    opened.input = InputMode::Answer;
                }
            }
        }
    }

    /// Clamps the scroll offset.
    pub(super) fn scroll_within(&mut self, most: usize) {
        if let Some(opened) = &mut self.opened {
            opened.scroll = opened.scroll.min(most);
        }
    }
}

/// Describes the effect of an answer.
fn follow_up_text(giving: &AnswerSubmission, follows: &AnswerFollowUp) -> String {
    let (id, said) = (&giving.question.request.id, giving.answer.past_tense());
    let run = giving.question.run.short();
    match follows {
        AnswerFollowUp::Nothing => format!("{id} {said}"),
        AnswerFollowUp::Ended => format!("{id} {said}; run {run} has ended"),
        AnswerFollowUp::Delivered => format!("{id} {said}; the waiting process continues"),
        AnswerFollowUp::Started => {
            format!("{id} {said}; resuming run {run} in the background")
        }
        AnswerFollowUp::NotStarted(why) => {
            format!(
                "{id} {said}; to continue: unstuck resume {run} ({})",
                sanitize(why)
            )
        }
    }
}

//! What the person sees and where they are: changed only by keys and by news.

use unstuck_core::guard::show;
use unstuck_store::Question;

use super::desk::{Follows, Giving, News, Request};
use super::keys::Key;
use super::opened::{Asks, Opened, Step};

/// How far a page key goes in the list.
const PAGE: usize = 10;

/// What the person sees.
#[derive(Debug)]
pub(super) struct View {
    /// All that waits, the newest first.
    pub(super) waiting: Vec<Question>,
    pub(super) selected: usize,
    pub(super) opened: Option<Opened>,
    /// What is to be aborted all at once.
    pub(super) bulk: Option<Bulk>,
    pub(super) helps: bool,
    /// What was told last.
    pub(super) notice: String,
    /// Why what is seen may be old.
    pub(super) trouble: Option<String>,
}

/// All requests of a project that are to be aborted.
#[derive(Debug)]
pub(super) enum Bulk {
    /// The person is asked whether they mean it.
    Sure(Vec<Question>),
    /// It is being done.
    Giving(usize),
}

/// What has to be done for the person.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wish {
    Leave,
    Interrupt,
    Ask(Request),
}

impl View {
    pub(super) fn new(waiting: Vec<Question>) -> Self {
        Self {
            waiting,
            selected: 0,
            opened: None,
            bulk: None,
            helps: false,
            notice: String::new(),
            trouble: None,
        }
    }

    /// Takes in a key.
    pub(super) fn press(&mut self, key: Key) -> Option<Wish> {
        if key == Key::Interrupt {
            return Some(Wish::Interrupt);
        }
        if self.helps {
            self.helps = false;
            return None;
        }
        match self.bulk.take() {
            Some(Bulk::Sure(questions)) => return self.sure(questions, &key),
            Some(giving) => {
                self.bulk = Some(giving);
                return None;
            }
            None => {}
        }
        self.notice.clear();
        let Some(opened) = &mut self.opened else {
            return self.in_list(&key);
        };
        match opened.press(key) {
            Step::Stay => None,
            Step::Help => {
                self.helps = true;
                None
            }
            Step::Say(text) => {
                self.notice = text;
                None
            }
            Step::Close => {
                self.opened = None;
                None
            }
            Step::Ask(request) => Some(Wish::Ask(request)),
        }
    }

    fn in_list(&mut self, key: &Key) -> Option<Wish> {
        let last = self.waiting.len().saturating_sub(1);
        self.selected = match key {
            Key::Up | Key::Letter('k') => self.selected.saturating_sub(1),
            Key::Down | Key::Letter('j') => self.selected + 1,
            Key::PageUp => self.selected.saturating_sub(PAGE),
            Key::PageDown => self.selected + PAGE,
            Key::Home | Key::Letter('g') => 0,
            Key::End | Key::Letter('G') => last,
            _ => self.selected,
        }
        .min(last);
        match key {
            Key::Enter => {
                let question = self.waiting.get(self.selected);
                self.opened = question.cloned().map(Opened::new);
            }
            Key::Letter('X') => self.bulk = self.of_project().map(Bulk::Sure),
            Key::Letter('?') => self.helps = true,
            Key::Letter('q') | Key::Escape => return Some(Wish::Leave),
            _ => {}
        }
        None
    }

    /// All open requests of the selected one's project, the newest first.
    fn of_project(&self) -> Option<Vec<Question>> {
        let project = &self.waiting.get(self.selected)?.project;
        let of_project = self.waiting.iter().filter(|one| one.project == *project);
        Some(of_project.cloned().collect())
    }

    /// Aborts exactly what was counted, if the person means it.
    fn sure(&mut self, questions: Vec<Question>, key: &Key) -> Option<Wish> {
        if !matches!(key, Key::Letter('y' | 'Y')) {
            self.notice = "nothing was aborted".to_owned();
            return None;
        }
        self.bulk = Some(Bulk::Giving(questions.len()));
        Some(Wish::Ask(Request::AbortAll(questions)))
    }

    /// Takes in what has happened.
    pub(super) fn learn(&mut self, news: News) -> Option<Wish> {
        match news {
            News::Waiting(waiting) => return self.now_waiting(waiting),
            News::Trouble(why) => self.trouble = Some(why),
            News::Given(giving, follows) => self.given(&giving, follows),
            News::AbortedAll { count, refused } => {
                self.bulk = None;
                self.notice = match refused {
                    None => format!("{count} aborted"),
                    Some(why) => format!("{count} aborted; not all: {}", show(&why)),
                };
            }
            News::Fate { id, text } => {
                if self.open_id() == Some(&id) {
                    self.notice = text;
                }
            }
            News::Previewed { id, lines } => {
                let opened = self.opened.as_mut();
                if let Some(opened) = opened.filter(|one| one.question.asked.id == id) {
                    opened.previewed(lines);
                }
            }
            News::Ended { run, code } => {
                let how = match code {
                    Some(0) => "is done".to_owned(),
                    Some(3) => "asks again".to_owned(),
                    Some(code) => format!("ended with exit code {code}: unstuck show {run}"),
                    None => format!("was killed: unstuck resume {run}"),
                };
                if self.opened.is_none() {
                    self.notice = format!("run {run} {how}");
                }
            }
        }
        None
    }

    fn open_id(&self) -> Option<&String> {
        self.opened.as_ref().map(|one| &one.question.asked.id)
    }

    /// What waits now; where the person is stays where it was.
    fn now_waiting(&mut self, waiting: Vec<Question>) -> Option<Wish> {
        self.trouble = None;
        let selected = self.waiting.get(self.selected);
        let at = selected.and_then(|selected| {
            let is_it = |one: &Question| one.asked.id == selected.asked.id;
            waiting.iter().position(is_it)
        });
        let last = waiting.len().saturating_sub(1);
        self.selected = at.unwrap_or(self.selected).min(last);
        self.waiting = waiting;
        let opened = self.opened.as_mut()?;
        if opened.settled || matches!(opened.asks, Asks::Giving(_)) {
            return None;
        }
        let id = opened.question.asked.id.clone();
        match self.waiting.iter().find(|one| one.asked.id == id) {
            Some(one) if one.asked == opened.question.asked => None,
            Some(one) => {
                opened.changed(one.clone());
                self.notice = format!("{id} has changed: this is what is asked now");
                None
            }
            None => {
                opened.settle();
                self.notice = format!("{id} no longer waits");
                Some(Wish::Ask(Request::Fate(id)))
            }
        }
    }

    fn given(&mut self, giving: &Giving, follows: Result<Follows, String>) {
        let id = &giving.question.asked.id;
        let is_open = self.open_id() == Some(id);
        match follows {
            Ok(follows) => {
                self.notice = told(giving, &follows);
                self.waiting.retain(|one| one.asked.id != *id);
                let last = self.waiting.len().saturating_sub(1);
                self.selected = self.selected.min(last);
                if is_open {
                    self.opened = None;
                }
            }
            Err(why) => {
                self.notice = show(&why);
                if let Some(opened) = self.opened.as_mut().filter(|_| is_open) {
                    opened.asks = Asks::Answer;
                }
            }
        }
    }

    /// Scrolls back to where there is something to see.
    pub(super) fn scroll_within(&mut self, most: usize) {
        if let Some(opened) = &mut self.opened {
            opened.scroll = opened.scroll.min(most);
        }
    }
}

/// What an answer has led to.
fn told(giving: &Giving, follows: &Follows) -> String {
    let (id, said) = (&giving.question.asked.id, giving.answer.said());
    let run = giving.question.run.short();
    match follows {
        Follows::Nothing => format!("{id} {said}"),
        Follows::Ended => format!("{id} {said}; run {run} has ended"),
        Follows::Heard => format!("{id} {said}; the process that waits goes on"),
        Follows::Started => {
            format!("{id} {said}; run {run} goes on by itself")
        }
        Follows::NotStarted(why) => {
            format!(
                "{id} {said}; unstuck resume {run} goes on with it ({})",
                show(why)
            )
        }
    }
}

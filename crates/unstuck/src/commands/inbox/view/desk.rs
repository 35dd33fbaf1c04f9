//! Does for the inbox whatever may take time: looks into the store, gives answers, starts what follows from them.

use std::io::Read;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use rustix::process::{Pid, Signal, kill_process};
use unstuck_core::RunId;
use unstuck_core::guard::show;
use unstuck_core::question::Answer;
use unstuck_store::{Question, QuestionFilter};

use super::super::watch;
use crate::answering::{self, Given};
use crate::config::Config;
use crate::session::Session;
use crate::started;

/// How often is looked for what comes and goes.
const LOOK: Duration = Duration::from_millis(400);

/// What the person wants.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Request {
    Give(Box<Giving>),
    /// Aborts the runs of all these requests.
    AbortAll(Vec<Question>),
    /// Tries the proposed command on a copy.
    Preview {
        question: Box<Question>,
        network: bool,
    },
    StopPreview,
    /// Who settled this question, how and when.
    Fate(String),
}

/// An answer to exactly what was shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Giving {
    pub(super) question: Question,
    pub(super) answer: Answer,
    pub(super) note: String,
}

/// What the person has to know.
#[derive(Debug)]
pub(super) enum News {
    /// All that waits.
    Waiting(Vec<Question>),
    /// The store cannot be read; it is tried again.
    Trouble(String),
    Given(Box<Giving>, Result<Follows, String>),
    /// So many runs were aborted; why others were not, if some were not.
    AbortedAll {
        count: usize,
        refused: Option<String>,
    },
    Fate {
        id: String,
        text: String,
    },
    Previewed {
        id: String,
        lines: Vec<String>,
    },
    /// A run that was started from here has ended.
    Ended {
        run: RunId,
        code: Option<i32>,
    },
}

/// What follows from an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Follows {
    /// The process that drives the run hears it.
    Heard,
    /// The run goes on in a process that was started for it.
    Started,
    /// Nobody drives the run, and no process could be started.
    NotStarted(String),
    /// Nothing was held up.
    Nothing,
    /// The run has ended.
    Ended,
}

pub(super) struct Desk<'a> {
    config: &'a Config,
    session: &'a Session<'a>,
    news: Sender<News>,
    runs: Vec<(RunId, Child)>,
    preview: Option<Child>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(config: &'a Config, session: &'a Session<'a>, news: Sender<News>) -> Self {
        Self {
            config,
            session,
            news,
            runs: Vec::new(),
            preview: None,
        }
    }

    /// Does what is asked for until nobody can ask any more.
    pub(super) fn serve(&mut self, requests: &Receiver<Request>) {
        loop {
            match requests.recv_timeout(LOOK) {
                Ok(request) => self.fulfil(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.look();
            self.bury();
        }
        self.stop_preview();
    }

    fn fulfil(&mut self, request: Request) {
        match request {
            Request::Give(giving) => {
                let follows = self.give(&giving).map_err(|error| format!("{error:#}"));
                self.tell(News::Given(giving, follows));
            }
            Request::AbortAll(questions) => {
                let news = self.abort_all(&questions);
                self.tell(news);
            }
            Request::Preview { question, network } => self.preview(&question, network),
            Request::StopPreview => self.stop_preview(),
            Request::Fate(id) => {
                let text = watch::fate(&id, self.session);
                self.tell(News::Fate { id, text });
            }
        }
    }

    fn give(&mut self, giving: &Giving) -> Result<Follows> {
        let Giving {
            question,
            answer,
            note,
        } = giving;
        let given = answering::give(question, *answer, note, self.config, self.session)?;
        Ok(match given {
            Given::Heard => Follows::Heard,
            Given::Noted => Follows::Nothing,
            Given::Waits => self.go_on(question),
            Given::Ended(_) => Follows::Ended,
        })
    }

    fn abort_all(&self, questions: &[Question]) -> News {
        let told = |_: &Question, _: &Given| Ok(());
        match answering::abort_each(questions, "", self.config, self.session, told) {
            Ok(aborted) => News::AbortedAll {
                count: aborted.count,
                refused: aborted.refused.first().map(|error| format!("{error:#}")),
            },
            Err(error) => News::AbortedAll {
                count: 0,
                refused: Some(format!("{error:#}")),
            },
        }
    }

    /// Lets the run go on while the person looks at the next question.
    fn go_on(&mut self, question: &Question) -> Follows {
        let project = Path::new(&question.project);
        match started::resume(&question.run, project, self.session) {
            Ok(child) => {
                self.runs.push((question.run.clone(), child));
                Follows::Started
            }
            Err(error) => Follows::NotStarted(error.to_string()),
        }
    }

    fn look(&self) {
        let found = answering::open(&QuestionFilter::default(), self.session);
        self.tell(match found {
            Ok(waiting) => News::Waiting(waiting),
            Err(error) => News::Trouble(format!("{error:#}")),
        });
    }

    fn preview(&mut self, question: &Question, network: bool) {
        self.stop_preview();
        let id = question.asked.id.clone();
        let project = Path::new(&question.project);
        let begun = match self.owner_wants_previews(project) {
            Ok(true) => {
                started::preview(&id, project, network, self.session).map_err(anyhow::Error::from)
            }
            Ok(false) => Err(anyhow!(
                "`preview = false` stands in [recovery] of the project"
            )),
            Err(error) => Err(error),
        };
        let (child, mut reader) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                let lines = vec![format!(
                    "there is no preview: {}",
                    show(&format!("{error:#}"))
                )];
                return self.tell(News::Previewed { id, lines });
            }
        };
        self.preview = Some(child);
        let news = self.news.clone();
        thread::spawn(move || {
            let mut said = Vec::new();
            // What came before it broke off is shown.
            let _ = reader.read_to_end(&mut said);
            let said = String::from_utf8_lossy(&said);
            let lines = said.lines().map(show).collect();
            // Nobody listens any more.
            let _ = news.send(News::Previewed { id, lines });
        });
    }

    /// What counts is what the project itself says.
    fn owner_wants_previews(&self, project: &Path) -> Result<bool> {
        let config = crate::config::load_in(project, self.session.sources())?;
        Ok(config.value("recovery.preview") != Some(false.into()))
    }

    fn stop_preview(&mut self) {
        let Some(mut child) = self.preview.take() else {
            return;
        };
        if matches!(child.try_wait(), Ok(None)) {
            // It is not waited for: it clears up by itself.
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }

    /// Takes leave of processes that have ended, and tells how.
    fn bury(&mut self) {
        let mut ended = Vec::new();
        self.runs.retain_mut(|(run, child)| match child.try_wait() {
            Ok(Some(status)) => {
                ended.push((run.clone(), status.code()));
                false
            }
            _ => true,
        });
        for (run, code) in ended {
            self.tell(News::Ended { run, code });
        }
        if let Some(child) = &mut self.preview
            && matches!(child.try_wait(), Ok(Some(_)))
        {
            self.preview = None;
        }
    }

    fn tell(&self, news: News) {
        // Who has left wants no news.
        let _ = self.news.send(news);
    }
}

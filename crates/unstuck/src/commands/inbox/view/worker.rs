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
use unstuck_core::command_policy::sanitize;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_store::{EscalationFilter, EscalationRow};

use super::super::watch;
use crate::child_process;
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::escalation_answers::{self, AnswerEffect};

/// How often is looked for what comes and goes.
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// What the person wants.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WorkerRequest {
    Answer(Box<PendingAnswer>),
    /// Aborts the runs of all these requests.
    AbortAll(Vec<EscalationRow>),
    /// Tries the proposed command on a copy.
    Preview {
        question: Box<EscalationRow>,
        network: bool,
    },
    StopPreview,
    /// Who settled this question, how and when.
    Resolution(String),
}

/// An answer to exactly what was shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingAnswer {
    pub(super) question: EscalationRow,
    pub(super) answer: EscalationAnswer,
    pub(super) note: String,
}

/// What the person has to know.
#[derive(Debug)]
pub(super) enum WorkerEvent {
    /// All that waits.
    Waiting(Vec<EscalationRow>),
    /// The store cannot be read; it is tried again.
    StoreError(String),
    Answered(Box<PendingAnswer>, Result<AnswerFollowUp, String>),
    /// So many runs were aborted; why others were not, if some were not.
    AbortedAll {
        count: usize,
        refused: Option<String>,
    },
    Resolution {
        id: String,
        text: String,
    },
    PreviewDone {
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
pub(super) enum AnswerFollowUp {
    /// The process that drives the run hears it.
    Delivered,
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
    session: &'a CommandContext<'a>,
    news: Sender<WorkerEvent>,
    runs: Vec<(RunId, Child)>,
    preview: Option<Child>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(
        config: &'a Config,
        session: &'a CommandContext<'a>,
        news: Sender<WorkerEvent>,
    ) -> Self {
        Self {
            config,
            session,
            news,
            runs: Vec::new(),
            preview: None,
        }
    }

    /// Does what is asked for until nobody can ask any more.
    pub(super) fn serve(&mut self, requests: &Receiver<WorkerRequest>) {
        loop {
            match requests.recv_timeout(POLL_INTERVAL) {
                Ok(request) => self.handle(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.poll_store();
            self.reap_children();
        }
        self.stop_preview();
    }

    fn handle(&mut self, request: WorkerRequest) {
        match request {
            WorkerRequest::Answer(giving) => {
                let follows = self
                    .submit_answer(&giving)
                    .map_err(|error| format!("{error:#}"));
                self.send(WorkerEvent::Answered(giving, follows));
            }
            WorkerRequest::AbortAll(questions) => {
                let news = self.abort_all(&questions);
                self.send(news);
            }
            WorkerRequest::Preview { question, network } => self.preview(&question, network),
            WorkerRequest::StopPreview => self.stop_preview(),
            WorkerRequest::Resolution(id) => {
                let text = watch::resolution_text(&id, self.session);
                self.send(WorkerEvent::Resolution { id, text });
            }
        }
    }

    fn submit_answer(&mut self, giving: &PendingAnswer) -> Result<AnswerFollowUp> {
        let PendingAnswer {
            question,
            answer,
            note,
        } = giving;
        let given =
            escalation_answers::answer_as_user(question, *answer, note, self.config, self.session)?;
        Ok(match given {
            AnswerEffect::Delivered => AnswerFollowUp::Delivered,
            AnswerEffect::Recorded => AnswerFollowUp::Nothing,
            AnswerEffect::NeedsResume => self.start_run(question),
            AnswerEffect::Ended(_) => AnswerFollowUp::Ended,
        })
    }

    fn abort_all(&self, questions: &[EscalationRow]) -> WorkerEvent {
        let told = |_: &EscalationRow, _: &AnswerEffect| Ok(());
        match escalation_answers::abort_each(questions, "", self.config, self.session, told) {
            Ok(aborted) => WorkerEvent::AbortedAll {
                count: aborted.count,
                refused: aborted.errors.first().map(|error| format!("{error:#}")),
            },
            Err(error) => WorkerEvent::AbortedAll {
                count: 0,
                refused: Some(format!("{error:#}")),
            },
        }
    }

    /// Lets the run go on while the person looks at the next question.
    fn start_run(&mut self, question: &EscalationRow) -> AnswerFollowUp {
        let project = Path::new(&question.project);
        match child_process::spawn_resume(&question.run, project, self.session) {
            Ok(child) => {
                self.runs.push((question.run.clone(), child));
                AnswerFollowUp::Started
            }
            Err(error) => AnswerFollowUp::NotStarted(error.to_string()),
        }
    }

    fn poll_store(&self) {
        let found =
            escalation_answers::open_escalations(&EscalationFilter::default(), self.session);
        self.send(match found {
            Ok(waiting) => WorkerEvent::Waiting(waiting),
            Err(error) => WorkerEvent::StoreError(format!("{error:#}")),
        });
    }

    fn preview(&mut self, question: &EscalationRow, network: bool) {
        self.stop_preview();
        let id = question.request.id.clone();
        let project = Path::new(&question.project);
        let begun = match self.previews_enabled(project) {
            Ok(true) => child_process::spawn_preview(&id, project, network, self.session)
                .map_err(anyhow::Error::from),
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
                    sanitize(&format!("{error:#}"))
                )];
                return self.send(WorkerEvent::PreviewDone { id, lines });
            }
        };
        self.preview = Some(child);
        let news = self.news.clone();
        thread::spawn(move || {
            let mut said = Vec::new();
            // What came before it broke off is shown.
            let _ = reader.read_to_end(&mut said);
            let said = String::from_utf8_lossy(&said);
            let lines = said.lines().map(sanitize).collect();
            // Nobody listens any more.
            let _ = news.send(WorkerEvent::PreviewDone { id, lines });
        });
    }

    /// What counts is what the project itself says.
    fn previews_enabled(&self, project: &Path) -> Result<bool> {
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
    fn reap_children(&mut self) {
        let mut ended = Vec::new();
        self.runs.retain_mut(|(run, child)| match child.try_wait() {
            Ok(Some(status)) => {
                ended.push((run.clone(), status.code()));
                false
            }
            _ => true,
        });
        for (run, code) in ended {
            self.send(WorkerEvent::Ended { run, code });
        }
        if let Some(child) = &mut self.preview
            && matches!(child.try_wait(), Ok(Some(_)))
        {
            self.preview = None;
        }
    }

    fn send(&self, news: WorkerEvent) {
        // Who has left wants no news.
        let _ = self.news.send(news);
    }
}

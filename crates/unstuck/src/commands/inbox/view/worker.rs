//! Worker of the inbox view for slow operations: reads the store, submits answers and starts runs.

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
use crate::command_context::CommandContext;
use crate::escalation_answers::{self, AnswerEffect};
use crate::unstuck_subprocess;

/// Interval for polling the store.
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// A request to the worker.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum InboxWorkerRequest {
    Answer(Box<AnswerSubmission>),
    /// Aborts the runs of all these requests.
    AbortAll(Vec<EscalationRow>),
    /// Previews the proposed command.
    Preview {
        question: Box<EscalationRow>,
        network: bool,
    },
    StopPreview,
    /// Looks up who resolved this escalation, how and when.
    Resolution(String),
}

/// An answer to submit, bound to the escalation as it was shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AnswerSubmission {
    pub(super) question: EscalationRow,
    pub(super) answer: EscalationAnswer,
    pub(super) note: String,
}

/// An event for the view.
#[derive(Debug)]
pub(super) enum InboxWorkerEvent {
    /// All pending escalations.
    Waiting(Vec<EscalationRow>),
    /// The store cannot be read; it will be polled again.
    StoreError(String),
    Answered(Box<AnswerSubmission>, Result<AnswerFollowUp, String>),
    /// Number of aborted runs, and why others were refused.
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
    /// A run that was started by this worker has ended.
    Ended {
        run: RunId,
        code: Option<i32>,
    },
}

/// Effect of a recorded answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerFollowUp {
    /// The process that supervises the run receives it.
    Delivered,
    /// The run continues in a new background process.
    Started,
    /// The run is not active, and no process could be started.
    NotStarted(String),
    /// No run was waiting for the answer.
    Nothing,
    /// The run has ended.
    Ended,
}

/// The background worker of the inbox view: polls the store, submits answers, and starts runs and previews.
pub(super) struct InboxWorker<'a> {
    session: &'a CommandContext<'a>,
    news: Sender<InboxWorkerEvent>,
    runs: Vec<(RunId, Child)>,
    preview: Option<Child>,
}

impl<'a> InboxWorker<'a> {
    pub(super) fn new(session: &'a CommandContext<'a>, news: Sender<InboxWorkerEvent>) -> Self {
        Self {
            session,
            news,
            runs: Vec::new(),
            preview: None,
        }
    }

    /// Handles requests until the channel is closed.
    pub(super) fn serve(&mut self, requests: &Receiver<InboxWorkerRequest>) {
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

    fn handle(&mut self, request: InboxWorkerRequest) {
        match request {
            InboxWorkerRequest::Answer(giving) => {
                let follows = self
                    .submit_answer(&giving)
                    .map_err(|error| format!("{error:#}"));
                self.send(InboxWorkerEvent::Answered(giving, follows));
            }
            InboxWorkerRequest::AbortAll(questions) => {
                let news = self.abort_all(&questions);
                self.send(news);
            }
            InboxWorkerRequest::Preview { question, network } => self.preview(&question, network),
            InboxWorkerRequest::StopPreview => self.stop_preview(),
            InboxWorkerRequest::Resolution(id) => {
                let text = watch::resolution_text(&id, self.session);
                self.send(InboxWorkerEvent::Resolution { id, text });
            }
        }
    }

    fn submit_answer(&mut self, giving: &AnswerSubmission) -> Result<AnswerFollowUp> {
        let AnswerSubmission {
            question,
            answer,
            note,
        } = giving;
        let given = escalation_answers::answer_as_user(question, *answer, note, self.session)?;
        Ok(match given {
            AnswerEffect::Delivered => AnswerFollowUp::Delivered,
            AnswerEffect::Recorded => AnswerFollowUp::Nothing,
            AnswerEffect::NeedsResume => self.start_run(question),
            AnswerEffect::Ended(_) => AnswerFollowUp::Ended,
        })
    }

    fn abort_all(&self, questions: &[EscalationRow]) -> InboxWorkerEvent {
        let told = |_: &EscalationRow, _: &AnswerEffect| Ok(());
        match escalation_answers::abort_each(questions, "", self.session, told) {
            Ok(aborted) => InboxWorkerEvent::AbortedAll {
                count: aborted.count,
                refused: aborted.errors.first().map(|error| format!("{error:#}")),
            },
            Err(error) => InboxWorkerEvent::AbortedAll {
                count: 0,
                refused: Some(format!("{error:#}")),
            },
        }
    }

    /// Resumes the run in the background while the user views the next request.
    fn start_run(&mut self, question: &EscalationRow) -> AnswerFollowUp {
        let project = Path::new(&question.project);
        match unstuck_subprocess::spawn_resume(&question.run, project, self.session) {
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
            Ok(waiting) => InboxWorkerEvent::Waiting(waiting),
            Err(error) => InboxWorkerEvent::StoreError(format!("{error:#}")),
        });
    }

    fn preview(&mut self, question: &EscalationRow, network: bool) {
        self.stop_preview();
        let id = question.request.id.clone();
        let project = Path::new(&question.project);
        let begun = match self.previews_enabled(project) {
            Ok(true) => unstuck_subprocess::spawn_preview(&id, project, network, self.session)
                .map_err(anyhow::Error::from),
            Ok(false) => Err(anyhow!(
                "disabled by `preview = false` in [recovery] of the project"
            )),
            Err(error) => Err(error),
        };
        let (child, mut reader) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                let lines = vec![format!(
                    "cannot preview: {}",
                    sanitize(&format!("{error:#}"))
                )];
                return self.send(InboxWorkerEvent::PreviewDone { id, lines });
            }
        };
        self.preview = Some(child);
        let news = self.news.clone();
        thread::spawn(move || {
            let mut said = Vec::new();
            // After a read error, the output so far is shown.
            let _ = reader.read_to_end(&mut said);
            let said = String::from_utf8_lossy(&said);
            let lines = said.lines().map(sanitize).collect();
            // Fails only if the view has closed.
            let _ = news.send(InboxWorkerEvent::PreviewDone { id, lines });
        });
    }

    /// Only the project's own configuration applies here.
    fn previews_enabled(&self, project: &Path) -> Result<bool> {
        let config = crate::config::load_in(project, self.session.sources())?;
        Ok(config.value("recovery.preview") != Some(false.into()))
    }

    fn stop_preview(&mut self) {
        let Some(mut child) = self.preview.take() else {
            return;
        };
        if matches!(child.try_wait(), Ok(None)) {
            // Not awaited: the process cleans up after itself.
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }

    /// Reaps child processes that have ended, and reports their exit codes.
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
            self.send(InboxWorkerEvent::Ended { run, code });
        }
        if let Some(child) = &mut self.preview
            && matches!(child.try_wait(), Ok(Some(_)))
        {
            self.preview = None;
        }
    }

    fn send(&self, news: InboxWorkerEvent) {
        // A view that has closed needs no events.
        let _ = self.news.send(news);
    }
}

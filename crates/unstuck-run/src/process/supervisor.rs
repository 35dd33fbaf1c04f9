//! Owns a reaper and runs one child after the other through it.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use std::os::unix::process::CommandExt;

use tokio::sync::{mpsc, watch};

use crate::reaper;
use crate::reaper::cgroup::Cgroup;
use crate::reaper::wire::{Report, Request};

use super::attempt::Attempt;
use super::ended::Ended;
use super::error::ProcessError;
use super::identity::ProcessId;
use super::link::Link;
use super::orphans::Orphans;
use super::sink::Sink;
use super::spec::{Spec, Stop};
use super::stdin::Stdin;

/// The program that is the reaper when its first argument is [`reaper::REAPER`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaperProgram {
    /// Where it is.
    pub program: PathBuf,
}

impl ReaperProgram {
    /// The program that runs now, even if its file was replaced meanwhile.
    pub fn own() -> Self {
        Self {
            program: PathBuf::from("/proc/self/exe"),
        }
    }
}

/// Sends signals to whatever child runs at the moment.
#[derive(Debug, Clone)]
pub struct Remote(mpsc::UnboundedSender<i32>);

impl Remote {
    /// Passes a signal on to the child's group; without a child, or for an unknown signal, nothing happens.
    pub fn signal(&self, signal: i32) {
        // Without a supervisor there is no child either.
        let _ = self.0.send(signal);
    }
}

/// Runs one child at a time; several supervisors in one process do not disturb each other.
///
/// It needs a tokio runtime. Dropping it ends what still runs and waits for that, a third of a second at most as a
/// rule.
#[derive(Debug)]
pub struct Supervisor {
    pub(super) program: PathBuf,
    pub(super) link: Link,
    pub(super) id: ProcessId,
    pub(super) signals: mpsc::UnboundedReceiver<i32>,
    pub(super) state: State,
    reaper: Child,
    cgroup: Option<PathBuf>,
    remote: Remote,
}

/// What the reaper does, as far as we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    /// It was asked to start a child and has not told its end.
    Busy {
        child: Option<u32>,
    },
    Dead,
}

impl Supervisor {
    /// Starts a reaper.
    pub fn start(reaper: &ReaperProgram) -> Result<Self, ProcessError> {
        let (send, signals) = mpsc::unbounded_channel();
        let (link, child, id) = start(&reaper.program)?;
        Ok(Self {
            program: reaper.program.clone(),
            link,
            id,
            signals,
            state: State::Idle,
            reaper: child,
            cgroup: None,
            remote: Remote(send),
        })
    }

    /// Runs a command until nothing of it is left.
    ///
    /// Dropping the future ends the command at once. A child that fails is an [`Ended`], not an error. If the reaper was
    /// killed before, a new one is started.
    pub async fn run(
        &mut self,
        spec: &Spec,
        stdin: &mut Stdin,
        sink: &mut dyn Sink,
        stop: watch::Receiver<Stop>,
    ) -> Result<Ended, ProcessError> {
        self.settle().await?;
        let attempt = Attempt::new(self, spec, stdin, sink, stop)?;
        match attempt.run(spec).await {
            Err(ProcessError::ReaperDied) => Err(self.bury().await),
            other => other,
        }
    }

    /// Sends signals to the child while [`Supervisor::run`] runs it.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// The reaper, so that another process can tell whether it is still alive.
    pub fn reaper(&self) -> ProcessId {
        self.id
    }

    /// Waits for the end of a child whose run was dropped, and replaces a dead reaper.
    async fn settle(&mut self) -> Result<(), ProcessError> {
        while let State::Busy { .. } = self.state {
            match self.link.next().await {
                Ok(Some(report)) => self.note(&report),
                Ok(None) | Err(_) => drop(self.bury().await),
            }
        }
        if self.state == State::Dead {
            (self.link, self.reaper, self.id) = start(&self.program)?;
            self.state = State::Idle;
        }
        while self.signals.try_recv().is_ok() {}
        Ok(())
    }

    /// Keeps in mind what a report means for the next run.
    pub(super) fn note(&mut self, report: &Report) {
        match report {
            Report::Gathered { cgroup } => self.cgroup = Some(PathBuf::from(cgroup.clone())),
            Report::Started { pid } => self.state = State::Busy { child: Some(*pid) },
            Report::Refused(_) | Report::Ended { .. } => self.state = State::Idle,
            Report::Stopped { .. } => {}
        }
    }

    /// Cleans up after a reaper that was killed.
    async fn bury(&mut self) -> ProcessError {
        let child = match self.state {
            State::Busy { child } => child,
            State::Idle | State::Dead => None,
        };
        self.state = State::Dead;
        // It is gone; this only takes its status off the table.
        let _ = self.reaper.kill();
        let _ = self.reaper.wait();
        let orphans = Orphans {
            reaper: self.id,
            child,
            cgroup: self.cgroup.take().map(Cgroup::at),
        };
        orphans.kill().await;
        ProcessError::ReaperDied
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let State::Busy { .. } = self.state {
            self.link.try_send(&Request::End { grace_ms: 0 });
        }
        self.link.close();
        let _ = self.reaper.wait();
    }
}

fn start(program: &PathBuf) -> Result<(Link, Child, ProcessId), ProcessError> {
    launch(program).map_err(|source| ProcessError::NoReaper {
        program: program.clone(),
        source,
    })
}

fn launch(program: &PathBuf) -> io::Result<(Link, Child, ProcessId)> {
    let (link, theirs) = Link::pair()?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the reaper starts everything else, and somebody must start the reaper"
    )]
    let mut command = Command::new(program);
    // In a group of its own no Ctrl-C reaches it.
    let child = command
        .arg(reaper::REAPER)
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let pid = child.id();
    let id = ProcessId::of(pid).unwrap_or(ProcessId { pid, started: 0 });
    Ok((link, child, id))
}

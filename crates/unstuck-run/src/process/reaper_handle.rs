//! A reaper that was started: the connection to it and what it does, as far as we know.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tokio::sync::mpsc;

use crate::host::ProcessId;
use crate::reaper;
use crate::reaper::cgroup::Cgroup;
use crate::reaper::wire::{Report, Request};

use super::error::ProcessError;
use super::link::Link;
use super::orphans::Orphans;

/// A reaper, which is replaced when it was killed; dropping it ends what still runs and waits for that.
#[derive(Debug)]
pub(super) struct ReaperHandle {
    pub(super) program: PathBuf,
    pub(super) link: Link,
    pub(super) id: ProcessId,
    /// What it has yet to pass on to the child.
    pub(super) signals: mpsc::UnboundedReceiver<i32>,
    pub(super) state: State,
    process: Child,
    cgroup: Option<PathBuf>,
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

impl ReaperHandle {
    /// Starts a reaper.
    pub(super) fn start(
        program: PathBuf,
        signals: mpsc::UnboundedReceiver<i32>,
    ) -> Result<Self, ProcessError> {
        let (link, process, id) = start(&program)?;
        Ok(Self {
            program,
            link,
            id,
            signals,
            state: State::Idle,
            process,
            cgroup: None,
        })
    }

    /// Waits for the end of a child whose run was dropped, and replaces a dead reaper.
    pub(super) async fn settle(&mut self) -> Result<(), ProcessError> {
        while let State::Busy { .. } = self.state {
            match self.link.next().await {
                Ok(Some(report)) => self.note(&report),
                Ok(None) | Err(_) => drop(self.bury().await),
            }
        }
        if self.state == State::Dead {
            (self.link, self.process, self.id) = start(&self.program)?;
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
            Report::Stopped { .. } | Report::Interrupted => {}
        }
    }

    /// Cleans up after a reaper that was killed.
    pub(super) async fn bury(&mut self) -> ProcessError {
        let child = match self.state {
            State::Busy { child } => child,
            State::Idle | State::Dead => None,
        };
        self.state = State::Dead;
        // It is gone; this only takes its status off the table.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let orphans = Orphans {
            reaper: self.id,
            child,
            cgroup: self.cgroup.take().map(Cgroup::at),
        };
        orphans.kill().await;
        ProcessError::ReaperDied
    }
}

impl Drop for ReaperHandle {
    fn drop(&mut self) {
        if let State::Busy { .. } = self.state {
            self.link.try_send(&Request::End { grace_ms: 0 });
        }
        self.link.close();
        let _ = self.process.wait();
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
    // In a group of its own no Ctrl-C reaches it, unless it joins that of a child.
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

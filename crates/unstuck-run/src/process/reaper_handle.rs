//! A running reaper: its connection and its known state.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tokio::sync::mpsc;

use crate::os_processes::ProcessId;
use crate::reaper;
use crate::reaper::cgroup::Cgroup;
use crate::reaper::wire::{ReaperReport, ReaperRequest};

use super::error::ProcessError;
use super::killed_reaper_cleanup::OrphanedProcesses;
use super::reaper_connection::ReaperConnection;

/// A reaper that is replaced if it was killed; dropping it ends what still runs and waits for that.
#[derive(Debug)]
pub(super) struct ReaperHandle {
    pub(super) program: PathBuf,
    pub(super) connection: ReaperConnection,
    pub(super) id: ProcessId,
    /// Signals that are not yet forwarded to the child.
    pub(super) signals: mpsc::UnboundedReceiver<i32>,
    pub(super) state: ReaperState,
    process: Child,
    cgroup: Option<PathBuf>,
}

/// The known state of the reaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaperState {
    Idle,
    /// It was asked to start a child and has not reported the end.
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
        let (link, process, id) = start_reaper(&program)?;
        Ok(Self {
            program,
            connection: link,
            id,
            signals,
            state: ReaperState::Idle,
            process,
            cgroup: None,
        })
    }

    /// Waits for the end of a child whose run was dropped, and replaces a dead reaper.
    pub(super) async fn ensure_idle(&mut self) -> Result<(), ProcessError> {
        while let ReaperState::Busy { .. } = self.state {
            match self.connection.next_report().await {
                Ok(Some(report)) => self.note_report(&report),
                Ok(None) | Err(_) => drop(self.clean_up_dead_reaper().await),
            }
        }
        if self.state == ReaperState::Dead {
            (self.connection, self.process, self.id) = start_reaper(&self.program)?;
            self.state = ReaperState::Idle;
        }
        while self.signals.try_recv().is_ok() {}
        Ok(())
    }

    /// Updates the state by a report.
    pub(super) fn note_report(&mut self, report: &ReaperReport) {
        match report {
            ReaperReport::MovedToCgroup { cgroup } => {
                self.cgroup = Some(PathBuf::from(cgroup.clone()))
            }
            ReaperReport::Started { pid } => self.state = ReaperState::Busy { child: Some(*pid) },
            ReaperReport::SpawnFailed(_) | ReaperReport::Ended { .. } => {
                self.state = ReaperState::Idle
            }
            ReaperReport::Stopped { .. } | ReaperReport::Interrupted => {}
        }
    }

    /// Cleans up after a reaper that was killed.
    pub(super) async fn clean_up_dead_reaper(&mut self) -> ProcessError {
        let child = match self.state {
            ReaperState::Busy { child } => child,
            ReaperState::Idle | ReaperState::Dead => None,
        };
        self.state = ReaperState::Dead;
        // It is gone; this only reaps its exit status.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let orphans = OrphanedProcesses {
            reaper: self.id,
            child,
            cgroup: self.cgroup.take().map(Cgroup::from_path),
        };
        orphans.kill().await;
        ProcessError::ReaperDied
    }
}

impl Drop for ReaperHandle {
    fn drop(&mut self) {
        if let ReaperState::Busy { .. } = self.state {
            self.connection
                .try_send(&ReaperRequest::End { grace_ms: 0 });
        }
        self.connection.close();
        let _ = self.process.wait();
    }
}

fn start_reaper(program: &PathBuf) -> Result<(ReaperConnection, Child, ProcessId), ProcessError> {
    spawn_reaper(program).map_err(|source| ProcessError::ReaperStartFailed {
        program: program.clone(),
        source,
    })
}

fn spawn_reaper(program: &PathBuf) -> io::Result<(ReaperConnection, Child, ProcessId)> {
    let (link, theirs) = ReaperConnection::pair()?;
    #[expect(
        clippy::disallowed_methods,
        reason = "starts the reaper, which starts all other processes"
    )]
    let mut command = Command::new(program);
    // In a process group of its own it receives no Ctrl-C, unless it joins that of a child.
    let child = command
        .arg(reaper::REAPER_ARG)
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let pid = child.id();
    let id = ProcessId::from_pid(pid).unwrap_or(ProcessId { pid, started: 0 });
    Ok((link, child, id))
}

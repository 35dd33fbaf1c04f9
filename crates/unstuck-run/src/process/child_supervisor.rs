//! Owns a reaper and runs one child after the other through it.

use std::path::PathBuf;

use tokio::sync::{mpsc, watch};
use unstuck_repair::sandbox::own_program;

use crate::os_processes::ProcessId;

use super::child_attempt::ChildAttempt;
use super::error::ProcessError;
use super::output_sink::OutputSink;
use super::process_result::ProcessResult;
use super::reaper_handle::ReaperHandle;
use super::spec::{AttemptStopRequest, ProcessSpec};
use super::stdin::Stdin;

/// The program that becomes the reaper if its first argument is [`REAPER_ARG`](crate::reaper::REAPER_ARG).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaperProgram {
    /// Path of the program.
    pub program: PathBuf,
}

impl ReaperProgram {
    /// Returns the running program; on Linux even if its file was replaced meanwhile.
    pub fn own() -> Self {
        Self {
            program: own_program(),
        }
    }
}

/// Sends signals to the current child.
#[derive(Debug, Clone)]
pub struct ChildSignalSender(mpsc::UnboundedSender<i32>);

impl ChildSignalSender {
    /// Sends a signal to the child's group; does nothing without a child or for an unknown signal.
    pub fn signal(&self, signal: i32) {
        // Without a supervisor there is no child either.
        let _ = self.0.send(signal);
    }
}

/// Runs one child at a time; several supervisors in one process are independent.
///
/// It needs a tokio runtime. Dropping it ends what still runs and waits for that, usually a third of a second at most.
#[derive(Debug)]
pub struct ChildSupervisor {
    reaper: ReaperHandle,
    remote: ChildSignalSender,
}

impl ChildSupervisor {
    /// Starts a reaper.
    pub fn start(reaper: &ReaperProgram) -> Result<Self, ProcessError> {
        let (send, signals) = mpsc::unbounded_channel();
        Ok(Self {
            reaper: ReaperHandle::start(reaper.program.clone(), signals)?,
            remote: ChildSignalSender(send),
        })
    }

    /// Runs a command until none of its processes is left.
    ///
    /// Dropping the future ends the command at once. A child that fails is a [`ProcessResult`], not an error. If the
    /// reaper was killed before, a new one is started.
    pub async fn run(
        &mut self,
        spec: &ProcessSpec,
        stdin: &mut Stdin,
        sink: &mut dyn OutputSink,
        stop: watch::Receiver<AttemptStopRequest>,
    ) -> Result<ProcessResult, ProcessError> {
        self.reaper.ensure_idle().await?;
        let attempt = ChildAttempt::new(&mut self.reaper, spec, stdin, sink, stop)?;
        match attempt.run(spec).await {
            Err(ProcessError::ReaperDied) => Err(self.reaper.clean_up_dead_reaper().await),
            other => other,
        }
    }

    /// Returns a sender of signals to the child of [`ChildSupervisor::run`].
    pub fn signal_sender(&self) -> ChildSignalSender {
        self.remote.clone()
    }

    /// Returns the process id of the reaper, so that another process can check if it is alive.
    pub fn reaper_id(&self) -> ProcessId {
        self.reaper.id
    }
}

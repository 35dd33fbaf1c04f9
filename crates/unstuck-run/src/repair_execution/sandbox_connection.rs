//! Our end of the connection to a sandbox.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use unstuck_repair::sandbox::ConfinementReport;
use unstuck_repair::sandbox::wire::{self, CommandExit, SandboxLifecycleEvent, SandboxRequest};

use super::job::RepairJob;

/// Largest report of a sandbox.
const MAX_REPORT_BYTES: usize = 1024 * 1024;

/// A connection over which a request was sent.
#[derive(Debug)]
pub(super) struct SandboxConnection(UnixStream);

impl SandboxConnection {
    /// Sends a request with the handles of a job; returns our end and the sandbox's.
    pub(super) fn open(order: &SandboxRequest, job: &RepairJob<'_>) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        wire::send_request(&ours, order, job.root, job.folder)?;
        Ok((Self(ours), theirs.into()))
    }

    /// Reads the report of the sandbox; to be called when all its processes have ended.
    pub(super) fn read_report(self) -> io::Result<SandboxReport> {
        self.0.set_nonblocking(true)?;
        let mut bytes = Vec::new();
        let read = self.0.take(MAX_REPORT_BYTES as u64).read_to_end(&mut bytes);
        if let Err(error) = read
            && error.kind() != io::ErrorKind::WouldBlock
        {
            return Err(error);
        }
        let mut told = SandboxReport::default();
        while let Some(report) = wire::take_event(&mut bytes)? {
            told.note(report);
        }
        Ok(told)
    }
}

/// The report of a sandbox.
#[derive(Debug, Default)]
pub(super) struct SandboxReport {
    pub(super) confinement: Option<ConfinementReport>,
    pub(super) programs: Vec<PathBuf>,
    pub(super) failure: Option<SandboxSetupFailure>,
    pub(super) refusal: Option<String>,
    pub(super) end: Option<CommandExit>,
    pub(super) leftover_count: u32,
    pub(super) removed_injections: Vec<PathBuf>,
    pub(super) discarded_writes: Vec<PathBuf>,
    pub(super) conflicting_git_changes: Vec<PathBuf>,
    /// True if the sandbox has cleaned up itself.
    pub(super) is_cleared: bool,
}

/// The error of a sandbox that could not be set up.
#[derive(Debug)]
pub(super) struct SandboxSetupFailure {
    pub(super) operation: String,
    pub(super) reason: String,
    pub(super) without_namespaces: bool,
}

impl SandboxReport {
    fn note(&mut self, report: SandboxLifecycleEvent) {
        match report {
            SandboxLifecycleEvent::Ready {
                confinement: effective,
                programs,
            } => {
                self.confinement = Some(effective);
                self.programs = programs;
            }
            SandboxLifecycleEvent::SetupFailed {
                operation: doing,
                error,
                without_namespaces,
            } => {
                self.failure = Some(SandboxSetupFailure {
                    operation: doing,
                    reason: error,
                    without_namespaces,
                });
            }
            SandboxLifecycleEvent::Refused { reason } => self.refusal = Some(reason),
            SandboxLifecycleEvent::Ended {
                end,
                leftover_count: left,
            } => {
                self.end = Some(end);
                self.leftover_count = left;
            }
            SandboxLifecycleEvent::Cleared {
                removed_injections: planted,
                discarded_writes: discarded,
                conflicting_git_changes: overtaken,
            } => {
                self.is_cleared = true;
                self.removed_injections = planted;
                self.discarded_writes = discarded;
                self.conflicting_git_changes = overtaken;
            }
        }
    }
}

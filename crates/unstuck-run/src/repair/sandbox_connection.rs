//! Our end of the link to a sandbox.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use unstuck_repair::sandbox::ConfinementReport;
use unstuck_repair::sandbox::wire::{self, CommandExit, SandboxEvent, SandboxRequest};

use super::job::RepairJob;

/// A sandbox never says more than this.
const MAX_REPORT_BYTES: usize = 1024 * 1024;

/// A link over which an order was sent.
#[derive(Debug)]
pub(super) struct SandboxConnection(UnixStream);

impl SandboxConnection {
    /// Sends an order with the handles of a job; returns our end and the one for the sandbox.
    pub(super) fn open(order: &SandboxRequest, job: &RepairJob<'_>) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        wire::send_request(&ours, order, job.root, job.folder)?;
        Ok((Self(ours), theirs.into()))
    }

    /// What the sandbox told; asked when everything has ended and nobody else holds the other end.
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

/// What a sandbox told.
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
    /// Whether the sandbox has cleared up itself.
    pub(super) is_cleared: bool,
}

/// Why it could not be set up.
#[derive(Debug)]
pub(super) struct SandboxSetupFailure {
    pub(super) operation: String,
    pub(super) reason: String,
    pub(super) without_namespaces: bool,
}

impl SandboxReport {
    fn note(&mut self, report: SandboxEvent) {
        match report {
            SandboxEvent::Ready {
                confinement: effective,
                programs,
            } => {
                self.confinement = Some(effective);
                self.programs = programs;
            }
            SandboxEvent::SetupFailed {
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
            SandboxEvent::Refused { reason } => self.refusal = Some(reason),
            SandboxEvent::Ended {
                end,
                leftover_count: left,
            } => {
                self.end = Some(end);
                self.leftover_count = left;
            }
            SandboxEvent::Cleared {
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

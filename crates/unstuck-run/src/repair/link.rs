//! Our end of the link to a sandbox.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use unstuck_repair::sandbox::Effective;
use unstuck_repair::sandbox::wire::{self, End, Order, Report};

use super::job::Job;

/// A sandbox never says more than this.
const MOST: usize = 1024 * 1024;

/// A link over which an order was sent.
#[derive(Debug)]
pub(super) struct Link(UnixStream);

impl Link {
    /// Sends an order with the handles of a job; returns our end and the one for the sandbox.
    pub(super) fn open(order: &Order, job: &Job<'_>) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        wire::send(&ours, order, job.root, job.folder)?;
        Ok((Self(ours), theirs.into()))
    }

    /// What the sandbox told; asked when everything has ended and nobody else holds the other end.
    pub(super) fn told(self) -> io::Result<Told> {
        self.0.set_nonblocking(true)?;
        let mut bytes = Vec::new();
        let read = self.0.take(MOST as u64).read_to_end(&mut bytes);
        if let Err(error) = read
            && error.kind() != io::ErrorKind::WouldBlock
        {
            return Err(error);
        }
        let mut told = Told::default();
        while let Some(report) = wire::take(&mut bytes)? {
            told.note(report);
        }
        Ok(told)
    }
}

/// What a sandbox told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) effective: Option<Effective>,
    pub(super) programs: Vec<PathBuf>,
    pub(super) failure: Option<Failure>,
    pub(super) refusal: Option<String>,
    pub(super) end: Option<End>,
    pub(super) left: u32,
    pub(super) planted: Vec<PathBuf>,
    pub(super) discarded: Vec<PathBuf>,
    pub(super) overtaken: Vec<PathBuf>,
    /// Whether the sandbox has cleared up itself.
    pub(super) is_cleared: bool,
}

/// Why it could not be set up.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) doing: String,
    pub(super) why: String,
    pub(super) without_namespaces: bool,
}

impl Told {
    fn note(&mut self, report: Report) {
        match report {
            Report::Ready {
                effective,
                programs,
            } => {
                self.effective = Some(effective);
                self.programs = programs;
            }
            Report::SetUp {
                doing,
                error,
                without_namespaces,
            } => {
                self.failure = Some(Failure {
                    doing,
                    why: error,
                    without_namespaces,
                });
            }
            Report::Refused { reason } => self.refusal = Some(reason),
            Report::Ended { end, left } => {
                self.end = Some(end);
                self.left = left;
            }
            Report::Cleared {
                planted,
                discarded,
                overtaken,
            } => {
                self.is_cleared = true;
                self.planted = planted;
                self.discarded = discarded;
                self.overtaken = overtaken;
            }
        }
    }
}

//! Connects the three streams of a child with us, by pipes or by a pseudo-terminal.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::os_processes::ChildExitStatus;
use crate::reaper;

use super::async_fd::{self, FdReader};
use super::error::{ProcessError, ProcessIoContext};
use super::output_stream::OutputStream;
use super::pty::Pty;
use super::spec::{ProcessSpec, StreamWiring};
use super::stdin::{self, EndOfInput, Stdin, StdinFeed};
use super::user_terminal::UserTerminal;

/// Our ends of the streams of one attempt.
pub(super) struct ChildStreams<'s> {
    pub(super) stdout: OutputStream,
    pub(super) stderr: OutputStream,
    pub(super) feed: Option<StdinFeed<'s>>,
    pub(super) terminal: Option<UserTerminal>,
    pub(super) pty: Option<Pty>,
    refusal: Option<File>,
}

/// The child's ends of the streams.
pub(super) struct ChildEnds([OwnedFd; 3]);

impl ChildEnds {
    /// Borrows the ends for sending.
    pub(super) fn borrow(&self) -> [BorrowedFd<'_>; 3] {
        self.0.each_ref().map(AsFd::as_fd)
    }
}

impl<'s> ChildStreams<'s> {
    /// Opens the streams as the spec requires.
    pub(super) fn open(
        spec: &ProcessSpec,
        stdin: &'s mut Stdin,
    ) -> Result<(Self, ChildEnds), ProcessError> {
        let terminal = match stdin.terminal() {
            Some(descriptor) => {
                UserTerminal::borrow_if_foreground(descriptor).context("inspect the terminal")?
            }
            None => None,
        };
        match spec.wiring {
            StreamWiring::Pipes => Self::pipes(stdin, terminal),
            StreamWiring::Pty => Self::pty(stdin, terminal),
        }
    }

    fn pipes(
        stdin: &'s mut Stdin,
        terminal: Option<UserTerminal>,
    ) -> Result<(Self, ChildEnds), ProcessError> {
        let (input, feed) = stdin.for_pipes()?;
        let (stdout, output) = open_output_stream()?;
        let (stderr, errors) = open_output_stream()?;
        let streams = Self {
            stdout,
            stderr,
            feed,
            terminal,
            pty: None,
            refusal: None,
        };
        Ok((streams, ChildEnds([input, output, errors])))
    }

    fn pty(
        stdin: &'s mut Stdin,
        mut terminal: Option<UserTerminal>,
    ) -> Result<(Self, ChildEnds), ProcessError> {
        let pty = Pty::open().context("open a pseudo-terminal")?;
        let feed = match stdin.for_pty()? {
            Some(record) => {
                let writer = pty.writer().context("poll a pseudo-terminal")?;
                Some(StdinFeed::new(record, writer, EndOfInput::PressKey)?)
            }
            None => None,
        };
        let reader = pty.reader().context("poll a pseudo-terminal")?;
        let (refusal, tell) = async_fd::pipe().context("create a pipe")?;
        let ends = [
            stdin::open_dev_null().context("open /dev/null")?,
            tell,
            stdin::open_dev_null().context("open /dev/null")?,
        ];
        if let Some(terminal) = &mut terminal {
            terminal.make_raw();
        }
        let streams = Self {
            stdout: OutputStream::new(Some(reader)),
            stderr: OutputStream::new(None),
            feed,
            terminal,
            pty: Some(pty),
            refusal: Some(File::from(refusal)),
        };
        Ok((streams, ChildEnds(ends)))
    }

    /// Returns the program, the name under which it is run, and its arguments: with a pseudo-terminal it is the reaper's own program, which then
    /// executes the other.
    pub(super) fn command(
        &self,
        spec: &ProcessSpec,
        reaper: &Path,
    ) -> (OsString, Option<OsString>, Vec<OsString>) {
        let Some(pty) = &self.pty else {
            let program = spec.program.clone();
            return (program, spec.arg0.clone(), spec.arguments.clone());
        };
        let name = spec.arg0.clone().unwrap_or_else(|| spec.program.clone());
        let before = [reaper::TTY_ARG.into(), pty.path().clone(), name];
        let arguments = before.into_iter().chain([spec.program.clone()]);
        (
            reaper.into(),
            None,
            arguments.chain(spec.arguments.iter().cloned()).collect(),
        )
    }

    /// Returns why the program behind the pseudo-terminal could not be started; to be called when everything has ended.
    pub(super) fn spawn_failure(&mut self) -> Option<ChildExitStatus> {
        let mut text = Vec::new();
        self.refusal.take()?.read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

fn open_output_stream() -> Result<(OutputStream, OwnedFd), ProcessError> {
    let (read, write) = async_fd::pipe().context("create a pipe")?;
    let reader = FdReader::from_owned(read).context("poll a pipe")?;
    Ok((OutputStream::new(Some(reader)), write))
}

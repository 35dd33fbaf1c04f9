//! Connects the three streams of a child with us, by pipes or by a pseudo-terminal.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::host::Status;
use crate::reaper;

use super::channel::{self, Reader};
use super::error::{ProcessError, While};
use super::outlet::Outlet;
use super::pty::Pty;
use super::spec::{Spec, Wiring};
use super::stdin::{self, AtEnd, Feed, Stdin};
use super::terminal::Terminal;

/// Our ends of the streams of one attempt.
pub(super) struct Streams<'s> {
    pub(super) stdout: Outlet,
    pub(super) stderr: Outlet,
    pub(super) feed: Option<Feed<'s>>,
    pub(super) terminal: Option<Terminal>,
    pub(super) pty: Option<Pty>,
    refusal: Option<File>,
}

/// The ends for the child.
pub(super) struct ChildEnds([OwnedFd; 3]);

impl ChildEnds {
    /// As they are sent.
    pub(super) fn borrow(&self) -> [BorrowedFd<'_>; 3] {
        self.0.each_ref().map(AsFd::as_fd)
    }
}

impl<'s> Streams<'s> {
    /// Makes what the spec asks for.
    pub(super) fn open(
        spec: &Spec,
        stdin: &'s mut Stdin,
    ) -> Result<(Self, ChildEnds), ProcessError> {
        let terminal = match stdin.terminal() {
            Some(descriptor) => Terminal::borrow(descriptor).to("look at the terminal")?,
            None => None,
        };
        match spec.wiring {
            Wiring::Pipes => Self::pipes(stdin, terminal),
            Wiring::Pty => Self::pty(stdin, terminal),
        }
    }

    fn pipes(
        stdin: &'s mut Stdin,
        terminal: Option<Terminal>,
    ) -> Result<(Self, ChildEnds), ProcessError> {
        let (input, feed) = stdin.for_pipes()?;
        let (stdout, output) = outlet()?;
        let (stderr, errors) = outlet()?;
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
        mut terminal: Option<Terminal>,
    ) -> Result<(Self, ChildEnds), ProcessError> {
        let pty = Pty::open().to("open a pseudo-terminal")?;
        let feed = match stdin.for_pty()? {
            Some(record) => {
                let writer = pty.writer().to("watch a pseudo-terminal")?;
                Some(Feed::new(record, writer, AtEnd::PressKey)?)
            }
            None => None,
        };
        let reader = pty.reader().to("watch a pseudo-terminal")?;
        let (refusal, tell) = channel::pipe().to("make a pipe")?;
        let ends = [
            stdin::null().to("open /dev/null")?,
            tell,
            stdin::null().to("open /dev/null")?,
        ];
        if let Some(terminal) = &mut terminal {
            terminal.make_raw();
        }
        let streams = Self {
            stdout: Outlet::new(Some(reader)),
            stderr: Outlet::new(None),
            feed,
            terminal,
            pty: Some(pty),
            refusal: Some(File::from(refusal)),
        };
        Ok((streams, ChildEnds(ends)))
    }

    /// The program to start and its arguments: behind a pseudo-terminal it is the reaper's own, which becomes the other.
    pub(super) fn command(&self, spec: &Spec, reaper: &Path) -> (OsString, Vec<OsString>) {
        let Some(pty) = &self.pty else {
            return (spec.program.clone(), spec.arguments.clone());
        };
        let before = [reaper::TTY.into(), pty.path().clone(), "--".into()];
        let arguments = before.into_iter().chain([spec.program.clone()]);
        (
            reaper.into(),
            arguments.chain(spec.arguments.iter().cloned()).collect(),
        )
    }

    /// Why the program behind the pseudo-terminal could not be started; asked when everything has ended.
    pub(super) fn refusal(&mut self) -> Option<Status> {
        let mut text = Vec::new();
        self.refusal.take()?.read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

fn outlet() -> Result<(Outlet, OwnedFd), ProcessError> {
    let (read, write) = channel::pipe().to("make a pipe")?;
    let reader = Reader::ours(read).to("watch a pipe")?;
    Ok((Outlet::new(Some(reader)), write))
}

//! One attempt: everything that can happen while a child runs, and what is done about it.

mod job;
mod stopping;

use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::host::Status;
use crate::reaper::wire::{Report, Request};

use crate::process::deadlines::Deadlines;
use crate::process::ended::{Ended, Limit};
use crate::process::error::{ProcessError, While};
use crate::process::order::order;
use crate::process::reaper_handle::{ReaperHandle, State};
use crate::process::sink::Sink;
use crate::process::spec::{Spec, Stop, Wiring};
use crate::process::stdin::{Stdin, Step};
use crate::process::streams::{ChildEnds, Streams};

const BUFFER: usize = 64 * 1024;
/// How long output may still come when everything has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// A child that runs, and all that is connected to it.
pub(super) struct Attempt<'a> {
    reaper: &'a mut ReaperHandle,
    streams: Streams<'a>,
    child_ends: Option<ChildEnds>,
    sink: &'a mut dyn Sink,
    stop: watch::Receiver<Stop>,
    grace: Duration,
    deadlines: Deadlines,
    resized: Option<SignalStream>,
    /// Tells that the reaper may have been stopped along with the group that it is in.
    children: Option<SignalStream>,
    ending: Option<Cause>,
    is_interrupted: bool,
    buffer: Vec<u8>,
}

/// Why the child was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Limit(Limit),
    Stop,
}

/// Something that happened.
enum Event {
    Report(io::Result<Option<Report>>),
    Stdout,
    Stderr,
    Fed(Step),
    Due,
    Stop(Stop),
    Signal(i32),
    Resized,
    Child,
}

/// What the reaper told about the end.
struct End {
    status: Status,
    left: u32,
    survivors: u32,
}

impl End {
    fn without_child(status: Status) -> Self {
        Self {
            status,
            left: 0,
            survivors: 0,
        }
    }
}

impl<'a> Attempt<'a> {
    /// Prepares everything up to the start.
    pub(super) fn new(
        reaper: &'a mut ReaperHandle,
        spec: &Spec,
        stdin: &'a mut Stdin,
        sink: &'a mut dyn Sink,
        stop: watch::Receiver<Stop>,
    ) -> Result<Self, ProcessError> {
        let resized = match spec.wiring {
            Wiring::Pipes => None,
            Wiring::Pty => Some(signal(SignalKind::window_change()).to("watch the window size")?),
        };
        let (streams, child_ends) = Streams::open(spec, stdin)?;
        let children = match streams.terminal {
            Some(_) => Some(signal(SignalKind::child()).to("watch the reaper")?),
            None => None,
        };
        Ok(Self {
            reaper,
            streams,
            child_ends: Some(child_ends),
            deadlines: Deadlines::new(spec.limits, sink.ticks()),
            sink,
            stop,
            grace: spec.limits.grace,
            resized,
            children,
            ending: None,
            is_interrupted: false,
            buffer: vec![0; BUFFER],
        })
    }

    /// Runs it to its end.
    pub(super) async fn run(mut self, spec: &Spec) -> Result<Ended, ProcessError> {
        if *self.stop.borrow_and_update() != Stop::No {
            self.ending = Some(Cause::Stop);
            let status = Status::CannotStart("it was stopped before it began".into());
            return Ok(self.ended(End::without_child(status)));
        }
        self.start(spec).await?;
        let end = loop {
            let event = self.next().await;
            match self.on(event).await {
                Ok(None) => {}
                Ok(Some(end)) => break end,
                Err(error) => break self.died_together(error).await?,
            }
        };
        // Longer only if somebody outside of our reach has a stream open.
        let _ = timeout(DRAIN, self.drain()).await;
        Ok(self.ended(end))
    }

    async fn start(&mut self, spec: &Spec) -> Result<(), ProcessError> {
        let request = Request::Start(order(spec, &self.streams, self.reaper));
        // Our copies of the child's ends are closed here: a stream ends when the child's copy does.
        let Some(ends) = self.child_ends.take() else {
            return Ok(());
        };
        self.reaper.state = State::Busy { child: None };
        let sent = self.reaper.link.send(&request, &ends.borrow()).await;
        sent.map_err(|_| ProcessError::ReaperDied)
    }

    async fn next(&mut self) -> Event {
        let ReaperHandle { link, signals, .. } = &mut *self.reaper;
        let Streams {
            stdout,
            stderr,
            feed,
            ..
        } = &mut self.streams;
        tokio::select! {
            report = link.next() => Event::Report(report),
            () = stdout.ready() => Event::Stdout,
            () = stderr.ready() => Event::Stderr,
            step = async { match feed { Some(feed) => feed.step().await, None => pending().await } } => Event::Fed(step),
            () = self.deadlines.due() => Event::Due,
            stop = changed(&mut self.stop) => Event::Stop(stop),
            Some(signal) = signals.recv() => Event::Signal(signal),
            () = received(self.resized.as_mut()) => Event::Resized,
            () = received(self.children.as_mut()) => Event::Child,
        }
    }

    async fn on(&mut self, event: Event) -> Result<Option<End>, ProcessError> {
        match event {
            Event::Report(Ok(Some(report))) => return self.reported(report).await,
            Event::Report(Ok(None) | Err(_)) => return Err(ProcessError::ReaperDied),
            Event::Stdout => {
                self.pump_stdout();
                self.look_for_readers().await?;
            }
            Event::Stderr => {
                self.pump_stderr();
                self.look_for_readers().await?;
            }
            Event::Fed(step) => self.fed(step).await?,
            Event::Due => self.due().await?,
            Event::Stop(Stop::No) => {}
            Event::Stop(Stop::Gently(_)) => self.stop().await?,
            Event::Stop(Stop::AtOnce(_)) => self.end(Cause::Stop, Duration::ZERO).await?,
            Event::Signal(signal) => self.ask(&Request::Signal(signal)).await?,
            Event::Child => self.wake_reaper(),
            Event::Resized => {
                if let Some(pty) = &self.streams.pty {
                    pty.resize();
                }
            }
        }
        Ok(None)
    }

    async fn reported(&mut self, report: Report) -> Result<Option<End>, ProcessError> {
        self.reaper.note(&report);
        match report {
            Report::Gathered { .. } => Ok(None),
            Report::Started { pid } => {
                self.hand_over(pid);
                self.sink.started(pid);
                Ok(None)
            }
            Report::Refused(status) => Ok(Some(End::without_child(status))),
            Report::Stopped { signal } => self.suspend(signal).await.map(|()| None),
            Report::Interrupted if self.holds_terminal() => self.interrupted().await.map(|()| None),
            Report::Interrupted => Ok(None),
            Report::Ended {
                status,
                left,
                survivors,
            } => Ok(Some(End {
                status: self.streams.refusal().unwrap_or(status),
                left,
                survivors,
            })),
        }
    }

    async fn ask(&mut self, request: &Request) -> Result<(), ProcessError> {
        let sent = self.reaper.link.send(request, &[]).await;
        sent.map_err(|_| ProcessError::ReaperDied)
    }

    /// Tells what has come, and takes note of a Ctrl-C on its way to a terminal of ours.
    async fn fed(&mut self, step: Step) -> Result<(), ProcessError> {
        let Streams {
            feed: Some(feed),
            pty,
            terminal,
            ..
        } = &mut self.streams
        else {
            return Ok(());
        };
        if let Some((so_far, complete)) = feed.known() {
            self.sink.input(so_far, complete);
        }
        let presses = match (step, pty, terminal) {
            (Step::In, Some(pty), Some(_)) => pty.interrupts(feed.waiting()),
            _ => 0,
        };
        if presses > 0 {
            // The child hears of the key before it hears of us.
            feed.hurry();
        }
        for _ in 0..presses {
            self.interrupted().await?;
        }
        Ok(())
    }

    fn pump_stdout(&mut self) {
        let piece = self.streams.stdout.pump(&mut self.buffer);
        if !piece.is_empty() {
            self.deadlines.wrote();
            self.sink.stdout(piece);
        }
    }

    fn pump_stderr(&mut self) {
        let piece = self.streams.stderr.pump(&mut self.buffer);
        if !piece.is_empty() {
            self.deadlines.wrote();
            self.sink.stderr(piece);
        }
    }

    async fn drain(&mut self) {
        while self.streams.stdout.is_open() {
            self.streams.stdout.ready().await;
            self.pump_stdout();
        }
        while self.streams.stderr.is_open() {
            self.streams.stderr.ready().await;
            self.pump_stderr();
        }
    }

    fn ended(&mut self, end: End) -> Ended {
        let had_terminal = self
            .streams
            .terminal
            .as_ref()
            .is_some_and(|terminal| terminal.is_away());
        let ended_by_key = had_terminal && self.ending.is_none() && end.status.is_interrupt();
        Ended {
            interrupted: self.is_interrupted || ended_by_key,
            timed_out: match self.ending {
                Some(Cause::Limit(limit)) => Some(limit),
                Some(Cause::Stop) | None => None,
            },
            stopped: self.ending == Some(Cause::Stop),
            duration: self.deadlines.elapsed(),
            stdout: self.streams.stdout.close(),
            stderr: self.streams.stderr.close(),
            status: end.status,
            left: end.left,
            survivors: end.survivors,
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let State::Busy { .. } = self.reaper.state {
            self.reaper.link.try_send(&Request::End { grace_ms: 0 });
        }
    }
}

/// The next wish from outside; nobody who could have one is left when the sender is gone.
async fn changed(stop: &mut watch::Receiver<Stop>) -> Stop {
    match stop.changed().await {
        Ok(()) => *stop.borrow_and_update(),
        Err(_) => pending().await,
    }
}

async fn received(stream: Option<&mut SignalStream>) {
    match stream {
        Some(stream) => drop(stream.recv().await),
        None => pending().await,
    }
}

//! Runs one child to its end: handles its output and input, time limits, stop requests and signals.

mod terminal_job;
mod termination;

use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::os_processes::ChildExitStatus;
use crate::reaper::wire::{ReaperReport, ReaperRequest};

use crate::process::child_streams::{ChildEnds, ChildStreams};
use crate::process::deadlines::Deadlines;
use crate::process::error::{ProcessError, ProcessIoContext};
use crate::process::output_sink::OutputSink;
use crate::process::process_result::{ProcessResult, ReachedTimeLimit};
use crate::process::reaper_handle::{ReaperHandle, ReaperState};
use crate::process::spec::{AttemptStopRequest, ProcessSpec, StreamWiring};
use crate::process::start_request::start_request;
use crate::process::stdin::{Stdin, StdinFeedStep};

const BUFFER_BYTES: usize = 64 * 1024;
/// Longest wait for remaining output after the child has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A running child and everything connected to it.
pub(super) struct ChildAttempt<'a> {
    reaper: &'a mut ReaperHandle,
    streams: ChildStreams<'a>,
    child_ends: Option<ChildEnds>,
    sink: &'a mut dyn OutputSink,
    stop: watch::Receiver<AttemptStopRequest>,
    grace: Duration,
    deadlines: Deadlines,
    resize_signals: Option<SignalStream>,
    /// Signals that the reaper may have been stopped together with its group.
    child_signals: Option<SignalStream>,
    end_cause: Option<EndCause>,
    is_interrupted: bool,
    buffer: Vec<u8>,
}

/// The cause for which the child was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndCause {
    Limit(ReachedTimeLimit),
    Stop,
}

/// An event while the child runs.
enum ChildEvent {
    Report(io::Result<Option<ReaperReport>>),
    Stdout,
    Stderr,
    StdinStep(StdinFeedStep),
    Deadline,
    Stop(AttemptStopRequest),
    Signal(i32),
    Resized,
    Child,
}

/// The reaper's report about the end.
struct ChildEndReport {
    status: ChildExitStatus,
    leftover_count: u32,
    survivor_count: u32,
}

impl ChildEndReport {
    fn without_child(status: ChildExitStatus) -> Self {
        Self {
            status,
            leftover_count: 0,
            survivor_count: 0,
        }
    }
}

impl<'a> ChildAttempt<'a> {
    /// Prepares everything up to the start.
    pub(super) fn new(
        reaper: &'a mut ReaperHandle,
        spec: &ProcessSpec,
        stdin: &'a mut Stdin,
        sink: &'a mut dyn OutputSink,
        stop: watch::Receiver<AttemptStopRequest>,
    ) -> Result<Self, ProcessError> {
        let resized = match spec.wiring {
            StreamWiring::Pipes => None,
            StreamWiring::Pty => {
                Some(signal(SignalKind::window_change()).context("watch the window size")?)
            }
        };
        let (streams, child_ends) = ChildStreams::open(spec, stdin)?;
        let children = match streams.terminal {
            Some(_) => Some(signal(SignalKind::child()).context("watch the reaper")?),
            None => None,
        };
        Ok(Self {
            reaper,
            streams,
            child_ends: Some(child_ends),
            deadlines: Deadlines::new(spec.limits, sink.wants_ticks()),
            sink,
            stop,
            grace: spec.limits.grace,
            resize_signals: resized,
            child_signals: children,
            end_cause: None,
            is_interrupted: false,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Runs the child to its end.
    pub(super) async fn run(mut self, spec: &ProcessSpec) -> Result<ProcessResult, ProcessError> {
        if *self.stop.borrow_and_update() != AttemptStopRequest::Continue {
            self.end_cause = Some(EndCause::Stop);
            let status = ChildExitStatus::CannotStart("stopped before it started".into());
            return Ok(self.take_result(ChildEndReport::without_child(status)));
        }
        self.start(spec).await?;
        let end = loop {
            let event = self.next_event().await;
            match self.handle_event(event).await {
                Ok(None) => {}
                Ok(Some(end)) => break end,
                Err(error) => break self.end_after_reaper_death(error).await?,
            }
        };
        // It takes longer only if a process outside of our reach keeps a stream open.
        let _ = timeout(DRAIN_TIMEOUT, self.drain()).await;
        Ok(self.take_result(end))
    }

    async fn start(&mut self, spec: &ProcessSpec) -> Result<(), ProcessError> {
        let request = ReaperRequest::Start(start_request(spec, &self.streams, self.reaper));
        // Our copies of the child's ends are closed here: a stream ends when the child's copy does.
        let Some(ends) = self.child_ends.take() else {
            return Ok(());
        };
        self.reaper.state = ReaperState::Busy { child: None };
        let sent = self.reaper.connection.send(&request, &ends.borrow()).await;
        sent.map_err(|_| ProcessError::ReaperDied)
    }

    async fn next_event(&mut self) -> ChildEvent {
        let ReaperHandle {
            connection: link,
            signals,
            ..
        } = &mut *self.reaper;
        let ChildStreams {
            stdout,
            stderr,
            feed,
            ..
        } = &mut self.streams;
        tokio::select! {
            report = link.next_report() => ChildEvent::Report(report),
            () = stdout.ready() => ChildEvent::Stdout,
            () = stderr.ready() => ChildEvent::Stderr,
            step = async { match feed { Some(feed) => feed.step().await, None => pending().await } } => ChildEvent::StdinStep(step),
            () = self.deadlines.wait_until_due() => ChildEvent::Deadline,
            stop = next_stop(&mut self.stop) => ChildEvent::Stop(stop),
            Some(signal) = signals.recv() => ChildEvent::Signal(signal),
            () = next_signal(self.resize_signals.as_mut()) => ChildEvent::Resized,
            () = next_signal(self.child_signals.as_mut()) => ChildEvent::Child,
        }
    }

    async fn handle_event(
        &mut self,
        event: ChildEvent,
    ) -> Result<Option<ChildEndReport>, ProcessError> {
        match event {
            ChildEvent::Report(Ok(Some(report))) => return self.handle_report(report).await,
            ChildEvent::Report(Ok(None) | Err(_)) => return Err(ProcessError::ReaperDied),
            ChildEvent::Stdout => {
                self.pump_stdout();
                self.stop_if_unread().await?;
            }
            ChildEvent::Stderr => {
                self.pump_stderr();
                self.stop_if_unread().await?;
            }
            ChildEvent::StdinStep(step) => self.handle_stdin_step(step).await?,
            ChildEvent::Deadline => self.handle_deadline().await?,
            ChildEvent::Stop(AttemptStopRequest::Continue) => {}
            ChildEvent::Stop(AttemptStopRequest::Graceful(_)) => self.handle_stop().await?,
            ChildEvent::Stop(AttemptStopRequest::Kill(_)) => {
                self.request_end(EndCause::Stop, Duration::ZERO).await?
            }
            ChildEvent::Signal(signal) => self.send_request(&ReaperRequest::Signal(signal)).await?,
            ChildEvent::Child => self.wake_reaper(),
            ChildEvent::Resized => {
                if let Some(pty) = &self.streams.pty {
                    pty.resize();
                }
            }
        }
        Ok(None)
    }

    async fn handle_report(
        &mut self,
        report: ReaperReport,
    ) -> Result<Option<ChildEndReport>, ProcessError> {
        self.reaper.note_report(&report);
        match report {
            ReaperReport::MovedToCgroup { .. } => Ok(None),
            ReaperReport::Started { pid } => {
                self.grant_terminal(pid);
                self.sink.on_started(pid);
                Ok(None)
            }
            ReaperReport::SpawnFailed(status) => Ok(Some(ChildEndReport::without_child(status))),
            ReaperReport::Stopped { signal } => self.suspend(signal).await.map(|()| None),
            ReaperReport::Interrupted if self.holds_terminal() => {
                self.handle_interrupt().await.map(|()| None)
            }
            ReaperReport::Interrupted => Ok(None),
            ReaperReport::Ended {
                status,
                left,
                survivors,
            } => Ok(Some(ChildEndReport {
                status: self.streams.spawn_failure().unwrap_or(status),
                leftover_count: left,
                survivor_count: survivors,
            })),
        }
    }

    async fn send_request(&mut self, request: &ReaperRequest) -> Result<(), ProcessError> {
        let sent = self.reaper.connection.send(request, &[]).await;
        sent.map_err(|_| ProcessError::ReaperDied)
    }

    /// Reports new input, and handles a Ctrl-C that is forwarded to a pseudo-terminal.
    async fn handle_stdin_step(&mut self, step: StdinFeedStep) -> Result<(), ProcessError> {
        let ChildStreams {
            feed: Some(feed),
            pty,
            terminal,
            ..
        } = &mut self.streams
        else {
            return Ok(());
        };
        if let Some((so_far, complete)) = feed.known_bytes() {
            self.sink.on_input(so_far, complete);
        }
        let presses = match (step, pty, terminal) {
            (StdinFeedStep::Received, Some(pty), Some(_)) => {
                pty.count_interrupts(feed.pending_bytes())
            }
            _ => 0,
        };
        if presses > 0 {
            // The child receives the key before it receives our signal.
            feed.forward_pending();
        }
        for _ in 0..presses {
            self.handle_interrupt().await?;
        }
        Ok(())
    }

    fn pump_stdout(&mut self) {
        let piece = self.streams.stdout.read_available(&mut self.buffer);
        if !piece.is_empty() {
            self.deadlines.note_output();
            self.sink.on_stdout(piece);
        }
    }

    fn pump_stderr(&mut self) {
        let piece = self.streams.stderr.read_available(&mut self.buffer);
        if !piece.is_empty() {
            self.deadlines.note_output();
            self.sink.on_stderr(piece);
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

    fn take_result(&mut self, end: ChildEndReport) -> ProcessResult {
        let had_terminal = self
            .streams
            .terminal
            .as_ref()
            .is_some_and(|terminal| terminal.is_lent_to_child());
        let ended_by_key = had_terminal && self.end_cause.is_none() && end.status.is_interrupt();
        ProcessResult {
            was_interrupted: self.is_interrupted || ended_by_key,
            timed_out: match self.end_cause {
                Some(EndCause::Limit(limit)) => Some(limit),
                Some(EndCause::Stop) | None => None,
            },
            was_stopped: self.end_cause == Some(EndCause::Stop),
            duration: self.deadlines.elapsed(),
            stdout: self.streams.stdout.close(),
            stderr: self.streams.stderr.close(),
            status: end.status,
            leftover_count: end.leftover_count,
            survivor_count: end.survivor_count,
        }
    }
}

impl Drop for ChildAttempt<'_> {
    fn drop(&mut self) {
        if let ReaperState::Busy { .. } = self.reaper.state {
            self.reaper
                .connection
                .try_send(&ReaperRequest::End { grace_ms: 0 });
        }
    }
}

/// Returns the next stop request; waits forever if the sender is gone.
async fn next_stop(stop: &mut watch::Receiver<AttemptStopRequest>) -> AttemptStopRequest {
    match stop.changed().await {
        Ok(()) => *stop.borrow_and_update(),
        Err(_) => pending().await,
    }
}

async fn next_signal(stream: Option<&mut SignalStream>) {
    match stream {
        Some(stream) => drop(stream.recv().await),
        None => pending().await,
    }
}

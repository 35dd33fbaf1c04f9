//! Forwards a child's output to the reporter and the files, and watches it for loops.

use std::time::Duration;

use tokio::time::Instant;
use unstuck_core::agent::Agent;
use unstuck_core::loop_detection::{AgentLoopLimits, LoopDetector, LoopSignal, ToolResultCounter};
use unstuck_core::redact::Redactor;
use unstuck_core::{SessionState, Timestamp};

use super::agent_answer_file::AgentAnswerFile;
use super::gateway_hook::GatewayAttachment;
use super::output_timestamps::OutputTimestamps;
use super::reporter::{OutputChannel, SessionReporter, SessionWait};
use super::stored_stdin::StoredStdin;
use crate::process::{EnterKey, OutputSink};
use crate::run_dir::AttemptStreamLog as Kept;

/// Largest output that is evaluated or used as a whole: 16 MiB.
pub(super) const MAX_WHOLE_OUTPUT: usize = 16 << 20;

/// Forwards a child's output to the reporter and the files.
pub(super) struct OutputTee<'a, 'r> {
    pub(super) reporter: &'a mut dyn SessionReporter,
    pub(super) recovery: &'a SessionState,
    pub(super) since: Timestamp,
    pub(super) clock: crate::clock::Clock,
    pub(super) stdout: Option<Kept<'r>>,
    pub(super) stderr: Option<Kept<'r>>,
    pub(super) input: Option<StoredStdin>,
    pub(super) redactor: &'r Redactor,
    pub(super) watch: Option<LiveLoopDetector>,
    pub(super) gateway: Option<AttachedGateway<'a>>,
    /// The full standard output, up to its limit, if it is evaluated or used as a whole.
    pub(super) full_stdout: Option<Vec<u8>>,
    /// Timestamps of the parts of the standard output.
    pub(super) stdout_times: OutputTimestamps,
    /// Timestamps of the parts of the standard error.
    pub(super) stderr_times: OutputTimestamps,
    /// The draft of the attempt's answer, if it goes to a file.
    pub(super) answer: Option<AgentAnswerFile>,
    /// Counts the tool results, if the agent's stream contains them.
    pub(super) results: Option<ToolResultCounter>,
    /// Timestamp of the last tool result.
    pub(super) last_result: Option<Timestamp>,
    /// Interval of the messages about a held call in a log.
    pub(super) heartbeat: Duration,
    /// The Enter key, if there is a terminal: it ends the wait of held calls.
    pub(super) enter_key: Option<EnterKey>,
}

/// The output and the observations collected until the child ended.
pub(super) struct CollectedOutput {
    /// The loop signal, if the agent was stuck.
    pub(super) loop_signal: Option<LoopSignal>,
    /// The full standard output, if it is kept.
    pub(super) full_stdout: Option<Vec<u8>>,
    /// The draft of the answer, if it goes to a file.
    pub(super) answer: Option<AgentAnswerFile>,
    /// Timestamp of the last tool result.
    pub(super) last_result: Option<Timestamp>,
    /// Timestamps of the parts of both streams.
    pub(super) times: StreamTimestamps,
}

/// Timestamps of the parts of both streams of an attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamTimestamps {
    pub(super) stdout: OutputTimestamps,
    pub(super) stderr: OutputTimestamps,
}

impl OutputTee<'_, '_> {
    /// Finishes the files and returns the collected output.
    pub(super) fn finish(mut self) -> CollectedOutput {
        self.report_gateway_messages();
        if self.gateway.is_some() {
            self.reporter.on_held_call(None, self.recovery);
        }
        for kept in [self.stdout.take(), self.stderr.take()]
            .into_iter()
            .flatten()
        {
            kept.finish();
        }
        let seen = self.gateway.and_then(|attended| attended.loop_signal);
        let sign = self.watch.and_then(|watch| watch.loop_signal).or(seen);
        CollectedOutput {
            loop_signal: sign,
            full_stdout: self.full_stdout,
            answer: self.answer,
            last_result: self.last_result,
            times: StreamTimestamps {
                stdout: self.stdout_times,
                stderr: self.stderr_times,
            },
        }
    }
}

/// The gateway attached to an attempt.
pub(super) struct AttachedGateway<'a> {
    pub(super) attachment: &'a mut (dyn GatewayAttachment + 'static),
    /// Name of the agent, if there are several.
    pub(super) name: Option<String>,
    /// The loop signal, if one was found while the agent ran.
    pub(super) loop_signal: Option<LoopSignal>,
    /// The start of the current hold of a call, or the last message about it.
    pub(super) told_held_at: Option<Timestamp>,
}

impl OutputTee<'_, '_> {
    /// Shows the wait of a held API call, and ends it if a person presses Enter; returns false if no call is held.
    fn report_held_call(&mut self, now: Timestamp) -> bool {
        let Some(attended) = &mut self.gateway else {
            return false;
        };
        let held = attended.attachment.held_call();
        let held = held.map(|call| SessionWait::of_held_call(&call, now));
        self.reporter.on_held_call(held.as_ref(), self.recovery);
        let Some(wait) = held else {
            attended.told_held_at = None;
            return false;
        };
        if let Some(key) = &self.enter_key
            && key.has_been_pressed()
        {
            attended.attachment.retry_held_calls();
        }
        let told = attended.told_held_at.get_or_insert(now);
        if self.reporter.is_live() {
            self.reporter.on_waiting(&wait, self.recovery);
        } else if now.since(*told) >= self.heartbeat {
            *told = now;
            self.reporter.on_still_waiting(&wait, self.recovery);
        }
        true
    }

    /// Reports what the gateway observed.
    fn report_gateway_messages(&mut self) {
        let Some(attended) = &mut self.gateway else {
            return;
        };
        for line in attended.attachment.drain_messages() {
            match &attended.name {
                Some(name) => self.reporter.note(&format!("{name}: {line}")),
                None => self.reporter.note(&line),
            }
        }
    }

    fn is_loop_detected(&self) -> bool {
        let by_watch = self
            .watch
            .as_ref()
            .is_some_and(|watch| watch.loop_signal.is_some());
        let attended = self.gateway.as_ref();
        by_watch || attended.is_some_and(|attended| attended.loop_signal.is_some())
    }
}

/// Detects that a running agent repeats itself.
pub(super) struct LiveLoopDetector {
    detector: LoopDetector,
    last_write: Instant,
    loop_signal: Option<LoopSignal>,
}

impl LiveLoopDetector {
    pub(super) fn new(limits: &AgentLoopLimits, agent: Option<&Agent>) -> Self {
        Self {
            detector: LoopDetector::new(limits, agent),
            last_write: Instant::now(),
            loop_signal: None,
        }
    }

    fn note_write(&mut self) {
        self.last_write = Instant::now();
        if self.loop_signal.is_none() {
            self.loop_signal = self.detector.signal();
        }
    }

    fn tick(&mut self) {
        if self.loop_signal.is_none() {
            self.loop_signal = self
                .detector
                .signal_after_silence(self.last_write.elapsed());
        }
    }
}

impl OutputSink for OutputTee<'_, '_> {
    fn on_stdout(&mut self, bytes: &[u8]) {
        self.reporter.output(OutputChannel::Stdout, bytes);
        self.stdout_times
            .record(bytes.len(), self.clock.timestamp());
        if let Some(results) = &mut self.results
            && results.push_stdout(bytes)
        {
            self.last_result = Some(self.clock.timestamp());
        }
        if let Some(whole) = &mut self.full_stdout {
            let left = MAX_WHOLE_OUTPUT.saturating_sub(whole.len());
            whole.extend_from_slice(&bytes[..bytes.len().min(left)]);
        }
        if let Some(answer) = &mut self.answer {
            answer.push(bytes);
        }
        if let Some(watch) = &mut self.watch {
            watch.detector.push_stdout(bytes);
            watch.note_write();
        }
        if let Some(kept) = &mut self.stdout {
            kept.push(bytes);
        }
    }

    fn on_stderr(&mut self, bytes: &[u8]) {
        self.reporter.output(OutputChannel::Stderr, bytes);
        self.stderr_times
            .record(bytes.len(), self.clock.timestamp());
        if let Some(watch) = &mut self.watch {
            watch.detector.push_stderr(bytes);
            watch.note_write();
        }
        if let Some(kept) = &mut self.stderr {
            kept.push(bytes);
        }
    }

    fn on_input(&mut self, so_far: &[u8], complete: bool) {
        if let Some(input) = &mut self.input {
            input.record(so_far, complete, self.redactor);
        }
    }

    fn wants_ticks(&self) -> bool {
        self.reporter.is_live() || self.watch.is_some() || self.gateway.is_some()
    }

    fn is_open(&self) -> bool {
        self.reporter.is_open() && !self.is_loop_detected()
    }

    fn on_tick(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.tick();
        }
        self.report_gateway_messages();
        if let Some(attended) = &mut self.gateway {
            attended.loop_signal = attended.attachment.loop_signal();
        }
        let now = self.clock.timestamp();
        if !self.report_held_call(now) && self.reporter.is_live() {
            self.reporter
                .on_running(now.since(self.since), self.recovery);
        }
    }
}

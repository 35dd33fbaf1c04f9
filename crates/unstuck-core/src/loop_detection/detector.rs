//! Watches what an agent writes while it works, and says when it goes round in circles.

use std::time::Duration;

use serde_json::Value;

use super::input_prompts::OutputTail;
use super::kind::LoopKind;
use super::limits::LoopLimits;
use super::line_signature::line_signature;
use super::line_splitter::{JsonRecords, LineSplitter};
use super::loop_patterns::LoopPatterns;
use super::repeated_blocks::BlockRepeats;
use super::repeated_calls::{CallHistory, CallNovelty, text_signature};
use super::signal::LoopSignal;
use crate::agent::{Agent, AgentEvent};

/// More of a message that comes in pieces is not kept.
const LONGEST_MESSAGE: usize = 64 << 10;
/// A message of fewer words must come so many times as often.
const FEW_WORDS: usize = 3;
const MORE_OFTEN: u32 = 3;

/// Watches what one attempt of an agent writes. Its memory is bounded, and it takes little time for a line.
///
/// ```
/// use unstuck_core::stuck::{LoopLimits, LoopDetector};
///
/// let mut watcher = LoopDetector::new(&LoopLimits::default(), None);
/// for _ in 0..40 {
///     watcher.stdout(b"I will now read the file again, in order to see what is in it.\n");
/// }
/// assert!(watcher.verdict().is_some_and(|sign| sign.to_string().contains("read the file again")));
/// ```
#[derive(Debug)]
pub struct LoopDetector {
    limits: LoopLimits,
    /// Whose stream tells of its doings.
    agent: Option<Agent>,
    stdout: StreamLoopDetector,
    stderr: StreamLoopDetector,
    /// Whether the standard error was written to last.
    error_is_last: bool,
    calls: CallHistory,
    messages: MessageHistory,
    signal: Option<LoopSignal>,
}

/// One of the two streams.
#[derive(Debug)]
struct StreamLoopDetector {
    lines: LineSplitter,
    repeats: BlockRepeats,
    tail: OutputTail,
}

impl StreamLoopDetector {
    fn new(limits: &LoopLimits, records: JsonRecords) -> Self {
        Self {
            lines: LineSplitter::new(records),
            repeats: BlockRepeats::new(limits),
            tail: OutputTail::default(),
        }
    }
}

impl LoopDetector {
    /// Watches an attempt of the agent, or of any other program.
    pub fn new(limits: &LoopLimits, agent: Option<&Agent>) -> Self {
        let agent = agent.filter(|agent| agent.reports_events()).cloned();
        let records = match agent {
            Some(_) => JsonRecords::Whole,
            None => JsonRecords::Cut,
        };
        Self {
            limits: limits.clone(),
            stdout: StreamLoopDetector::new(limits, records),
            stderr: StreamLoopDetector::new(limits, JsonRecords::Cut),
            error_is_last: false,
            calls: CallHistory::new(limits),
            messages: MessageHistory::new(limits),
            signal: None,
            agent,
        }
    }

    /// Takes in what was written to the standard output.
    pub fn push_stdout(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || !self.limits.enabled {
            return;
        }
        self.error_is_last = false;
        self.stdout.tail.feed(bytes);
        let Self {
            agent,
            stdout,
            calls: actions,
            messages: speech,
            signal: sign,
            ..
        } = self;
        if sign.is_some() {
            return;
        }
        stdout.lines.feed(bytes, |line| {
            if sign.is_some() {
                return;
            }
            *sign = match record_of(agent.as_ref(), line) {
                Some((agent, record)) => on_events(agent.events_in(&record), actions, speech),
                None => stdout.repeats.push_line(line_signature(line), line),
            };
        });
    }

    /// Takes in what was written to the standard error.
    pub fn push_stderr(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || !self.limits.enabled {
            return;
        }
        self.error_is_last = true;
        self.stderr.tail.feed(bytes);
        let Self {
            stderr,
            signal: sign,
            ..
        } = self;
        if sign.is_some() {
            return;
        }
        stderr.lines.feed(bytes, |line| {
            if sign.is_none() {
                *sign = stderr.repeats.push_line(line_signature(line), line);
            }
        });
    }

    /// Whether the agent is stuck, by what it has written so far. What was seen first stays.
    pub fn signal(&self) -> Option<LoopSignal> {
        self.signal.clone()
    }

    /// Whether the agent is stuck, by what it wrote last, if it has been silent for so long.
    pub fn signal_after_silence(&self, silence: Duration) -> Option<LoopSignal> {
        if !self.limits.enabled || silence < self.limits.waiting_for_input {
            return None;
        }
        if self.error_is_last {
            self.stderr.tail.question()
        } else {
            self.stdout.tail.question()
        }
    }
}

/// The line as a record of the agent's stream, if it is one.
pub(super) fn record_of<'a>(agent: Option<&'a Agent>, line: &[u8]) -> Option<(&'a Agent, Value)> {
    let agent = agent.filter(|_| line.starts_with(b"{"))?;
    serde_json::from_slice(line)
        .ok()
        .map(|record| (agent, record))
}

/// Takes in what a record tells.
fn on_events(
    doings: Vec<AgentEvent>,
    actions: &mut CallHistory,
    speech: &mut MessageHistory,
) -> Option<LoopSignal> {
    for doing in doings {
        let (news, sign) = match doing {
            AgentEvent::Message {
                text,
                complete: true,
            } => (CallNovelty::None, speech.push_message(&text)),
            AgentEvent::Message {
                text,
                complete: false,
            } => (CallNovelty::None, speech.push_piece(&text)),
            AgentEvent::CallStarted { id, call } => {
                let sign = speech.end_message();
                actions.on_call(id, call);
                (CallNovelty::None, sign)
            }
            AgentEvent::CallFinished { id, outcome } => actions.on_result(&id, &outcome),
            AgentEvent::CompletedCall(call, outcome) => match speech.end_message() {
                None => actions.on_completed_call(&call, &outcome),
                sign => (CallNovelty::None, sign),
            },
        };
        if news == CallNovelty::Some {
            speech.forget();
        }
        if sign.is_some() {
            return sign;
        }
    }
    None
}

/// What an agent says.
#[derive(Debug)]
struct MessageHistory {
    max_repeats: u32,
    last: u64,
    times: u32,
    /// A message that comes in pieces.
    partial: String,
    lines: LineSplitter,
    repeats: BlockRepeats,
}

impl MessageHistory {
    fn new(limits: &LoopLimits) -> Self {
        Self {
            max_repeats: limits.message_repeats.max(2),
            last: 0,
            times: 0,
            partial: String::new(),
            lines: LineSplitter::new(JsonRecords::Cut),
            repeats: BlockRepeats::new(limits),
        }
    }

    /// Something new was done: what is said now is about that.
    fn forget(&mut self) {
        (self.last, self.times) = (0, 0);
    }

    /// Takes in a piece of a message.
    fn push_piece(&mut self, piece: &str) -> Option<LoopSignal> {
        let room = LONGEST_MESSAGE.saturating_sub(self.partial.len());
        self.partial
            .push_str(&piece[..piece.floor_char_boundary(room)]);
        self.repeating_lines(piece)
    }

    /// Ends the message that came in pieces.
    fn end_message(&mut self) -> Option<LoopSignal> {
        if self.partial.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.partial);
        self.check_message(&text)
    }

    /// Takes in a whole message.
    fn push_message(&mut self, text: &str) -> Option<LoopSignal> {
        let sign = self.repeating_lines(text);
        sign.or_else(|| self.check_message(text))
    }

    /// Whether one message says the same again and again.
    fn repeating_lines(&mut self, text: &str) -> Option<LoopSignal> {
        let mut sign = None;
        let repeats = &mut self.repeats;
        self.lines.feed(text.as_bytes(), |line| {
            sign = sign
                .take()
                .or_else(|| repeats.push_line(line_signature(line), line));
        });
        sign
    }

    fn check_message(&mut self, text: &str) -> Option<LoopSignal> {
        self.lines.finish(|_| {});
        self.repeats.clear();
        if LoopPatterns::built_in()
            .lines
            .progress
            .match_any(text.as_bytes())
        {
            self.forget();
            return None;
        }
        let name = text_signature(text);
        self.times = if self.last == name { self.times + 1 } else { 1 };
        self.last = name;
        let words = text.split_whitespace().count();
        let most = if words < FEW_WORDS {
            self.max_repeats * MORE_OFTEN
        } else {
            self.max_repeats
        };
        let what = LoopKind::RepeatingMessage;
        (self.times >= most).then(|| LoopSignal::new(what, self.times, text, ""))
    }
}

//! Watches an agent's output and detects loops.

use std::time::Duration;

use serde_json::Value;

use super::input_prompts::OutputTail;
use super::kind::LoopKind;
use super::limits::AgentLoopLimits;
use super::line_signature::line_signature;
use super::line_splitter::{JsonLineHandling, LineSplitter};
use super::loop_patterns::LoopPatterns;
use super::repeated_blocks::RepeatedBlockDetector;
use super::repeated_tool_calls::{ToolCallHistory, ToolCallNovelty, text_signature};
use super::signal::LoopSignal;
use crate::agent::{Agent, AgentEvent};

/// Maximum size kept of a message that arrives in pieces.
const LONGEST_MESSAGE: usize = 64 << 10;
/// Messages with fewer words must be repeated more often.
const FEW_WORDS: usize = 3;
const MORE_OFTEN: u32 = 3;

/// Watches the output of one attempt of an agent. Its memory is bounded, and a line takes little time.
///
/// ```
/// use unstuck_core::loop_detection::{LoopDetector, AgentLoopLimits};
///
/// let mut detector = LoopDetector::new(&AgentLoopLimits::default(), None);
/// for _ in 0..40 {
///     detector.push_stdout(b"I will now read the file again, in order to see what is in it.\n");
/// }
/// assert!(detector.signal().is_some_and(|signal| signal.to_string().contains("read the file again")));
/// ```
#[derive(Debug)]
pub struct LoopDetector {
    limits: AgentLoopLimits,
    /// The agent, if its stream contains events.
    agent: Option<Agent>,
    stdout: StreamLoopDetector,
    stderr: StreamLoopDetector,
    /// True if stderr was written to last.
    error_is_last: bool,
    calls: ToolCallHistory,
    messages: MessageHistory,
    signal: Option<LoopSignal>,
}

/// The detector of one stream.
#[derive(Debug)]
struct StreamLoopDetector {
    lines: LineSplitter,
    repeats: RepeatedBlockDetector,
    tail: OutputTail,
}

impl StreamLoopDetector {
    fn new(limits: &AgentLoopLimits, records: JsonLineHandling) -> Self {
        Self {
            lines: LineSplitter::new(records),
            repeats: RepeatedBlockDetector::new(limits),
            tail: OutputTail::default(),
        }
    }
}

impl LoopDetector {
    /// Creates a detector for an attempt of the agent, or of any other program.
    pub fn new(limits: &AgentLoopLimits, agent: Option<&Agent>) -> Self {
        let agent = agent.filter(|agent| agent.reports_events()).cloned();
        let records = match agent {
            Some(_) => JsonLineHandling::Whole,
            None => JsonLineHandling::Cut,
        };
        Self {
            limits: limits.clone(),
            stdout: StreamLoopDetector::new(limits, records),
            stderr: StreamLoopDetector::new(limits, JsonLineHandling::Cut),
            error_is_last: false,
            calls: ToolCallHistory::new(limits),
            messages: MessageHistory::new(limits),
            signal: None,
            agent,
        }
    }

    /// Processes bytes of stdout.
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

    /// Processes bytes of stderr.
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

    /// Returns the first loop signal in the output so far.
    pub fn signal(&self) -> Option<LoopSignal> {
        self.signal.clone()
    }

    /// Returns a signal if the output ends with a question and the agent has been silent for this long.
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

/// Parses the line as a record of the agent's stream, if it is one.
pub(super) fn record_of<'a>(agent: Option<&'a Agent>, line: &[u8]) -> Option<(&'a Agent, Value)> {
    let agent = agent.filter(|_| line.starts_with(b"{"))?;
    serde_json::from_slice(line)
        .ok()
        .map(|record| (agent, record))
}

/// Processes the events of a record.
fn on_events(
    doings: Vec<AgentEvent>,
    actions: &mut ToolCallHistory,
    speech: &mut MessageHistory,
) -> Option<LoopSignal> {
    for doing in doings {
        let (news, sign) = match doing {
            AgentEvent::Message {
                text,
                complete: true,
            } => (ToolCallNovelty::None, speech.push_message(&text)),
            AgentEvent::Message {
                text,
                complete: false,
            } => (ToolCallNovelty::None, speech.push_piece(&text)),
            AgentEvent::CallStarted { id, call } => {
                let sign = speech.end_message();
                actions.on_call(id, call);
                (ToolCallNovelty::None, sign)
            }
            AgentEvent::CallFinished { id, outcome } => actions.on_result(&id, &outcome),
            AgentEvent::CompletedCall(call, outcome) => match speech.end_message() {
                None => actions.on_completed_call(&call, &outcome),
                sign => (ToolCallNovelty::None, sign),
            },
        };
        if news == ToolCallNovelty::Some {
            speech.forget();
        }
        if sign.is_some() {
            return sign;
        }
    }
    None
}

/// The recent messages of an agent.
#[derive(Debug)]
struct MessageHistory {
    max_repeats: u32,
    last: u64,
    times: u32,
    /// A message that arrives in pieces.
    partial: String,
    lines: LineSplitter,
    repeats: RepeatedBlockDetector,
}

impl MessageHistory {
    fn new(limits: &AgentLoopLimits) -> Self {
        Self {
            max_repeats: limits.message_repeats.max(2),
            last: 0,
            times: 0,
            partial: String::new(),
            lines: LineSplitter::new(JsonLineHandling::Cut),
            repeats: RepeatedBlockDetector::new(limits),
        }
    }

    /// Forgets earlier messages: after a new action, repeating one is not a loop.
    fn forget(&mut self) {
        (self.last, self.times) = (0, 0);
    }

    /// Processes a piece of a message.
    fn push_piece(&mut self, piece: &str) -> Option<LoopSignal> {
        let room = LONGEST_MESSAGE.saturating_sub(self.partial.len());
        self.partial
            .push_str(&piece[..piece.floor_char_boundary(room)]);
        self.repeating_lines(piece)
    }

    /// Ends the message that arrived in pieces.
    fn end_message(&mut self) -> Option<LoopSignal> {
        if self.partial.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.partial);
        self.check_message(&text)
    }

    /// Processes a whole message.
    fn push_message(&mut self, text: &str) -> Option<LoopSignal> {
        let sign = self.repeating_lines(text);
        sign.or_else(|| self.check_message(text))
    }

    /// Returns a signal if one message repeats its own lines.
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

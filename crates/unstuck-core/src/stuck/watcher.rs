//! Watches what an agent writes while it works, and says when it goes round in circles.

use std::time::Duration;

use serde_json::Value;

use super::actions::{Actions, News, text_signature};
use super::data::Data;
use super::limits::StuckLimits;
use super::lines::{Lines, Records};
use super::questions::Tail;
use super::repeats::Repeats;
use super::sign::StuckSign;
use super::signature::signature;
use super::what::StuckWhat;
use crate::agent::{Agent, Doing};

/// More of a message that comes in pieces is not kept.
const LONGEST_MESSAGE: usize = 64 << 10;
/// A message of fewer words must come so many times as often.
const FEW_WORDS: usize = 3;
const MORE_OFTEN: u32 = 3;

/// Watches what one attempt of an agent writes. Its memory is bounded, and it takes little time for a line.
///
/// ```
/// use unstuck_core::stuck::{StuckLimits, Watcher};
///
/// let mut watcher = Watcher::new(&StuckLimits::default(), None);
/// for _ in 0..40 {
///     watcher.stdout(b"I will now read the file again, in order to see what is in it.\n");
/// }
/// assert!(watcher.verdict().is_some_and(|sign| sign.to_string().contains("read the file again")));
/// ```
#[derive(Debug)]
pub struct Watcher {
    limits: StuckLimits,
    /// Whose stream tells of its doings.
    agent: Option<Agent>,
    stdout: Stream,
    stderr: Stream,
    /// Whether the standard error was written to last.
    error_is_last: bool,
    actions: Actions,
    speech: Speech,
    sign: Option<StuckSign>,
}

/// One of the two streams.
#[derive(Debug)]
struct Stream {
    lines: Lines,
    repeats: Repeats,
    tail: Tail,
}

impl Stream {
    fn new(limits: &StuckLimits, records: Records) -> Self {
        Self {
            lines: Lines::new(records),
            repeats: Repeats::new(limits),
            tail: Tail::default(),
        }
    }
}

impl Watcher {
    /// Watches an attempt of the agent, or of any other program.
    pub fn new(limits: &StuckLimits, agent: Option<&Agent>) -> Self {
        let agent = agent.filter(|agent| agent.tells_doings()).cloned();
        let records = match agent {
            Some(_) => Records::Whole,
            None => Records::Cut,
        };
        Self {
            limits: limits.clone(),
            stdout: Stream::new(limits, records),
            stderr: Stream::new(limits, Records::Cut),
            error_is_last: false,
            actions: Actions::new(limits),
            speech: Speech::new(limits),
            sign: None,
            agent,
        }
    }

    /// Takes in what was written to the standard output.
    pub fn stdout(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || !self.limits.enabled {
            return;
        }
        self.error_is_last = false;
        self.stdout.tail.feed(bytes);
        let Self {
            agent,
            stdout,
            actions,
            speech,
            sign,
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
                Some((agent, record)) => heard(agent.doings(&record), actions, speech),
                None => stdout.repeats.line(signature(line), line),
            };
        });
    }

    /// Takes in what was written to the standard error.
    pub fn stderr(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || !self.limits.enabled {
            return;
        }
        self.error_is_last = true;
        self.stderr.tail.feed(bytes);
        let Self { stderr, sign, .. } = self;
        if sign.is_some() {
            return;
        }
        stderr.lines.feed(bytes, |line| {
            if sign.is_none() {
                *sign = stderr.repeats.line(signature(line), line);
            }
        });
    }

    /// Whether the agent is stuck, by what it has written so far. What was seen first stays.
    pub fn verdict(&self) -> Option<StuckSign> {
        self.sign.clone()
    }

    /// Whether the agent is stuck, by what it wrote last, if it has been silent for so long.
    pub fn silent(&self, silence: Duration) -> Option<StuckSign> {
        if !self.limits.enabled || silence < self.limits.waiting_for_input {
            return None;
        }
        match self.error_is_last {
            true => self.stderr.tail.question(),
            false => self.stdout.tail.question(),
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
fn heard(doings: Vec<Doing>, actions: &mut Actions, speech: &mut Speech) -> Option<StuckSign> {
    for doing in doings {
        let (news, sign) = match doing {
            Doing::Said { text, whole: true } => (News::None, speech.said(&text)),
            Doing::Said { text, whole: false } => (News::None, speech.goes_on(&text)),
            Doing::Called { id, call } => {
                let sign = speech.ends();
                actions.called(id, call);
                (News::None, sign)
            }
            Doing::Returned { id, outcome } => actions.returned(&id, &outcome),
            Doing::Did(call, outcome) => match speech.ends() {
                None => actions.did(&call, &outcome),
                sign => (News::None, sign),
            },
        };
        if news == News::Some {
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
struct Speech {
    most: u32,
    last: u64,
    times: u32,
    /// A message that comes in pieces.
    begun: String,
    lines: Lines,
    repeats: Repeats,
}

impl Speech {
    fn new(limits: &StuckLimits) -> Self {
        Self {
            most: limits.message_repeats.max(2),
            last: 0,
            times: 0,
            begun: String::new(),
            lines: Lines::new(Records::Cut),
            repeats: Repeats::new(limits),
        }
    }

    /// Something new was done: what is said now is about that.
    fn forget(&mut self) {
        (self.last, self.times) = (0, 0);
    }

    /// Takes in a piece of a message.
    fn goes_on(&mut self, piece: &str) -> Option<StuckSign> {
        let room = LONGEST_MESSAGE.saturating_sub(self.begun.len());
        self.begun
            .push_str(&piece[..piece.floor_char_boundary(room)]);
        self.repeating_lines(piece)
    }

    /// Ends the message that came in pieces.
    fn ends(&mut self) -> Option<StuckSign> {
        if self.begun.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.begun);
        self.ended(&text)
    }

    /// Takes in a whole message.
    fn said(&mut self, text: &str) -> Option<StuckSign> {
        let sign = self.repeating_lines(text);
        sign.or_else(|| self.ended(text))
    }

    /// Whether one message says the same again and again.
    fn repeating_lines(&mut self, text: &str) -> Option<StuckSign> {
        let mut sign = None;
        let repeats = &mut self.repeats;
        self.lines.feed(text.as_bytes(), |line| {
            sign = sign.take().or_else(|| repeats.line(signature(line), line));
        });
        sign
    }

    fn ended(&mut self, text: &str) -> Option<StuckSign> {
        self.lines.finish(|_| {});
        self.repeats.clear();
        if Data::built_in().lines.progress.match_any(text.as_bytes()) {
            self.forget();
            return None;
        }
        let name = text_signature(text);
        self.times = if self.last == name { self.times + 1 } else { 1 };
        self.last = name;
        let words = text.split_whitespace().count();
        let most = if words < FEW_WORDS {
            self.most * MORE_OFTEN
        } else {
            self.most
        };
        let what = StuckWhat::RepeatingMessage;
        (self.times >= most).then(|| StuckSign::new(what, self.times, text, ""))
    }
}

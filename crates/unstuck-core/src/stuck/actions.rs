//! Counts what an agent does: the same call with the same result again and again is no work.
//!
//! Two things keep work from being taken for a circle. A call that was not made before, and succeeded, is something
//! new: where there is any between the repeats, twice as many are needed. And whoever waits for something asks for it again and again.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use super::data::{Calls, Data};
use super::limits::StuckLimits;
use super::sign::StuckSign;
use super::signature::{result_signature, shown, signature};
use super::what::StuckWhat;
use crate::agent::{Outcome, ToolCall};
use crate::diagnosis::template;

/// So many calls may be open at a time.
const OPEN: usize = 64;
/// An error that is masked to less than this says too little to be told from another.
const TELLING: usize = 16;
/// A longer result is content, whatever words are in it.
const SHORT_RESULT: usize = 600;
/// More of a call or a result is not read for its meaning.
const READ: usize = 8 << 10;

/// What the agent did lately.
#[derive(Debug)]
pub(super) struct Actions {
    repeats: usize,
    window: usize,
    open: VecDeque<(String, ToolCall)>,
    done: VecDeque<Action>,
}

/// Whether something new was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Some,
    None,
}

/// A call and what came of it.
#[derive(Debug)]
struct Action {
    name: String,
    shown: String,
    told: String,
    /// Names the call with its arguments.
    call: u64,
    /// Names the result.
    result: u64,
    /// Names the error, whatever the arguments; none where it says too little.
    error: Option<u64>,
    failed: bool,
    waits: bool,
    is_new: bool,
}

impl Actions {
    pub(super) fn new(limits: &StuckLimits) -> Self {
        Self {
            repeats: limits.repeats.max(2) as usize,
            window: limits.window.max(limits.repeats as usize * 2),
            open: VecDeque::new(),
            done: VecDeque::new(),
        }
    }

    /// Takes in a call whose result is still to come.
    pub(super) fn called(&mut self, id: String, call: ToolCall) {
        if self.open.len() == OPEN {
            self.open.pop_front();
        }
        self.open.push_back((id, call));
    }

    /// Takes in the result of a call.
    pub(super) fn returned(&mut self, id: &str, outcome: &Outcome) -> (News, Option<StuckSign>) {
        let open = self.open.iter().position(|(open, _)| open == id);
        match open.and_then(|at| self.open.remove(at)) {
            Some((_, call)) => self.did(&call, outcome),
            None => (News::None, None),
        }
    }

    /// Takes in a call with its result.
    pub(super) fn did(&mut self, call: &ToolCall, outcome: &Outcome) -> (News, Option<StuckSign>) {
        let known = &Data::built_in().calls;
        let spelt = spelt(call, known);
        let mut action = Action::new(call, &spelt, outcome, known);
        let is_known = self.done.iter().any(|earlier| {
            earlier.call == action.call && (earlier.result == action.result || action.failed)
        });
        action.is_new = !is_known && !action.failed;
        // What was never seen before need not be read any closer.
        action.waits = !action.is_new && waits(&spelt, outcome, known);
        let news = match action.is_new || action.waits {
            true => News::Some,
            false => News::None,
        };
        if self.done.len() == self.window {
            self.done.pop_front();
        }
        self.done.push_back(action);
        (news, self.sign())
    }

    fn sign(&self) -> Option<StuckSign> {
        let last = self.done.back().filter(|last| !last.waits)?;
        let same = self.since(|one| one.call == last.call && one.result == last.result);
        let few = self.repeats;
        let many = 2 * self.repeats;
        if last.failed && (same.times >= few && same.news == 0 || same.times >= many) {
            let sign = StuckWhat::RepeatingAction;
            return Some(StuckSign::new(
                sign,
                count(same.times),
                &last.shown,
                &last.told,
            ));
        }
        if !last.failed && same.times >= many && same.news == 0 {
            let sign = StuckWhat::RepeatingResult;
            return Some(StuckSign::new(sign, count(same.times), &last.shown, ""));
        }
        let error = last.error?;
        let alike = |one: &Action| one.name == last.name && one.error == Some(error);
        // The same call with other errors may well be work, so only different calls count.
        let calls: HashSet<u64> = self
            .done
            .iter()
            .filter(|one| alike(one))
            .map(|one| one.call)
            .collect();
        let sign = StuckWhat::RepeatingError;
        (calls.len() >= many && self.since(alike).news * 2 < calls.len())
            .then(|| StuckSign::new(sign, count(calls.len()), &last.name, &last.told))
    }

    /// How often there was one like the last, and what was in between.
    fn since(&self, is_like: impl Fn(&Action) -> bool) -> Repeated {
        let mut repeated = Repeated::default();
        let mut news = 0;
        for action in self.done.iter().rev() {
            if is_like(action) {
                repeated.times += 1;
                repeated.news = news;
            } else {
                news += usize::from(action.is_new);
            }
        }
        repeated
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Repeated {
    times: usize,
    /// How many new things were done in between.
    news: usize,
}

fn count(times: usize) -> u32 {
    u32::try_from(times).unwrap_or(u32::MAX)
}

impl Action {
    fn new(call: &ToolCall, spelt: &str, outcome: &Outcome, known: &Calls) -> Self {
        let told = match outcome.failed {
            true => telling(beginning(&outcome.text)),
            false => String::new(),
        };
        let error = template(&told);
        Self {
            name: call.name.clone(),
            shown: shown_call(call, known),
            call: signature(spelt.as_bytes()),
            result: result_signature(outcome.text.as_bytes()),
            error: (error.len() >= TELLING).then(|| signature(error.as_bytes())),
            failed: outcome.failed,
            waits: false,
            is_new: false,
            told,
        }
    }
}

/// Whether a call waits for something.
fn waits(spelt: &str, outcome: &Outcome, known: &Calls) -> bool {
    known.waiting.match_any(beginning(spelt).as_bytes())
        || !outcome.failed
            && outcome.text.len() <= SHORT_RESULT
            && known.pending.match_any(outcome.text.as_bytes())
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(READ)]
}

/// A call as one line, without the arguments that only tell why.
fn spelt(call: &ToolCall, known: &Calls) -> String {
    let arguments = call.arguments.iter().map(|value| without(value, known));
    format!("{} {}", call.name, Value::Array(arguments.collect()))
}

/// Names a text of several lines.
pub(super) fn text_signature(text: &str) -> u64 {
    text.lines()
        .fold(1, |hash: u64, line| match signature(line.as_bytes()) {
            0 => hash,
            name => (hash.rotate_left(7) ^ name).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        })
}

/// Arguments without those that only tell why.
fn without(value: &Value, known: &Calls) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !known.aside.contains(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        other => other.clone(),
    }
}

/// A call as a person would write it.
fn shown_call(call: &ToolCall, known: &Calls) -> String {
    let first = call.arguments.first();
    let named = known.shown.iter().find_map(|name| {
        let value = first?.get(name)?.as_str()?;
        Some((name.as_str(), value.to_owned()))
    });
    match (named, first) {
        (Some(("command" | "cmd", line)), _) => line,
        (Some((_, value)), _) => format!("{} {value}", call.name),
        (None, Some(Value::String(line))) => line.clone(),
        (None, Some(Value::Object(fields))) if !fields.is_empty() => {
            format!("{} {}", call.name, Value::from(fields.clone()))
        }
        _ => call.name.clone(),
    }
}

/// The line that tells most of what went wrong: the first that sounds like it, else the last.
fn telling(text: &str) -> String {
    let known = &Data::built_in().lines.telling;
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let line = lines().find(|line| known.match_any(line.as_bytes()));
    shown(
        line.or_else(|| lines().next_back())
            .unwrap_or_default()
            .as_bytes(),
    )
}

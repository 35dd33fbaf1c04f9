//! Detects repeated tool calls: the same call with the same result is not progress.
//!
//! Two rules keep work from being mistaken for a loop. A successful call that was not made before is new: with any such
//! call between the repeats, twice as many are needed. And calls that wait for something may be repeated.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use super::kind::LoopKind;
use super::limits::AgentLoopLimits;
use super::line_signature::{line_signature, result_signature, visible_text};
use super::loop_patterns::{LoopPatterns, ToolCallComparison};
use super::signal::LoopSignal;
use crate::agent::{ToolCall, ToolOutcome};
use crate::diagnosis::mask_line;

/// Maximum number of pending calls.
const MAX_OPEN_CALLS: usize = 64;
/// Minimum length of a masked error; a shorter one cannot be told from another.
const MIN_ERROR_LEN: usize = 16;
/// Maximum length of a result that can be a status; a longer one is content, whatever words it contains.
const MAX_SHORT_RESULT: usize = 600;
/// Number of bytes read of a call or a result.
const MAX_READ: usize = 8 << 10;

/// The recent tool calls of an agent.
#[derive(Debug)]
pub(super) struct ToolCallHistory {
    repeats: usize,
    window: usize,
    open: VecDeque<(String, ToolCall)>,
    done: VecDeque<ObservedCall>,
}

/// The novelty of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolCallNovelty {
    Some,
    None,
}

/// A call and its result.
#[derive(Debug)]
struct ObservedCall {
    name: String,
    summary: String,
    result_excerpt: String,
    /// The signature of the call with its arguments.
    call: u64,
    /// The signature of the result.
    result: u64,
    /// The signature of the error, independent of the arguments; none if it is too short.
    error: Option<u64>,
    failed: bool,
    is_wait: bool,
    is_new: bool,
}

impl ToolCallHistory {
    pub(super) fn new(limits: &AgentLoopLimits) -> Self {
        Self {
            repeats: limits.repeats.max(2) as usize,
            window: limits.window.max(limits.repeats as usize * 2),
            open: VecDeque::new(),
            done: VecDeque::new(),
        }
    }

    /// Records a call whose result is pending.
    pub(super) fn on_call(&mut self, id: String, call: ToolCall) {
        if self.open.len() == MAX_OPEN_CALLS {
            self.open.pop_front();
        }
        self.open.push_back((id, call));
    }

    /// Records the result of a call.
    pub(super) fn on_result(
        &mut self,
        id: &str,
        outcome: &ToolOutcome,
    ) -> (ToolCallNovelty, Option<LoopSignal>) {
        let open = self.open.iter().position(|(open, _)| open == id);
        match open.and_then(|at| self.open.remove(at)) {
            Some((_, call)) => self.on_completed_call(&call, outcome),
            None => (ToolCallNovelty::None, None),
        }
    }

    /// Records a call with its result.
    pub(super) fn on_completed_call(
        &mut self,
        call: &ToolCall,
        outcome: &ToolOutcome,
    ) -> (ToolCallNovelty, Option<LoopSignal>) {
        let known = &LoopPatterns::built_in().calls;
        let spelt = canonical_call(call, known);
        let mut action = ObservedCall::new(call, &spelt, outcome, known);
        let is_known = self.done.iter().any(|earlier| {
            earlier.call == action.call && (earlier.result == action.result || action.failed)
        });
        action.is_new = !is_known && !action.failed;
        // Results not seen before need no closer look.
        action.is_wait = !action.is_new && is_wait(&spelt, outcome, known);
        let news = if action.is_new || action.is_wait {
            ToolCallNovelty::Some
        } else {
            ToolCallNovelty::None
        };
        if self.done.len() == self.window {
            self.done.pop_front();
        }
        self.done.push_back(action);
        (news, self.signal())
    }

    fn signal(&self) -> Option<LoopSignal> {
        let last = self.done.back().filter(|last| !last.is_wait)?;
        let same = self.repeats_of(|one| one.call == last.call && one.result == last.result);
        let few = self.repeats;
        let many = 2 * self.repeats;
        if last.failed && (same.times >= few && same.new_calls == 0 || same.times >= many) {
            let sign = LoopKind::RepeatingAction;
            return Some(LoopSignal::new(
                sign,
                count(same.times),
                &last.summary,
                &last.result_excerpt,
            ));
        }
        if !last.failed && same.times >= many && same.new_calls == 0 {
            let sign = LoopKind::RepeatingResult;
            return Some(LoopSignal::new(sign, count(same.times), &last.summary, ""));
        }
        let error = last.error?;
        let alike = |one: &ObservedCall| one.name == last.name && one.error == Some(error);
        // The same call with other errors may well be work, so only different calls are relevant.
        let calls: HashSet<u64> = self
            .done
            .iter()
            .filter(|one| alike(one))
            .map(|one| one.call)
            .collect();
        let sign = LoopKind::RepeatingError;
        (calls.len() >= many && self.repeats_of(alike).new_calls * 2 < calls.len())
            .then(|| LoopSignal::new(sign, count(calls.len()), &last.name, &last.result_excerpt))
    }

    /// Returns the number of calls like the last one, and the new calls in between.
    fn repeats_of(&self, is_like: impl Fn(&ObservedCall) -> bool) -> RepeatCount {
        let mut repeated = RepeatCount::default();
        let mut news = 0;
        for action in self.done.iter().rev() {
            if is_like(action) {
                repeated.times += 1;
                repeated.new_calls = news;
            } else {
                news += usize::from(action.is_new);
            }
        }
        repeated
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct RepeatCount {
    times: usize,
    /// The number of new calls in between.
    new_calls: usize,
}

fn count(times: usize) -> u32 {
    u32::try_from(times).unwrap_or(u32::MAX)
}

impl ObservedCall {
    fn new(
        call: &ToolCall,
        spelt: &str,
        outcome: &ToolOutcome,
        known: &ToolCallComparison,
    ) -> Self {
        let result_excerpt = if outcome.failed {
            error_line(cut_to_read_limit(&outcome.text))
        } else {
            String::new()
        };
        let error = mask_line(&result_excerpt);
        Self {
            name: call.name.clone(),
            summary: call_summary(call, known),
            call: line_signature(spelt.as_bytes()),
            result: result_signature(outcome.text.as_bytes()),
            error: (error.len() >= MIN_ERROR_LEN).then(|| line_signature(error.as_bytes())),
            failed: outcome.failed,
            is_wait: false,
            is_new: false,
            result_excerpt,
        }
    }
}

/// Returns true if a call waits for something.
fn is_wait(spelt: &str, outcome: &ToolOutcome, known: &ToolCallComparison) -> bool {
    known.waiting.match_any(cut_to_read_limit(spelt).as_bytes())
        || !outcome.failed
            && outcome.text.len() <= MAX_SHORT_RESULT
            && known.pending.match_any(outcome.text.as_bytes())
}

fn cut_to_read_limit(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_READ)]
}

/// Returns a call as one line, without explanatory arguments.
fn canonical_call(call: &ToolCall, known: &ToolCallComparison) -> String {
    let arguments = call
        .arguments
        .iter()
        .map(|value| without_explanations(value, known));
    format!("{} {}", call.name, Value::Array(arguments.collect()))
}

/// Returns the signature of a multi-line text.
pub(super) fn text_signature(text: &str) -> u64 {
    text.lines()
        .fold(1, |hash: u64, line| match line_signature(line.as_bytes()) {
            0 => hash,
            name => (hash.rotate_left(7) ^ name).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        })
}

/// Returns arguments without explanatory ones.
fn without_explanations(value: &Value, known: &ToolCallComparison) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !known.ignored_arguments.contains(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        other => other.clone(),
    }
}

/// Returns a call in human-readable form.
fn call_summary(call: &ToolCall, known: &ToolCallComparison) -> String {
    let first = call.arguments.first();
    let named = known.summary_arguments.iter().find_map(|name| {
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

/// Returns the most informative line of an error: the first that matches an error pattern, else the last.
fn error_line(text: &str) -> String {
    let known = &LoopPatterns::built_in().lines.error_lines;
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let line = lines().find(|line| known.match_any(line.as_bytes()));
    visible_text(
        line.or_else(|| lines().next_back())
            .unwrap_or_default()
            .as_bytes(),
    )
}

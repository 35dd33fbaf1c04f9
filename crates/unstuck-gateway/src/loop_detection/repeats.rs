//! Repeated calls with equal results.

use std::collections::VecDeque;

use super::signal::is_due;
use super::{ApiLoopKind, ApiLoopSignal, LoopDetectionLimits};
use crate::protocol::ToolCall;

/// The maximum length of a displayed name, in characters.
const MAX_NAME_CHARS: usize = 40;
/// The maximum number of displayed names.
const MAX_NAMES: usize = 3;

/// The last turns: calls and their results, by hash.
#[derive(Debug, Default)]
pub(super) struct RepeatCounter {
    window: VecDeque<u64>,
    last: Option<u64>,
    in_row: u32,
    /// The number of consecutive repeats whose tools were quick.
    quick: u32,
}

/// The speed of a turn's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolPace {
    Quick,
    /// Slow enough that repeating them may be polling.
    Slow,
}

impl RepeatCounter {
    /// Records tool calls and their results.
    pub(super) fn on_turn(
        &mut self,
        turn: u64,
        pace: ToolPace,
        calls: &[ToolCall],
        limits: &LoopDetectionLimits,
    ) -> Option<ApiLoopSignal> {
        if self.last != Some(turn) {
            self.last = Some(turn);
            (self.in_row, self.quick) = (0, 0);
        }
        self.in_row = self.in_row.saturating_add(1);
        if pace == ToolPace::Quick {
            self.quick = self.quick.saturating_add(1);
            self.window.push_back(turn);
            while self.window.len() > limits.window {
                self.window.pop_front();
            }
        }
        let quick = pace == ToolPace::Quick && is_due(self.quick, limits.repeats);
        if quick || is_due(self.in_row, limits.slow_tool_repeats) {
            return Some(in_row(self.in_row, calls));
        }
        let repeats = self.window.iter().filter(|seen| **seen == turn).count();
        let repeats = u32::try_from(repeats).unwrap_or(u32::MAX);
        if self.quick < limits.repeats && is_due(repeats, limits.repeats_in_window) {
            let sign = in_window(repeats, self.window.len(), calls);
            self.window.clear();
            return Some(sign);
        }
        None
    }

    /// Resets the repeat count.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

fn in_row(count: u32, calls: &[ToolCall]) -> ApiLoopSignal {
    let calls = tool_names(calls);
    ApiLoopSignal {
        kind: ApiLoopKind::RepeatedCall,
        count,
        sentence: format!("The same call of {calls} had the same result {count} times in a row."),
    }
}

fn in_window(count: u32, all: usize, calls: &[ToolCall]) -> ApiLoopSignal {
    let calls = tool_names(calls);
    ApiLoopSignal {
        kind: ApiLoopKind::RepeatedCall,
        count,
        sentence: format!(
            "{count} of the last {all} turns were the same call of {calls} with the same result."
        ),
    }
}

/// Returns the names of the tools, shortened.
fn tool_names(calls: &[ToolCall]) -> String {
    let name = |call: &ToolCall| {
        let printable = call.name.chars().filter(|char| !char.is_control());
        let name: String = printable.take(MAX_NAME_CHARS).collect();
        format!("`{name}`")
    };
    match calls.len() {
        0 => "a tool".into(),
        count => {
            let names: Vec<_> = calls.iter().take(MAX_NAMES).map(name).collect();
            let more = count.saturating_sub(MAX_NAMES);
            match more {
                0 => names.join(" and "),
                more => format!("{} and {more} more", names.join(", ")),
            }
        }
    }
}

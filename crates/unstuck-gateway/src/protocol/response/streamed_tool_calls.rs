//! Tool calls whose arguments arrive in pieces.

use crate::protocol::request::ToolCall;
use crate::protocol::text_hash::JsonHash;

/// The tool calls that are still arriving, each by the number in its pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamedToolCalls(Vec<StreamedToolCall>);

#[derive(Debug, Clone)]
struct StreamedToolCall {
    number: u64,
    at: usize,
    arguments: JsonHash,
}

impl StreamedToolCalls {
    /// Begins a call.
    pub(super) fn begin(&mut self, calls: &mut Vec<ToolCall>, number: u64, name: &str) {
        self.0.retain(|open| open.number != number);
        self.0.push(StreamedToolCall {
            number,
            at: calls.len(),
            arguments: JsonHash::EMPTY,
        });
        calls.push(tool_call(name, JsonHash::EMPTY));
    }

    /// Returns true if a call of that number is open.
    pub(super) fn contains(&self, number: u64) -> bool {
        self.0.iter().any(|open| open.number == number)
    }

    /// Adds a piece of the arguments.
    pub(super) fn add_arguments(&mut self, calls: &mut [ToolCall], number: u64, piece: &[u8]) {
        let Some(open) = self.0.iter_mut().find(|open| open.number == number) else {
            return;
        };
        open.arguments.add(piece);
        if let Some(call) = calls.get_mut(open.at) {
            call.arguments_hash = open.arguments.value();
        }
    }

    /// Completes a call; `without` replaces the arguments if there were no pieces.
    pub(super) fn end(&mut self, calls: &mut [ToolCall], number: u64, without: &[u8]) {
        let open = self.0.iter().find(|open| open.number == number);
        if open.is_some_and(|open| open.arguments.is_empty()) {
            self.add_arguments(calls, number, without);
        }
    }
}

/// Returns a complete call.
pub(super) fn complete_call(name: &str, arguments: &[u8]) -> ToolCall {
    let mut hash = JsonHash::EMPTY;
    hash.add(arguments);
    tool_call(name, hash)
}

fn tool_call(name: &str, arguments: JsonHash) -> ToolCall {
    ToolCall {
        name: name.to_owned(),
        arguments_hash: arguments.value(),
    }
}

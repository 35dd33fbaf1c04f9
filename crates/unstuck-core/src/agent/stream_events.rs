//! Tool calls, their results and messages in an agent's output stream.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Agent;
use super::agent_file::{AgentEventMapping, ValueSelection};
use super::json_path::values_at;

/// An event in an agent's output stream.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The agent calls a tool; the result follows later.
    CallStarted {
        /// The id that links the call and its result.
        id: String,
        /// The call.
        call: ToolCall,
    },
    /// The result of an earlier call.
    CallFinished {
        /// The id of the call.
        id: String,
        /// The result.
        outcome: ToolOutcome,
    },
    /// A call together with its result.
    CompletedCall(ToolCall, ToolOutcome),
    /// A message of the agent.
    Message {
        /// The text.
        text: String,
        /// True if the text is the whole message, false if it is a fragment.
        complete: bool,
    },
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Vec<Value>,
}

impl ToolCall {
    /// Returns the call as one short line.
    pub(super) fn summary(&self) -> String {
        const LONGEST: usize = 200;
        let arguments = self.arguments.iter().map(|argument| match argument {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let arguments: Vec<String> = arguments.collect();
        let mut line = format!("{} {}", self.name, arguments.join(" "));
        if let Some((at, _)) = line.char_indices().nth(LONGEST) {
            line.truncate(at);
            line.push('…');
        }
        format!("`{}`", line.trim_end().replace(['`', '\n'], " "))
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome {
    /// The returned text.
    pub text: String,
    /// True if the call failed.
    pub failed: bool,
}

impl Agent {
    /// Returns the events in one JSON object of the agent's stream.
    ///
    /// ```
    /// use unstuck_core::agent::{Agents, AgentEvent};
    ///
    /// let codex = Agents::built_in().get("codex").ok_or("unknown")?;
    /// let record = serde_json::json!({"type": "item.completed", "item": {
    ///     "type": "command_execution", "command": "make", "aggregated_output": "no rule", "exit_code": 2}});
    /// let events = codex.events_in(&record);
    /// assert!(matches!(&events[..],
    ///     [AgentEvent::CompletedCall(_, outcome)] if outcome.failed && outcome.text == "no rule"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn events_in(&self, record: &Value) -> Vec<AgentEvent> {
        let output = &self.file.output;
        let said = output
            .text
            .iter()
            .filter(|source| !source.at.is_empty() && conditions_hold(record, &source.when))
            .map(|source| AgentEvent::Message {
                text: joined_text(record, &source.at),
                complete: source.selection != ValueSelection::All,
            })
            .filter(|said| !matches!(said, AgentEvent::Message { text, .. } if text.is_empty()));
        let done = output
            .action
            .iter()
            .flat_map(|source| source.read_events(record));
        said.chain(done).collect()
    }

    /// Returns true if the agent's stream contains tool calls.
    pub fn reports_events(&self) -> bool {
        !self.file.output.action.is_empty()
    }
}

impl AgentEventMapping {
    fn read_events(&self, record: &Value) -> Vec<AgentEvent> {
        if !conditions_hold(record, &self.when) {
            return Vec::new();
        }
        match &self.each {
            Some(path) => {
                let parts = values_at(record, path);
                parts
                    .iter()
                    .filter_map(|part| self.read_event(part))
                    .collect()
            }
            None => self.read_event(record).into_iter().collect(),
        }
    }

    fn read_event(&self, part: &Value) -> Option<AgentEvent> {
        if !conditions_hold(part, &self.only) {
            return None;
        }
        let id = || joined_text(part, self.id.as_slice());
        let name = self.title.clone().or_else(|| {
            let name = joined_text(part, self.name.as_slice());
            (!name.is_empty()).then_some(name)
        });
        let call = name.map(|name| ToolCall {
            name,
            arguments: self.call_arguments(part),
        });
        let outcome = || ToolOutcome {
            text: joined_text(part, &self.result),
            failed: self.failed.iter().any(|all| conditions_hold(part, all)),
        };
        match call {
            Some(call) if self.result.is_empty() => {
                Some(AgentEvent::CallStarted { id: id(), call })
            }
            Some(call) => Some(AgentEvent::CompletedCall(call, outcome())),
            None if self.result.is_empty() => None,
            None => Some(AgentEvent::CallFinished {
                id: id(),
                outcome: outcome(),
            }),
        }
    }

    fn call_arguments(&self, part: &Value) -> Vec<Value> {
        let values = self.arguments.iter().flat_map(|path| values_at(part, path));
        values.map(|value| value.into_owned()).collect()
    }
}

fn conditions_hold(value: &Value, conditions: &BTreeMap<String, String>) -> bool {
    conditions.iter().all(|(path, wanted)| {
        let found = values_at(value, path);
        found.iter().any(|value| matches_condition(value, wanted))
    })
}

fn matches_condition(value: &Value, wanted: &str) -> bool {
    let is = |wanted: &str| match value {
        Value::String(text) => text == wanted,
        other => wanted.parse::<Value>().is_ok_and(|wanted| wanted == *other),
    };
    match wanted.strip_prefix('!') {
        _ if wanted == "*" => !value.is_null(),
        Some(unwanted) => !value.is_null() && !is(unwanted),
        None => is(wanted),
    }
}

/// Returns the texts at the paths, concatenated; other values are ignored.
fn joined_text(value: &Value, paths: &[String]) -> String {
    let found = paths.iter().flat_map(|path| values_at(value, path));
    let texts = found.filter_map(|value| value.as_str().map(str::to_owned));
    texts.collect::<Vec<_>>().join("\n")
}

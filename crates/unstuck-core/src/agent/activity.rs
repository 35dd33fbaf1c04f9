//! What an agent's stream tells of its doings while it works: calls of tools, what came of them, what it says.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Agent;
use super::agent_file::{AgentEventSource, ValueSelection};
use super::json_path::values_at;

/// One thing that an agent did or said.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// It calls something; what comes of it is told later.
    CallStarted {
        /// By which the result is found again.
        id: String,
        /// What is called, and with what.
        call: ToolCall,
    },
    /// What came of a call that was told before.
    CallFinished {
        /// Of which call.
        id: String,
        /// What came of it.
        outcome: ToolOutcome,
    },
    /// It called something, and this came of it.
    CompletedCall(ToolCall, ToolOutcome),
    /// It said something.
    Message {
        /// What.
        text: String,
        /// Whether that is all, or only a piece.
        complete: bool,
    },
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// What is called.
    pub name: String,
    /// With what.
    pub arguments: Vec<Value>,
}

impl ToolCall {
    /// The call in one line, short enough to be told.
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

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome {
    /// What it returned.
    pub text: String,
    /// Whether it failed.
    pub failed: bool,
}

impl Agent {
    /// What one JSON object of the agent's stream tells of its doings.
    ///
    /// ```
    /// use unstuck_core::agent::{Agents, AgentEvent};
    ///
    /// let codex = Agents::built_in().get("codex").ok_or("unknown")?;
    /// let record = serde_json::json!({"type": "item.completed", "item": {
    ///     "type": "command_execution", "command": "make", "aggregated_output": "no rule", "exit_code": 2}});
    /// let doings = codex.doings(&record);
    /// assert!(matches!(&doings[..], [AgentEvent::CompletedCall(_, outcome)] if outcome.failed && outcome.text == "no rule"));
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

    /// Whether its stream tells of its doings.
    pub fn reports_events(&self) -> bool {
        !self.file.output.action.is_empty()
    }
}

impl AgentEventSource {
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

/// The texts at the paths, one after the other; of anything else nothing.
fn joined_text(value: &Value, paths: &[String]) -> String {
    let found = paths.iter().flat_map(|path| values_at(value, path));
    let texts = found.filter_map(|value| value.as_str().map(str::to_owned));
    texts.collect::<Vec<_>>().join("\n")
}

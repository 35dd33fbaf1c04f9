//! What an agent's stream tells of its doings while it works: calls of tools, what came of them, what it says.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Agent;
use super::file::{ActionSource, Take};
use super::record::at;

/// One thing that an agent did or said.
#[derive(Debug, Clone, PartialEq)]
pub enum Doing {
    /// It calls something; what comes of it is told later.
    Called {
        /// By which the result is found again.
        id: String,
        /// What is called, and with what.
        call: ToolCall,
    },
    /// What came of a call that was told before.
    Returned {
        /// Of which call.
        id: String,
        /// What came of it.
        outcome: Outcome,
    },
    /// It called something, and this came of it.
    Did(ToolCall, Outcome),
    /// It said something.
    Said {
        /// What.
        text: String,
        /// Whether that is all, or only a piece.
        whole: bool,
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
    pub(super) fn shown(&self) -> String {
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
pub struct Outcome {
    /// What it returned.
    pub text: String,
    /// Whether it failed.
    pub failed: bool,
}

impl Agent {
    /// What one JSON object of the agent's stream tells of its doings.
    ///
    /// ```
    /// use unstuck_core::agent::{Agents, Doing};
    ///
    /// let codex = Agents::built_in().get("codex").ok_or("unknown")?;
    /// let record = serde_json::json!({"type": "item.completed", "item": {
    ///     "type": "command_execution", "command": "make", "aggregated_output": "no rule", "exit_code": 2}});
    /// let doings = codex.doings(&record);
    /// assert!(matches!(&doings[..], [Doing::Did(_, outcome)] if outcome.failed && outcome.text == "no rule"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn doings(&self, record: &Value) -> Vec<Doing> {
        let output = &self.file.output;
        let said = output
            .text
            .iter()
            .filter(|source| !source.at.is_empty() && holds(record, &source.when))
            .map(|source| Doing::Said {
                text: text(record, &source.at),
                whole: source.take != Take::All,
            })
            .filter(|said| !matches!(said, Doing::Said { text, .. } if text.is_empty()));
        let done = output.action.iter().flat_map(|source| source.read(record));
        said.chain(done).collect()
    }

    /// Whether its stream tells of its doings.
    pub fn tells_doings(&self) -> bool {
        !self.file.output.action.is_empty()
    }
}

impl ActionSource {
    fn read(&self, record: &Value) -> Vec<Doing> {
        if !holds(record, &self.when) {
            return Vec::new();
        }
        match &self.each {
            Some(path) => {
                let parts = at(record, path);
                parts.iter().filter_map(|part| self.doing(part)).collect()
            }
            None => self.doing(record).into_iter().collect(),
        }
    }

    fn doing(&self, part: &Value) -> Option<Doing> {
        if !holds(part, &self.only) {
            return None;
        }
        let id = || text(part, self.id.as_slice());
        let name = self.title.clone().or_else(|| {
            let name = text(part, self.name.as_slice());
            (!name.is_empty()).then_some(name)
        });
        let call = name.map(|name| ToolCall {
            name,
            arguments: self.called_with(part),
        });
        let outcome = || Outcome {
            text: text(part, &self.result),
            failed: self.failed.iter().any(|all| holds(part, all)),
        };
        match call {
            Some(call) if self.result.is_empty() => Some(Doing::Called { id: id(), call }),
            Some(call) => Some(Doing::Did(call, outcome())),
            None if self.result.is_empty() => None,
            None => Some(Doing::Returned {
                id: id(),
                outcome: outcome(),
            }),
        }
    }

    fn called_with(&self, part: &Value) -> Vec<Value> {
        let values = self.arguments.iter().flat_map(|path| at(part, path));
        values.map(|value| value.into_owned()).collect()
    }
}

fn holds(value: &Value, conditions: &BTreeMap<String, String>) -> bool {
    conditions.iter().all(|(path, wanted)| {
        let found = at(value, path);
        found.iter().any(|value| is_wanted(value, wanted))
    })
}

fn is_wanted(value: &Value, wanted: &str) -> bool {
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
fn text(value: &Value, paths: &[String]) -> String {
    let found = paths.iter().flat_map(|path| at(value, path));
    let texts = found.filter_map(|value| value.as_str().map(str::to_owned));
    texts.collect::<Vec<_>>().join("\n")
}

//! Tool results in the stream of an agent: a sign that it gets on.

use super::lines::{Lines, Records};
use super::watcher::record_of;
use crate::agent::{Agent, Doing};

/// Counts the completed tool results in what an agent writes.
#[derive(Debug)]
pub struct ToolResults {
    agent: Agent,
    lines: Lines,
    count: u64,
}

impl ToolResults {
    /// For an agent whose stream tells what it does; none for any other.
    pub fn of(agent: &Agent) -> Option<Self> {
        agent.tells_doings().then(|| Self {
            agent: agent.clone(),
            lines: Lines::new(Records::Whole),
            count: 0,
        })
    }

    /// Takes in what was written to the standard output, and tells whether a tool result was among it.
    pub fn stdout(&mut self, bytes: &[u8]) -> bool {
        let before = self.count;
        let Self {
            agent,
            lines,
            count,
        } = self;
        lines.feed(bytes, |line| {
            let Some((agent, record)) = record_of(Some(agent), line) else {
                return;
            };
            let is_result =
                |doing: &Doing| matches!(doing, Doing::Returned { .. } | Doing::Did(..));
            *count += u64::from(agent.doings(&record).iter().any(is_result));
        });
        self.count > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agents;

    #[test]
    fn only_completed_tool_results_count() {
        let agents = Agents::built_in();
        let mut results = ToolResults::of(agents.get("claude").unwrap()).unwrap();
        let call = br#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#;
        let result = br#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt"}]}}"#;
        assert!(!results.stdout(b"API Error: 529 Overloaded\n"));
        assert!(!results.stdout(call));
        assert!(!results.stdout(b"\n"));
        let (first, rest) = result.split_at(20);
        assert!(!results.stdout(first));
        assert!(results.stdout(&[rest, b"\n"].concat()));
        assert!(!results.stdout(b"{\"type\":\"result\",\"is_error\":true}\n"));
    }
}

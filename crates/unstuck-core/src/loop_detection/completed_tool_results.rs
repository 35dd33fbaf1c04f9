//! Detects completed tool results in an agent's output, which are progress.

use super::detector::record_of;
use super::line_splitter::{JsonLineHandling, LineSplitter};
use crate::agent::{Agent, AgentEvent};

/// Detects completed tool results in an agent's output.
#[derive(Debug)]
pub struct ToolResultCounter {
    agent: Agent,
    lines: LineSplitter,
    count: u64,
}

impl ToolResultCounter {
    /// Creates a counter for an agent whose stream contains events; none for any other.
    pub fn for_agent(agent: &Agent) -> Option<Self> {
        agent.reports_events().then(|| Self {
            agent: agent.clone(),
            lines: LineSplitter::new(JsonLineHandling::Whole),
            count: 0,
        })
    }

    /// Processes bytes of stdout; returns true if they contained a tool result.
    pub fn push_stdout(&mut self, bytes: &[u8]) -> bool {
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
            let is_result = |doing: &AgentEvent| {
                matches!(
                    doing,
                    AgentEvent::CallFinished { .. } | AgentEvent::CompletedCall(..)
                )
            };
            *count += u64::from(agent.events_in(&record).iter().any(is_result));
        });
        self.count > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agents;

    #[test]
    fn only_completed_tool_results_are_detected() {
        let agents = Agents::built_in();
        let mut results = ToolResultCounter::for_agent(agents.get("claude").unwrap()).unwrap();
        let call = br#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#;
        let result = br#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt"}]}}"#;
        assert!(!results.push_stdout(b"API Error: 529 Overloaded\n"));
        assert!(!results.push_stdout(call));
        assert!(!results.push_stdout(b"\n"));
        let (first, rest) = result.split_at(20);
        assert!(!results.push_stdout(first));
        assert!(results.push_stdout(&[rest, b"\n"].concat()));
        assert!(!results.push_stdout(b"{\"type\":\"result\",\"is_error\":true}\n"));
    }
}

//! Output of the agents, line by line, prefixed with the role name.

use std::collections::BTreeMap;

use unstuck_core::event::RoleInstance;
use unstuck_core::pipeline::PipelineState;
use unstuck_core::views::RunProjection;
use unstuck_run::runner::OutputChannel;

use super::event_lines::part_label;
use crate::output::DIM;
use crate::sanitized_text::plain_line;

/// Longer lines are split to bound the buffer.
const MAX_LINE: usize = 64 * 1024;

/// Assembles the chunks written by agents into whole lines.
#[derive(Debug, Default)]
pub(super) struct PrefixedOutput {
    pipeline: Option<PipelineState>,
    /// Unfinished last line per instance, of standard output and of standard error.
    partial_lines: BTreeMap<RoleInstance, [Vec<u8>; 2]>,
}

impl PrefixedOutput {
    /// Sets the pipeline, to know all role instances.
    pub(super) fn set_pipeline(&mut self, run: &RunProjection) {
        if self.pipeline.is_none() {
            self.pipeline.clone_from(&run.pipeline);
        }
    }

    /// Returns the lines completed by a chunk.
    pub(super) fn complete_lines(
        &mut self,
        part: &RoleInstance,
        channel: OutputChannel,
        bytes: &[u8],
    ) -> Vec<String> {
        let name = self.name(part);
        let streams = self.partial_lines.entry(part.clone()).or_default();
        let open = match channel {
            OutputChannel::Stdout => &mut streams[0],
            OutputChannel::Stderr => &mut streams[1],
        };
        open.extend_from_slice(bytes);
        let whole = match open.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => open.drain(..=end).collect(),
            None if open.len() > MAX_LINE => std::mem::take(open),
            None => return Vec::new(),
        };
        prefixed(&name, &whole)
    }

    /// Returns the unfinished lines of an instance whose attempt has ended.
    pub(super) fn remaining_lines(&mut self, part: &RoleInstance) -> Vec<String> {
        let name = self.name(part);
        let streams = self.partial_lines.remove(part).unwrap_or_default();
        let rests = streams.iter().filter(|rest| !rest.is_empty());
        rests.flat_map(|rest| prefixed(&name, rest)).collect()
    }

    fn name(&self, part: &RoleInstance) -> String {
        match &self.pipeline {
            Some(pipeline) => part_label(part, pipeline),
            None => part.role.clone(),
        }
    }
}

fn prefixed(name: &str, bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = |line: &str| format!("{DIM}{name}|{DIM:#} {}", plain_line(line));
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn part(role: &str) -> RoleInstance {
        RoleInstance {
            role: role.into(),
            iteration: 1,
            instance: 1,
        }
    }

    fn plain(lines: Vec<String>) -> Vec<String> {
        let plain = |line: String| strip_str(&line).to_string();
        lines.into_iter().map(plain).collect()
    }

    #[test]
    fn parallel_output_is_printed_in_whole_lines() {
        let mut passed = PrefixedOutput::default();
        let (a, b) = (part("architect"), part("tester"));
        let mut write = |part, bytes: &str| {
            plain(passed.complete_lines(part, OutputChannel::Stdout, bytes.as_bytes()))
        };
        assert_eq!(write(&a, "one\ntw"), ["architect| one"]);
        assert_eq!(write(&b, "\u{1b}[2Jx\n"), ["tester| x"]);
        assert_eq!(write(&a, "o\n"), ["architect| two"]);
        assert_eq!(write(&a, "end"), [""; 0]);
        assert_eq!(plain(passed.remaining_lines(&a)), ["architect| end"]);
        assert_eq!(plain(passed.remaining_lines(&a)), [""; 0]);
    }
}

//! Detects repeated blocks of lines.
//!
//! Only signatures of lines are kept. For each block length, one number counts the consecutive lines that equal the
//! line one block earlier; a line costs nothing more. The text of a block is examined only once it has been repeated
//! often enough.

use std::collections::VecDeque;

use super::kind::LoopKind;
use super::limits::AgentLoopLimits;
use super::line_signature::visible_text;
use super::prose_weight::text_weight;
use super::signal::LoopSignal;

/// Maximum number of lines of a block.
const MAX_BLOCK_LINES: usize = 40;
/// Number of signatures kept before the newest are moved to the front.
const BUFFER_LEN: usize = 1024;
/// Number of bytes of a line kept for evaluating its text.
const MAX_REMEMBERED_LINE: usize = 512;
/// Minimum text of a block that needs no extra repeats.
const SUBSTANTIAL_BLOCK: usize = 200;

/// Detects repeated blocks.
#[derive(Debug)]
pub(super) struct RepeatedBlockDetector {
    /// Minimum number of repeats.
    min_repeats: u32,
    names: Box<[u32; BUFFER_LEN]>,
    end: usize,
    /// For each block length, the number of consecutive lines equal to the line one block earlier; longest blocks
    /// first.
    runs: [u32; MAX_BLOCK_LINES],
    /// The newest lines, while they repeat earlier ones.
    texts: VecDeque<Vec<u8>>,
    /// The last block evaluated, and the number of repeats it needs.
    last_weighed: Option<(usize, u32, u32)>,
}

impl RepeatedBlockDetector {
    pub(super) fn new(limits: &AgentLoopLimits) -> Self {
        Self {
            min_repeats: limits.output_repeats.max(2),
            names: Box::new([0; BUFFER_LEN]),
            end: MAX_BLOCK_LINES,
            runs: [0; MAX_BLOCK_LINES],
            texts: VecDeque::new(),
            last_weighed: None,
        }
    }

    /// Forgets all lines.
    pub(super) fn clear(&mut self) {
        self.runs = [0; MAX_BLOCK_LINES];
        self.names.fill(0);
        self.end = MAX_BLOCK_LINES;
        self.texts.clear();
        self.last_weighed = None;
    }

    /// Adds a line by its signature and returns a signal if it is repeated too often.
    pub(super) fn push_line(&mut self, name: u64, line: &[u8]) -> Option<LoopSignal> {
        if name == 0 {
            return None;
        }
        // The upper half has better bits.
        let name = (name >> 32) as u32 | 1;
        let runs = self.count_line(name);
        if runs == 0 {
            return None;
        }
        self.remember_line(line);
        if runs < self.min_repeats - 1 {
            return None;
        }
        let (block, times) = self.repeated_block()?;
        let needed = match self.last_weighed {
            Some((weighed, last, needed)) if (weighed, last) == (block, name) => needed,
            _ => self.required_repeats(block),
        };
        self.last_weighed = Some((block, name, needed));
        (times >= needed).then(|| self.signal(block, times))
    }

    /// Counts a line. Returns at least the longest run, and 0 if there is none.
    fn count_line(&mut self, name: u32) -> u32 {
        if self.end == BUFFER_LEN {
            self.names.copy_within(BUFFER_LEN - MAX_BLOCK_LINES.., 0);
            self.end = MAX_BLOCK_LINES;
        }
        let mut runs = 0;
        let before = &self.names[self.end - MAX_BLOCK_LINES..self.end];
        for (run, earlier) in self.runs.iter_mut().zip(before) {
            *run = if *earlier == name {
                run.wrapping_add(1)
            } else {
                0
            };
            // Unlike a search for the maximum, this can be vectorized.
            runs |= *run;
        }
        self.names[self.end] = name;
        self.end += 1;
        runs
    }

    fn remember_line(&mut self, line: &[u8]) {
        let mut text = match self.texts.len() {
            MAX_BLOCK_LINES => self.texts.pop_front().unwrap_or_default(),
            _ => Vec::new(),
        };
        text.clear();
        text.extend_from_slice(&line[..line.len().min(MAX_REMEMBERED_LINE)]);
        self.texts.push_back(text);
    }

    /// Returns the shortest block that ends here with enough repeats in a row, and their number.
    fn repeated_block(&self) -> Option<(usize, u32)> {
        (1_u32..)
            .zip(self.runs.iter().rev())
            .find_map(|(block, run)| {
                let times = run / block + 1;
                let is_whole = run % block == 0 && times >= self.min_repeats;
                is_whole.then_some((block as usize, times))
            })
    }

    /// Returns the number of repeats a block needs: more for short ones.
    fn required_repeats(&self, block: usize) -> u32 {
        match u32::try_from(text_weight(self.block_lines(block))) {
            Ok(0) | Err(_) => u32::MAX,
            Ok(bytes) => {
                let enough = self.min_repeats.saturating_mul(SUBSTANTIAL_BLOCK as u32);
                self.min_repeats.max(enough.div_ceil(bytes))
            }
        }
    }

    fn block_lines(&self, block: usize) -> impl Iterator<Item = &[u8]> + Clone {
        let before = self.texts.len().saturating_sub(block);
        self.texts.iter().skip(before).map(Vec::as_slice)
    }

    fn signal(&self, block: usize, times: u32) -> LoopSignal {
        let lines: Vec<String> = self.block_lines(block).map(visible_text).collect();
        LoopSignal::new(LoopKind::RepeatingOutput, times, &lines.join(" "), "")
    }
}

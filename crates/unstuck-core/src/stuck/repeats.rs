//! Finds blocks of lines that are written again and again.
//!
//! Only names of lines are kept. For each length of a block one number tells how many lines in a row have been the same
//! as the line that is so far back; that is all there is to do for a line. What a block says is looked at only once it has
//! been repeated often enough.

use std::collections::VecDeque;

use super::limits::StuckLimits;
use super::sign::StuckSign;
use super::signature::shown;
use super::substance::substance;
use super::what::StuckWhat;

/// The most lines of a block.
const LONGEST: usize = 40;
/// How many names are kept before the newest are moved to the front.
const KEPT: usize = 1024;
/// So much of a line is kept for its meaning.
const REMEMBERED: usize = 512;
/// A block that is as long as this needs no more than the usual number of repeats.
const SUBSTANTIAL: usize = 200;

/// Finds blocks that are repeated.
#[derive(Debug)]
pub(super) struct Repeats {
    /// How often at least.
    least: u32,
    names: Box<[u32; KEPT]>,
    end: usize,
    /// How many lines in a row have been like the one before by so many lines; the longest block comes first.
    runs: [u32; LONGEST],
    /// The newest lines, as long as they are like earlier ones.
    texts: VecDeque<Vec<u8>>,
    /// The block that was looked at, and how often it would have to come.
    weighed: Option<(usize, u32, u32)>,
}

impl Repeats {
    pub(super) fn new(limits: &StuckLimits) -> Self {
        Self {
            least: limits.output_repeats.max(2),
            names: Box::new([0; KEPT]),
            end: LONGEST,
            runs: [0; LONGEST],
            texts: VecDeque::new(),
            weighed: None,
        }
    }

    /// Forgets all that was written.
    pub(super) fn clear(&mut self) {
        self.runs = [0; LONGEST];
        self.names.fill(0);
        self.end = LONGEST;
        self.texts.clear();
        self.weighed = None;
    }

    /// Takes in a line by its name and says whether that is too much.
    pub(super) fn line(&mut self, name: u64, line: &[u8]) -> Option<StuckSign> {
        if name == 0 {
            return None;
        }
        // The upper half is the better one.
        let name = (name >> 32) as u32 | 1;
        let runs = self.count(name);
        if runs == 0 {
            return None;
        }
        self.remember(line);
        if runs < self.least - 1 {
            return None;
        }
        let (block, times) = self.repeated()?;
        let needed = match self.weighed {
            Some((weighed, last, needed)) if (weighed, last) == (block, name) => needed,
            _ => self.weigh(block),
        };
        self.weighed = Some((block, name, needed));
        (times >= needed).then(|| self.sign(block, times))
    }

    /// Counts a line. The answer is at least the longest run, and 0 if there is none.
    fn count(&mut self, name: u32) -> u32 {
        if self.end == KEPT {
            self.names.copy_within(KEPT - LONGEST.., 0);
            self.end = LONGEST;
        }
        let mut runs = 0;
        let before = &self.names[self.end - LONGEST..self.end];
        for (run, earlier) in self.runs.iter_mut().zip(before) {
            *run = if *earlier == name {
                run.wrapping_add(1)
            } else {
                0
            };
            // Processors do this to many at once, other than looking for the largest.
            runs |= *run;
        }
        self.names[self.end] = name;
        self.end += 1;
        runs
    }

    fn remember(&mut self, line: &[u8]) {
        let mut text = match self.texts.len() {
            LONGEST => self.texts.pop_front().unwrap_or_default(),
            _ => Vec::new(),
        };
        text.clear();
        text.extend_from_slice(&line[..line.len().min(REMEMBERED)]);
        self.texts.push_back(text);
    }

    /// The shortest block that ends here and came often enough in a row, and how often.
    fn repeated(&self) -> Option<(usize, u32)> {
        (1_u32..)
            .zip(self.runs.iter().rev())
            .find_map(|(block, run)| {
                let times = run / block + 1;
                let is_whole = run % block == 0 && times >= self.least;
                is_whole.then_some((block as usize, times))
            })
    }

    /// How often the block would have to come: short ones more often.
    fn weigh(&self, block: usize) -> u32 {
        match u32::try_from(substance(self.block(block))) {
            Ok(0) | Err(_) => u32::MAX,
            Ok(bytes) => {
                let enough = self.least.saturating_mul(SUBSTANTIAL as u32);
                self.least.max(enough.div_ceil(bytes))
            }
        }
    }

    fn block(&self, block: usize) -> impl Iterator<Item = &[u8]> + Clone {
        let before = self.texts.len().saturating_sub(block);
        self.texts.iter().skip(before).map(Vec::as_slice)
    }

    fn sign(&self, block: usize, times: u32) -> StuckSign {
        let lines: Vec<String> = self.block(block).map(shown).collect();
        StuckSign::new(StuckWhat::RepeatingOutput, times, &lines.join(" "), "")
    }
}

//! When the parts of an output were printed, so that what they state is meant from then on.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use unstuck_core::Timestamp;

use crate::process::CapturedOutput;

/// What comes within this time of each other counts as printed at once.
const MERGE_WINDOW: Duration = Duration::from_secs(1);
/// How many moments are kept; of more, every other one is forgotten.
const MAX_MARKS: usize = 1024;

/// When the parts of a stream were printed.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputTimestamps {
    /// From which byte of the stream on, and when.
    marks: Vec<(u64, Timestamp)>,
    total: u64,
}

impl OutputTimestamps {
    /// Those of a file that was written by somebody else: all that is known is when it was written last.
    pub(super) fn from_file_mtime(path: &Path) -> Self {
        let written = std::fs::metadata(path).and_then(|file: Metadata| file.modified());
        let since = written.map(|written| written.duration_since(UNIX_EPOCH));
        let marks = match since {
            Ok(Ok(since)) => vec![(0, Timestamp::from_seconds(0).after(since))],
            _ => Vec::new(),
        };
        Self { marks, total: 0 }
    }

    /// Takes in that so many bytes more were printed.
    pub(super) fn record(&mut self, bytes: usize, at: Timestamp) {
        let is_new = |(_, last): &(u64, Timestamp)| at.since(*last) >= MERGE_WINDOW;
        if self.marks.last().is_none_or(is_new) {
            if self.marks.len() == MAX_MARKS {
                let mut is_kept = false;
                self.marks.retain(|_| {
                    is_kept = !is_kept;
                    is_kept
                });
            }
            self.marks.push((self.total, at));
        }
        self.total += bytes as u64;
    }

    /// When something was printed last.
    pub(super) fn last_output_at(&self) -> Option<Timestamp> {
        self.marks.last().map(|(_, at)| *at)
    }

    /// The moments by their places in all of the stream.
    pub(super) fn by_stream_offset(&self) -> Vec<(usize, Timestamp)> {
        let place = |(at, moment): &(u64, Timestamp)| Some((usize::try_from(*at).ok()?, *moment));
        self.marks.iter().filter_map(place).collect()
    }

    /// The moments by their places in the text of what was kept of the stream.
    pub(super) fn by_text_offset(&self, captured: &CapturedOutput) -> Vec<(usize, Timestamp)> {
        let mut places: Vec<(usize, Timestamp)> = Vec::new();
        for (at, moment) in &self.marks {
            let place = captured.text_offset(*at);
            match places.last_mut() {
                // What was printed from there on begins in what was left out.
                Some(last) if last.0 == place => last.1 = *moment,
                _ => places.push((place, *moment)),
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{MAX_HEAD_BYTES, MAX_TAIL_BYTES};

    fn second(second: i64) -> Timestamp {
        Timestamp::from_seconds(1_794_744_000 + second)
    }

    #[test]
    fn moments_have_their_places_in_what_is_kept() {
        let mut times = OutputTimestamps::default();
        let mut captured = CapturedOutput::default();
        let pieces = [
            (MAX_HEAD_BYTES, 0),
            (1000, 10),
            (1000, 20),
            (MAX_TAIL_BYTES, 30),
            (5, 30),
        ];
        for (size, at) in pieces {
            times.record(size, second(at));
            captured.push(&vec![b'x'; size]);
        }
        let text = captured.text();
        let gap = text.find('\n').unwrap();
        let tail = text.rfind(']').unwrap() + 2;
        assert_eq!(gap, MAX_HEAD_BYTES);
        assert_eq!(
            times.by_text_offset(&captured),
            [(0, second(0)), (tail, second(30))],
            "what was left out has no place, and what follows it begins behind the gap"
        );
        assert_eq!(times.by_stream_offset().len(), 4);
        assert_eq!(times.last_output_at(), Some(second(30)));
    }

    #[test]
    fn the_number_of_moments_is_bounded() {
        let mut times = OutputTimestamps::default();
        for at in 0..10_000 {
            times.record(1, second(at));
        }
        let marks = times.by_stream_offset();
        assert!(marks.len() <= MAX_MARKS);
        assert_eq!((marks[0].0, marks[0].1), (0, second(0)));
        assert!(marks.is_sorted());
        assert_eq!(times.last_output_at(), Some(second(9_999)));
    }
}

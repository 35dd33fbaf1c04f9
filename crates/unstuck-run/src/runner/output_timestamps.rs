//! Timestamps of the parts of an output, against which relative times in it are resolved.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use unstuck_core::Timestamp;

use crate::process::CapturedOutput;

/// Output within this time of each other gets one timestamp.
const MERGE_WINDOW: Duration = Duration::from_secs(1);
/// Most timestamps that are kept; of more, every other one is dropped.
const MAX_MARKS: usize = 1024;

/// Timestamps of the parts of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputTimestamps {
    /// Offset in the stream and timestamp of each part.
    marks: Vec<(u64, Timestamp)>,
    total: u64,
}

impl OutputTimestamps {
    /// Returns the timestamps of a file written by another process: only its modification time is known.
    pub(super) fn from_file_mtime(path: &Path) -> Self {
        let written = std::fs::metadata(path).and_then(|file: Metadata| file.modified());
        let since = written.map(|written| written.duration_since(UNIX_EPOCH));
        let marks = match since {
            Ok(Ok(since)) => vec![(0, Timestamp::from_seconds(0).after(since))],
            _ => Vec::new(),
        };
        Self { marks, total: 0 }
    }

    /// Records that a number of bytes was printed.
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

    /// Returns the timestamp of the last output.
    pub(super) fn last_output_at(&self) -> Option<Timestamp> {
        self.marks.last().map(|(_, at)| *at)
    }

    /// Returns the timestamps by their offsets in the whole stream.
    pub(super) fn by_stream_offset(&self) -> Vec<(usize, Timestamp)> {
        let place = |(at, moment): &(u64, Timestamp)| Some((usize::try_from(*at).ok()?, *moment));
        self.marks.iter().filter_map(place).collect()
    }

    /// Returns the timestamps by their offsets in the captured text.
    pub(super) fn by_text_offset(&self, captured: &CapturedOutput) -> Vec<(usize, Timestamp)> {
        let mut places: Vec<(usize, Timestamp)> = Vec::new();
        for (at, moment) in &self.marks {
            let place = captured.text_offset(*at);
            match places.last_mut() {
                // This part begins in the omitted middle of the stream.
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
    fn timestamps_map_to_offsets_in_the_captured_text() {
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
    fn number_of_timestamps_is_bounded() {
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

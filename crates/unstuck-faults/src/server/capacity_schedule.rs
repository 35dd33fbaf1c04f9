//! The work that a server can do over time, if its capacity changes.

use crate::script::FaultServerCapacityPhase;

/// The share of the capacity in each interval, in seconds since the start.
#[derive(Debug, Clone)]
pub(super) struct CapacitySchedule {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    from: f64,
    share: f64,
    /// Work done before the interval, in seconds of full capacity.
    before: f64,
}

impl CapacitySchedule {
    /// Builds the schedule of these phases; if several overlap, the last one applies.
    pub(super) fn new(phases: &[FaultServerCapacityPhase]) -> Self {
        let ends = |phase: &FaultServerCapacityPhase| {
            let from = phase.from.as_secs_f64();
            [from, from + phase.lasts.as_secs_f64()]
        };
        let mut moments: Vec<f64> = phases.iter().flat_map(ends).chain([0.0]).collect();
        moments.sort_by(f64::total_cmp);
        moments.dedup();
        let mut segments: Vec<Segment> = Vec::with_capacity(moments.len());
        for from in moments {
            let phase = phases.iter().rev().find(|phase| {
                let [begins, ends] = ends(phase);
                (begins..ends).contains(&from)
            });
            let before = segments
                .last()
                .map_or(0.0, |last| last.before + (from - last.from) * last.share);
            segments.push(Segment {
                from,
                share: phase.map_or(1.0, |phase| phase.share),
                before,
            });
        }
        Self { segments }
    }

    /// Returns the share at a moment.
    pub(super) fn share(&self, at: f64) -> f64 {
        self.segment(at).share
    }

    /// Returns the work possible until a moment, in seconds of full capacity.
    pub(super) fn work(&self, until: f64) -> f64 {
        let segment = self.segment(until);
        segment.before + (until - segment.from).max(0.0) * segment.share
    }

    /// Returns the moment by which this much work can be done.
    pub(super) fn time_of_work(&self, work: f64) -> f64 {
        let reached = |segment: &&Segment| segment.before <= work && segment.share > 0.0;
        let segment = self.segments.iter().rfind(reached);
        // A phase without any capacity is skipped: its work is done in the next one.
        segment.map_or(0.0, |segment| {
            segment.from + (work - segment.before) / segment.share
        })
    }

    /// Returns the next moment at which the share changes.
    pub(super) fn next_change(&self, after: f64) -> Option<f64> {
        let mut later = self.segments.iter().map(|segment| segment.from);
        later.find(|from| *from > after)
    }

    fn segment(&self, at: f64) -> Segment {
        let begun = self.segments.iter().rfind(|segment| segment.from <= at);
        let first = Segment {
            from: 0.0,
            share: 1.0,
            before: 0.0,
        };
        begun.copied().unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn curve(phases: &[(u64, u64, f64)]) -> CapacitySchedule {
        let phases: Vec<_> = phases
            .iter()
            .map(|(from, lasts, share)| FaultServerCapacityPhase {
                from: Duration::from_secs(*from),
                lasts: Duration::from_secs(*lasts),
                share: *share,
                failures: None,
            })
            .collect();
        CapacitySchedule::new(&phases)
    }

    #[test]
    fn time_of_work_is_the_inverse_of_work() {
        let curve = curve(&[(10, 60, 0.3)]);
        for at in [0.0, 5.0, 10.0, 40.0, 70.0, 100.0] {
            assert!(
                (curve.time_of_work(curve.work(at)) - at).abs() < 1e-9,
                "{at}"
            );
        }
        assert!((curve.work(70.0) - 28.0).abs() < 1e-9);
        assert!((curve.share(9.9), curve.share(10.0), curve.share(70.0)) == (1.0, 0.3, 1.0));
        assert_eq!(curve.next_change(10.0), Some(70.0));
        assert_eq!(curve.next_change(70.0), None);
    }

    #[test]
    fn no_work_is_done_in_an_outage() {
        let curve = curve(&[(10, 5, 0.0)]);
        assert!((curve.work(15.0) - 10.0).abs() < 1e-9);
        assert!((curve.time_of_work(11.0) - 16.0).abs() < 1e-9);
        assert!((curve.time_of_work(10.0) - 15.0).abs() < 1e-9);
    }
}

//! What a short window of time showed of an upstream, and what is usual there.

/// How it is when nothing is wrong; 0 is not known yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct BaselineLoad {
    /// The share of calls that fails whatever the load.
    pub(super) loss: f64,
    pub(super) rate: f64,
    /// How many calls are on their way at most.
    pub(super) in_flight: f64,
    /// How long calls take, in milliseconds.
    pub(super) average_duration: f64,
}

/// What a window showed.
#[derive(Debug)]
pub(super) struct LoadSample {
    /// What got through, per millisecond.
    pub(super) throughput: f64,
    pub(super) sent: f64,
    /// The share of calls that failed.
    pub(super) loss: f64,
    pub(super) ended: u32,
    pub(super) timed_out: u32,
    pub(super) in_flight: u32,
    /// How long a call took on average, in milliseconds.
    pub(super) average_duration: Option<f64>,
}

//! Load of an upstream in a short time window, and its baseline.

/// The load under normal conditions; 0 means unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct BaselineLoad {
    /// The share of calls that fail regardless of load.
    pub(super) loss: f64,
    pub(super) rate: f64,
    /// The maximum number of calls in flight.
    pub(super) in_flight: f64,
    /// The average duration of a call, in milliseconds.
    pub(super) average_duration: f64,
}

/// The load observed in one window.
#[derive(Debug)]
pub(super) struct LoadSample {
    /// Successful calls per millisecond.
    pub(super) throughput: f64,
    pub(super) sent: f64,
    /// The share of calls that failed.
    pub(super) loss: f64,
    pub(super) ended: u32,
    pub(super) timed_out: u32,
    pub(super) in_flight: u32,
    /// The average duration of a call, in milliseconds.
    pub(super) average_duration: Option<f64>,
}

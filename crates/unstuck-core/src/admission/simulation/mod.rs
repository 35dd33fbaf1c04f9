//! A simulation in virtual time: clients, an upstream of limited capacity, with or without admission control.
//!
//! It has no clock, and its only randomness is the seed, so a minute with a hundred thousand clients takes a second and
//! is reproducible. Tests verify the guarantees of admission control with it, and benchmarks print its figures.
//!
//! ```
//! use std::time::Duration;
//! use unstuck_core::decision::template;
//! use unstuck_core::admission::AdmissionSettings;
//! use unstuck_core::admission::simulation::{AdmissionMode, Scenario, simulate};
//!
//! let policy = template("standard").ok_or("no such template")?;
//! let scenario = Scenario::healthy(50, Duration::from_secs(8), policy).with_outage();
//! let plain = simulate(&scenario, &AdmissionMode::Plain);
//! let paced = simulate(&scenario, &AdmissionMode::Lane(AdmissionSettings::default()));
//! let load = |report: &unstuck_core::admission::simulation::Report| report.per_second(15.0, 40.0, |tenth| tenth.sent);
//! assert!(load(&paced) < load(&plain) / 5.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod event_loop;
mod report;
mod scenario;
mod upstream;

pub use report::{Report, TenthSecondCounts, percentile};
pub use scenario::{
    AdmissionMode, Limit, Scenario, SimulatedCapacityDrop, SimulatedClients,
    SimulatedUpstreamSettings,
};

/// Runs a scenario to its end.
pub fn simulate(scenario: &Scenario, manner: &AdmissionMode) -> Report {
    event_loop::World::new(scenario, manner).run()
}

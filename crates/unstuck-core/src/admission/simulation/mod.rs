//! A simulation in virtual time: clients, an upstream of limited capacity, with or without admission control.
//!
//! It has no clock, and its only randomness is the seed, so a minute with a hundred thousand clients takes a second and
//! is reproducible. The tests verify the guarantees of admission control with it.

mod event_loop;
mod report;
mod scenario;
mod upstream;

pub(crate) use report::{Report, TenthSecondCounts, percentile};
pub(crate) use scenario::{AdmissionMode, Limit, Scenario};

/// Runs a scenario to its end.
pub(crate) fn simulate(scenario: &Scenario, manner: &AdmissionMode) -> Report {
    event_loop::World::new(scenario, manner).run()
}

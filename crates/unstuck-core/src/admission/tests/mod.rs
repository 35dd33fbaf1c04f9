//! Guarantees of admission control, call by call, as invariants and in simulation.

mod lanes;
mod laws;
mod sharing;
mod storms;

use std::time::Duration;

use super::ApiAdmissionSettings;
use super::simulation::{AdmissionMode, Scenario};
use crate::decision::template;

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn lane() -> AdmissionMode {
    AdmissionMode::Lane(ApiAdmissionSettings::default())
}

/// Returns a scenario with clients that think for this many seconds, with the gateway's policy.
fn scenario(clients: u32, think: u64) -> Scenario {
    Scenario::healthy(clients, seconds(think), template("standard").unwrap())
}

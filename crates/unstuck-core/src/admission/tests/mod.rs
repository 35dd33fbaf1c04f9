//! What lanes promise, call by call, as laws and in simulation.

mod lanes;
mod laws;
mod sharing;
mod storms;

use std::time::Duration;

use super::AdmissionSettings;
use super::simulation::{Manner, Scenario};
use crate::decision::template;

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn lane() -> Manner {
    Manner::Lane(AdmissionSettings::default())
}

/// So many clients that think for so many seconds between two calls, by the policy of the gateway.
fn scenario(clients: u32, think: u64) -> Scenario {
    Scenario::healthy(clients, seconds(think), template("standard").unwrap())
}

//! Scenarios of a simulation: an upstream, its outages, and its clients.

use std::time::Duration;

use crate::admission::AdmissionSettings;
use crate::decision::RetryPolicy;

/// The way of simulated calls to the upstream: directly, or through admission control.
#[derive(Debug, Clone, PartialEq)]
pub enum AdmissionMode {
    /// Each client sends and retries on its own.
    Plain,
    /// All clients share an admission controller.
    Lane(AdmissionSettings),
}

/// A scenario of a simulation; reproducible for the same seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The seed of the random numbers.
    pub seed: u64,
    /// The duration of the simulation.
    pub lasts: Duration,
    /// The clients.
    pub clients: SimulatedClients,
    /// The upstream.
    pub upstream: SimulatedUpstreamSettings,
    /// The disturbance of the upstream.
    pub trouble: Option<SimulatedCapacityDrop>,
    /// The retry policy of failed calls.
    pub policy: RetryPolicy,
}

/// The simulated clients: each sends a call, waits for it to end, thinks, and sends the next.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedClients {
    /// The number of clients, each with its own session.
    pub count: u32,
    /// The average think time.
    pub think: Duration,
    /// The number of further clients of one busy session, which never think.
    pub busy: u32,
    /// The time limit of an attempt.
    pub timeout: Option<Duration>,
}

/// A simulated upstream with a number of slots; further calls are queued, and refused when the queue is full.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedUpstreamSettings {
    /// The number of calls it processes concurrently.
    pub places: u32,
    /// The capacity of its queue.
    pub queue: u32,
    /// The average processing time of a call.
    pub service: Duration,
    /// The cost of refusing a call, as a share of processing one.
    pub refusal_cost: f64,
    /// The share of calls that fail by chance.
    pub transient: f64,
    /// The rate limit.
    pub limit: Option<Limit>,
}

/// The rate limit of a simulated upstream; each response states the remaining quota.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The number of requests.
    pub requests: u32,
    /// The time window.
    pub per: Duration,
    /// True if the quota refills gradually.
    pub refills: bool,
}

/// A period in which the simulated upstream has fewer slots; with none it is down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedCapacityDrop {
    /// The start.
    pub from: Duration,
    /// The end.
    pub until: Duration,
    /// The share of slots that is left.
    pub left: f64,
}

impl Scenario {
    /// Returns a scenario without disturbance whose upstream has 1.4 times the required capacity.
    pub fn healthy(clients: u32, think: Duration, policy: &RetryPolicy) -> Self {
        let service = Duration::from_millis(500);
        let asked = f64::from(clients) / (think + service).as_secs_f64();
        Self {
            seed: 7,
            lasts: Duration::from_secs(90),
            clients: SimulatedClients {
                count: clients,
                think,
                busy: 0,
                timeout: None,
            },
            upstream: SimulatedUpstreamSettings {
                places: rounded(1.4 * asked * service.as_secs_f64()).max(2),
                queue: rounded(0.2 * asked).max(4),
                service,
                refusal_cost: 0.1,
                transient: 0.0,
                limit: None,
            },
            trouble: None,
            policy: policy.clone(),
        }
    }

    /// Adds a brownout: the upstream loses 70% of its slots for a minute.
    #[must_use]
    pub fn with_brownout(self) -> Self {
        self.with_trouble(70, 0.3)
    }

    /// Adds an outage: the upstream is down for half a minute.
    #[must_use]
    pub fn with_outage(self) -> Self {
        self.with_trouble(40, 0.0)
    }

    fn with_trouble(self, until: u64, left: f64) -> Self {
        Self {
            trouble: Some(SimulatedCapacityDrop {
                from: Duration::from_secs(10),
                until: Duration::from_secs(until),
                left,
            }),
            ..self
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from floats saturate"
)]
pub(super) fn rounded(number: f64) -> u32 {
    number.round() as u32
}

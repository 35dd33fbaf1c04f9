//! Scenarios of a simulation: an upstream, its outages, and its clients.

use std::time::Duration;

use crate::admission::ApiAdmissionSettings;
use crate::decision::RetryPolicy;

/// The way of simulated calls to the upstream: directly, or through admission control.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AdmissionMode {
    /// Each client sends and retries on its own.
    Plain,
    /// All clients share an admission controller.
    Lane(ApiAdmissionSettings),
}

/// A scenario of a simulation; reproducible for the same seed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scenario {
    /// The seed of the random numbers.
    pub(crate) seed: u64,
    /// The duration of the simulation.
    pub(crate) lasts: Duration,
    /// The clients.
    pub(crate) clients: SimulatedClients,
    /// The upstream.
    pub(crate) upstream: SimulatedUpstreamSettings,
    /// The disturbance of the upstream.
    pub(crate) trouble: Option<SimulatedCapacityDrop>,
    /// The retry policy of failed calls.
    pub(crate) policy: RetryPolicy,
}

/// The simulated clients: each sends a call, waits for it to end, thinks, and sends the next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SimulatedClients {
    /// The number of clients, each with its own session.
    pub(crate) count: u32,
    /// The average think time.
    pub(crate) think: Duration,
    /// The number of further clients of one busy session, which never think.
    pub(crate) busy: u32,
    /// The time limit of an attempt.
    pub(crate) timeout: Option<Duration>,
}

/// A simulated upstream with a number of slots; further calls are queued, and refused when the queue is full.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SimulatedUpstreamSettings {
    /// The number of calls it processes concurrently.
    pub(crate) places: u32,
    /// The capacity of its queue.
    pub(crate) queue: u32,
    /// The average processing time of a call.
    pub(crate) service: Duration,
    /// The cost of refusing a call, as a share of processing one.
    pub(crate) refusal_cost: f64,
    /// The share of calls that fail by chance.
    pub(crate) transient: f64,
    /// The rate limit.
    pub(crate) limit: Option<Limit>,
}

/// The rate limit of a simulated upstream; each response states the remaining quota.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit {
    /// The number of requests.
    pub(crate) requests: u32,
    /// The time window.
    pub(crate) per: Duration,
    /// True if the quota refills gradually.
    pub(crate) refills: bool,
}

/// A period in which the simulated upstream has fewer slots; with none it is down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SimulatedCapacityDrop {
    /// The start.
    pub(crate) from: Duration,
    /// The end.
    pub(crate) until: Duration,
    /// The share of slots that is left.
    pub(crate) left: f64,
}

impl Scenario {
    /// Returns a scenario without disturbance whose upstream has 1.4 times the required capacity.
    pub(crate) fn healthy(clients: u32, think: Duration, policy: &RetryPolicy) -> Self {
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
    pub(crate) fn with_brownout(self) -> Self {
        self.with_capacity_drop(70, 0.3)
    }

    /// Adds an outage: the upstream is down for half a minute.
    #[must_use]
    pub(crate) fn with_outage(self) -> Self {
        self.with_capacity_drop(40, 0.0)
    }

    fn with_capacity_drop(self, until: u64, left: f64) -> Self {
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

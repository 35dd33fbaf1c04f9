//! What is played: an upstream, what happens to it, and who calls it.

use std::time::Duration;

use crate::admission::AdmissionSettings;
use crate::decision::RetryPolicy;

/// How calls reach the upstream.
#[derive(Debug, Clone, PartialEq)]
pub enum Manner {
    /// Each client sends and retries on its own.
    Plain,
    /// All clients share a lane.
    Lane(AdmissionSettings),
}

/// What is played; it is the same each time for the same seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Begins the random numbers.
    pub seed: u64,
    /// How long it lasts.
    pub lasts: Duration,
    /// Who calls.
    pub clients: Clients,
    /// Who is called.
    pub upstream: UpstreamSettings,
    /// When the upstream is not well.
    pub trouble: Option<Trouble>,
    /// How failed calls are tried again.
    pub policy: RetryPolicy,
}

/// Those who call: each sends one call, waits for it to end, thinks, and sends the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Clients {
    /// How many there are, each a session of its own.
    pub count: u32,
    /// How long each thinks on average.
    pub think: Duration,
    /// How many more belong to one busy session, and never think.
    pub busy: u32,
    /// After this long a client gives up a try.
    pub timeout: Option<Duration>,
}

/// An upstream with so many places; what finds none waits, and what cannot wait is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamSettings {
    /// How many calls it works on at once.
    pub places: u32,
    /// How many wait for a place.
    pub queue: u32,
    /// How long it works on a call on average.
    pub service: Duration,
    /// What refusing a call costs, as a share of the work on one.
    pub refusal_cost: f64,
    /// The share of calls that fails by chance.
    pub transient: f64,
    /// How many calls it allows.
    pub limit: Option<Limit>,
}

/// How many calls an upstream allows in which time; it says in each answer how many are left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// How many.
    pub requests: u32,
    /// In which time.
    pub per: Duration,
    /// Whether they come back little by little.
    pub refills: bool,
}

/// A time in which the upstream has fewer places; with none it is down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trouble {
    /// When it begins.
    pub from: Duration,
    /// When it ends.
    pub until: Duration,
    /// The share of its places that is left.
    pub left: f64,
}

impl Scenario {
    /// So many clients, an upstream that could serve 1.4 times what they ask for, and nothing wrong.
    pub fn healthy(clients: u32, think: Duration, policy: &RetryPolicy) -> Self {
        let service = Duration::from_millis(500);
        let asked = f64::from(clients) / (think + service).as_secs_f64();
        Self {
            seed: 7,
            lasts: Duration::from_secs(90),
            clients: Clients {
                count: clients,
                think,
                busy: 0,
                timeout: None,
            },
            upstream: UpstreamSettings {
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

    /// The upstream loses 70 % of its places for a minute.
    #[must_use]
    pub fn with_brownout(self) -> Self {
        self.with_trouble(70, 0.3)
    }

    /// The upstream is down for half a minute.
    #[must_use]
    pub fn with_outage(self) -> Self {
        self.with_trouble(40, 0.0)
    }

    fn with_trouble(self, until: u64, left: f64) -> Self {
        Self {
            trouble: Some(Trouble {
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

//! A random mix of faults: reproducible for the same seed and order of requests.

use std::sync::Arc;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, MapAccess};

use super::bounded_numbers::share;
use super::reply::FaultScriptReply;
use super::reply_parameters::FaultScriptAnswer;
use super::reply_parser::{ConditionalReply, ExtraTableKeys};
use super::request_condition::RequestCondition;
use crate::randomness::{RandomDrawPurpose, RequestRng};

/// The replies to requests without a remaining step: a fault for a share of them, an answer for the others.
///
/// ```
/// use unstuck_faults::FaultScript;
///
/// let flaky: FaultScript = r#"
///     [mix]
///     seed = 7
///     failures = 0.2
///     answer = { text = "Done" }
///
///     [[mix.fault]]
///     weight = 3
///     overloaded = {}
///
///     [[mix.fault]]
///     rate_limit = { retry_after = 1 }
/// "#
/// .parse()?;
/// # Ok::<(), unstuck_faults::FaultServerError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultMix {
    /// Seed of all draws.
    pub seed: u64,
    /// Share of requests that fail, from 0 to 1.
    #[serde(deserialize_with = "share")]
    pub failures: f64,
    /// Answer to the other requests.
    pub answer: FaultScriptAnswer,
    /// Faults; the default transient ones if empty.
    #[serde(rename = "fault")]
    pub faults: Vec<WeightedFault>,
}

/// One fault of a mix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedFault {
    /// Relative weight; 1 if absent.
    pub weight: u32,
    /// Matching requests.
    pub when: RequestCondition,
    /// Reply.
    pub reply: Arc<FaultScriptReply>,
}

impl FaultMix {
    /// Returns a mix in which this share of the requests meets one of the default transient faults.
    pub fn failing(failures: f64, seed: u64) -> Self {
        Self {
            seed,
            failures,
            ..Self::default()
        }
    }

    /// Adds a fault with this weight.
    #[must_use]
    pub fn with_fault(mut self, weight: u32, reply: FaultScriptReply) -> Self {
        self.faults.push(WeightedFault::new(weight, reply));
        self
    }

    /// Draws the fault for a request, or returns `None` if it gets an answer. Only faults accepted by `fits` are drawn.
    pub(crate) fn draw_fault(
        &self,
        number: u64,
        failures: f64,
        fits: impl Fn(&RequestCondition) -> bool,
    ) -> Option<Arc<FaultScriptReply>> {
        let chance = RequestRng::for_request(self.seed, number);
        if chance.draw(RandomDrawPurpose::WhetherFails, 0) >= failures {
            return None;
        }
        let fitting = || {
            let faults = self.faults.iter();
            faults.filter(|fault| fault.weight > 0 && fits(&fault.when))
        };
        let total: u64 = fitting().map(|fault| u64::from(fault.weight)).sum();
        let mut point = chance.draw(RandomDrawPurpose::Fault, 0) * total as f64;
        let mut last = None;
        for fault in fitting() {
            last = Some(Arc::clone(&fault.reply));
            point -= f64::from(fault.weight);
            if point < 0.0 {
                break;
            }
        }
        last
    }

    /// Returns the mix with the default faults if it names none.
    pub(crate) fn with_default_faults(mut self) -> Self {
        if self.faults.is_empty() {
            self.faults = default_faults();
        }
        self
    }
}

impl Default for FaultMix {
    fn default() -> Self {
        Self {
            seed: 0,
            failures: 0.2,
            answer: FaultScriptAnswer {
                text: "All twelve tests pass.".to_owned(),
                ..FaultScriptAnswer::default()
            },
            faults: Vec::new(),
        }
    }
}

impl WeightedFault {
    /// Returns a fault for all requests.
    pub fn new(weight: u32, reply: FaultScriptReply) -> Self {
        Self {
            weight,
            when: RequestCondition::default(),
            reply: Arc::new(reply),
        }
    }
}

/// Returns the default transient faults, roughly in their real shares.
fn default_faults() -> Vec<WeightedFault> {
    let stall = FaultScriptReply::StallAt {
        after: 3,
        wait: Some(Duration::from_millis(500)),
        pings: None,
        cut: false,
    };
    let limited = FaultScriptReply::RateLimit {
        retry_after: Some(1),
    };
    let faults = [
        (4, FaultScriptReply::Overloaded),
        (4, limited),
        (3, FaultScriptReply::ServerError),
        (2, FaultScriptReply::status(503)),
        (1, FaultScriptReply::status(502)),
        (1, FaultScriptReply::status(504)),
        (1, FaultScriptReply::Html { status: None }),
        (
            1,
            FaultScriptReply::Reset {
                by: super::ConnectionResetPoint::BeforeHeaders,
            },
        ),
        (1, FaultScriptReply::Close),
        (1, stall),
        (1, FaultScriptReply::Cut),
        (1, FaultScriptReply::StreamError),
    ];
    faults
        .into_iter()
        .map(|(weight, reply)| WeightedFault::new(weight, reply))
        .collect()
}

#[derive(Default)]
struct Weight(Option<u32>);

impl ExtraTableKeys for Weight {
    const KEYS: &'static str = "`when` and `weight`";

    fn read_key<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<bool, A::Error> {
        let is_ours = key == "weight";
        if is_ours {
            self.0 = Some(map.next_value()?);
        }
        Ok(is_ours)
    }
}

impl<'de> Deserialize<'de> for WeightedFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = ConditionalReply::<Weight>::deserialize(deserializer)?;
        Ok(Self {
            weight: entry.extra.0.unwrap_or(1),
            when: entry.when,
            reply: Arc::new(entry.reply),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(mix: &FaultMix) -> Vec<&'static str> {
        (0..2_000)
            .map(|number| {
                let fault = mix.draw_fault(number, mix.failures, |_| true);
                fault.map_or("answer", |fault| fault.name())
            })
            .collect()
    }

    #[test]
    fn a_mix_is_reproducible_by_its_seed() {
        let mix = |seed| drawn(&FaultMix::failing(0.3, seed).with_default_faults());
        assert_eq!(mix(7), mix(7));
        assert_ne!(mix(7), mix(8));
    }

    #[test]
    fn faults_are_drawn_by_weight() {
        let mix = FaultMix::failing(0.5, 1)
            .with_fault(3, FaultScriptReply::Overloaded)
            .with_fault(1, FaultScriptReply::Auth);
        let drawn = drawn(&mix);
        let count = |name| drawn.iter().filter(|drawn| **drawn == name).count();
        assert!(
            (920..1_080).contains(&count("answer")),
            "{}",
            count("answer")
        );
        assert!(
            (680..820).contains(&count("overloaded")),
            "{}",
            count("overloaded")
        );
        assert!((200..300).contains(&count("auth")), "{}", count("auth"));
    }
}

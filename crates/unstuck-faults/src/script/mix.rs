//! A random mix of faults: the same each time for the same seed and order of requests.

use std::sync::Arc;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, MapAccess};

use super::answer::Answer;
use super::entry::{Entry, Extra};
use super::reply::Reply;
use super::share::share;
use super::when::When;
use crate::chance::{Chance, Purpose};

/// What requests get for which no step is left: a fault for a share of them, an answer for the others.
///
/// ```
/// use unstuck_faults::Script;
///
/// let flaky: Script = r#"
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
/// # Ok::<(), unstuck_faults::FaultsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mix {
    /// What the draws begin with.
    pub seed: u64,
    /// The share of requests that fail, from 0 to 1.
    #[serde(deserialize_with = "share")]
    pub failures: f64,
    /// What the others get.
    pub answer: Answer,
    /// The faults; the usual transient ones if there are none.
    #[serde(rename = "fault")]
    pub faults: Vec<Weighted>,
}

/// One fault of a mix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted {
    /// How often it is taken, compared with the others; 1 if absent.
    pub weight: u32,
    /// The requests that it is for.
    pub when: When,
    /// What they are answered.
    pub reply: Arc<Reply>,
}

impl Mix {
    /// A mix in which this share of the requests meets one of the usual transient faults.
    pub fn failing(failures: f64, seed: u64) -> Self {
        Self {
            seed,
            failures,
            ..Self::default()
        }
    }

    /// Adds a fault with this weight.
    #[must_use]
    pub fn with(mut self, weight: u32, reply: Reply) -> Self {
        self.faults.push(Weighted::new(weight, reply));
        self
    }

    /// The fault that a request meets; `None` if it gets an answer. Only faults that `fits` says yes to are drawn.
    pub(crate) fn draw(
        &self,
        number: u64,
        failures: f64,
        fits: impl Fn(&When) -> bool,
    ) -> Option<Arc<Reply>> {
        let chance = Chance::of(self.seed, number);
        if chance.draw(Purpose::Fails, 0) >= failures {
            return None;
        }
        let fitting = || {
            let faults = self.faults.iter();
            faults.filter(|fault| fault.weight > 0 && fits(&fault.when))
        };
        let total: u64 = fitting().map(|fault| u64::from(fault.weight)).sum();
        let mut point = chance.draw(Purpose::Fault, 0) * total as f64;
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

    /// The mix with the usual faults where none are named.
    pub(crate) fn complete(mut self) -> Self {
        if self.faults.is_empty() {
            self.faults = usual();
        }
        self
    }
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            seed: 0,
            failures: 0.2,
            answer: Answer {
                text: "All twelve tests pass.".to_owned(),
                ..Answer::default()
            },
            faults: Vec::new(),
        }
    }
}

impl Weighted {
    /// A fault for all requests.
    pub fn new(weight: u32, reply: Reply) -> Self {
        Self {
            weight,
            when: When::default(),
            reply: Arc::new(reply),
        }
    }
}

/// What passes by itself, in about the shares in which it is met.
fn usual() -> Vec<Weighted> {
    let stall = Reply::StallAt {
        after: 3,
        wait: Some(Duration::from_millis(500)),
        pings: None,
        cut: false,
    };
    let limited = Reply::RateLimit {
        retry_after: Some(1),
    };
    let faults = [
        (4, Reply::Overloaded),
        (4, limited),
        (3, Reply::ServerError),
        (2, Reply::status(503)),
        (1, Reply::status(502)),
        (1, Reply::status(504)),
        (1, Reply::Html { status: None }),
        (
            1,
            Reply::Reset {
                by: super::BrokenBy::BeforeHeaders,
            },
        ),
        (1, Reply::Close),
        (1, stall),
        (1, Reply::Cut),
        (1, Reply::StreamError),
    ];
    faults
        .into_iter()
        .map(|(weight, reply)| Weighted::new(weight, reply))
        .collect()
}

#[derive(Default)]
struct Weight(Option<u32>);

impl Extra for Weight {
    const KEYS: &'static str = "`when` and `weight`";

    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        let is_ours = key == "weight";
        if is_ours {
            self.0 = Some(map.next_value()?);
        }
        Ok(is_ours)
    }
}

impl<'de> Deserialize<'de> for Weighted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = Entry::<Weight>::deserialize(deserializer)?;
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

    fn drawn(mix: &Mix) -> Vec<&'static str> {
        (0..2_000)
            .map(|number| {
                let fault = mix.draw(number, mix.failures, |_| true);
                fault.map_or("answer", |fault| fault.name())
            })
            .collect()
    }

    #[test]
    fn a_mix_is_the_same_for_the_same_seed() {
        let mix = |seed| drawn(&Mix::failing(0.3, seed).complete());
        assert_eq!(mix(7), mix(7));
        assert_ne!(mix(7), mix(8));
    }

    #[test]
    fn faults_come_in_the_share_of_their_weights() {
        let mix = Mix::failing(0.5, 1)
            .with(3, Reply::Overloaded)
            .with(1, Reply::Auth);
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

//! How often one address may ask: a bucket each, so that nobody keeps the others from being answered.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use unstuck_core::Timestamp;
use unstuck_core::decision::{Budget, BudgetSettings};

/// So many addresses are remembered; those that have not asked for long go first.
const MOST: usize = 10_000;

/// How often one address may ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// How many requests at once.
    pub burst: u32,
    /// How many in a second, in the long run.
    pub per_second: f64,
}

impl Rate {
    fn bucket(self, now: Timestamp) -> Budget {
        let settings = BudgetSettings {
            capacity: f64::from(self.burst),
            deposit: 0.0,
            floor_per_minute: self.per_second * 60.0,
        };
        Budget::full(settings, now)
    }
}

/// The rates that hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimits {
    /// Of this machine, where all dashboards share one address; 2000 at once and 500 in a second by default.
    pub here: Rate,
    /// Of any other address; 200 at once and 50 in a second by default.
    pub elsewhere: Rate,
    /// How often an address may be wrong about its token or code; 20 at once and one in ten seconds by default.
    pub wrong: Rate,
}

impl Default for RateLimits {
    fn default() -> Self {
        let rate = |burst, per_second| Rate { burst, per_second };
        Self {
            here: rate(2000, 500.0),
            elsewhere: rate(200, 50.0),
            wrong: rate(20, 0.1),
        }
    }
}

/// The buckets of all addresses.
#[derive(Debug)]
pub(crate) struct Rates {
    limits: RateLimits,
    asked: Buckets,
    wrong: Buckets,
}

type Buckets = Mutex<HashMap<Option<IpAddr>, Budget>>;

impl Rates {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            asked: Mutex::default(),
            wrong: Mutex::default(),
        }
    }

    /// Counts a request; how long to wait if there were too many.
    pub(crate) fn asked(&self, peer: Option<IpAddr>, now: Timestamp) -> Result<(), Duration> {
        let is_here = peer.is_some_and(|peer| peer.is_loopback());
        let rate = match is_here {
            true => self.limits.here,
            false => self.limits.elsewhere,
        };
        // Who was wrong too often is not listened to, whatever they bring.
        let waits = with(&self.wrong, peer, self.limits.wrong, now, |bucket| {
            bucket.wait(now)
        });
        if !waits.is_zero() {
            return Err(waits);
        }
        with(&self.asked, peer, rate, now, |bucket| {
            match bucket.spend(now) {
                true => Ok(()),
                false => Err(bucket.wait(now)),
            }
        })
    }

    /// Counts a wrong token or code.
    pub(crate) fn was_wrong(&self, peer: Option<IpAddr>, now: Timestamp) {
        with(&self.wrong, peer, self.limits.wrong, now, |bucket| {
            bucket.spend(now)
        });
    }
}

fn with<T>(
    buckets: &Buckets,
    peer: Option<IpAddr>,
    rate: Rate,
    now: Timestamp,
    look: impl FnOnce(&mut Budget) -> T,
) -> T {
    let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
    let peer = peer.map(neighbourhood);
    if buckets.len() >= MOST && !buckets.contains_key(&peer) {
        let full = f64::from(rate.burst);
        buckets.retain(|_, bucket| bucket.tokens(now) < full);
        if buckets.len() >= MOST {
            buckets.clear();
        }
    }
    look(buckets.entry(peer).or_insert_with(|| rate.bucket(now)))
}

/// Whoever has one address of IPv6 has a whole network of them.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            match address.is_loopback() {
                true => address.into(),
                false => Ipv6Addr::from(network).into(),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_794_777_000);

    fn rates() -> Rates {
        let rate = |burst, per_second| Rate { burst, per_second };
        Rates::new(RateLimits {
            here: rate(100, 1.0),
            elsewhere: rate(3, 1.0),
            wrong: rate(2, 0.1),
        })
    }

    fn address(text: &str) -> Option<IpAddr> {
        text.parse().ok()
    }

    #[test]
    fn who_asks_too_often_is_told_when_to_come_back_and_others_are_not_held_up() {
        let rates = rates();
        let busy = address("192.0.2.7");
        assert!((0..3).all(|_| rates.asked(busy, NOW).is_ok()));
        let wait = rates.asked(busy, NOW).unwrap_err();
        assert!(wait < Duration::from_secs(2) && !wait.is_zero());
        assert!(rates.asked(address("192.0.2.8"), NOW).is_ok());
        assert!(rates.asked(address("127.0.0.1"), NOW).is_ok());
        assert!(rates.asked(busy, NOW.after(wait)).is_ok());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let rates = rates();
        for last in 0..3 {
            assert!(
                rates
                    .asked(address(&format!("2001:db8::{last}")), NOW)
                    .is_ok()
            );
        }
        assert!(rates.asked(address("2001:db8::ffff"), NOW).is_err());
        assert!(rates.asked(address("2001:db8:0:1::1"), NOW).is_ok());
    }

    #[test]
    fn who_guesses_tokens_is_not_listened_to_for_a_while() {
        let rates = rates();
        let guesser = address("192.0.2.7");
        rates.was_wrong(guesser, NOW);
        assert!(rates.asked(guesser, NOW).is_ok());
        rates.was_wrong(guesser, NOW);
        let wait = rates.asked(guesser, NOW).unwrap_err();
        assert!(wait > Duration::from_secs(5), "{wait:?}");
        assert!(rates.asked(address("192.0.2.8"), NOW).is_ok());
    }
}

//! How often somebody may ask: a bucket each, so that nobody keeps the others from being answered.
//!
//! Whoever brings a token or a login that counts has a bucket of their own: many share the address of one machine, and
//! what one of them does wrong must not shut out the others. For the same reason everybody may look from this machine.
//! Secrets have 256 bits, so nothing is gained by guessing: wrong ones are only kept from filling logs and files.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use unstuck_core::Timestamp;
use unstuck_core::decision::{Budget, BudgetSettings};

use super::who::Peer;

/// So many askers are remembered; those that have not asked for long go first.
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
    /// Of each token or login from this machine; 2000 at once and 500 in a second by default.
    pub here: Rate,
    /// Of each token or login from elsewhere, and of each other address; 200 at once and 50 in a second by default.
    pub elsewhere: Rate,
    /// How often an address, or one user of this machine, is told that a token or code is wrong; 20 at once and one in ten
    /// seconds by default. Right ones of the same address are not held up by it.
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

/// Somebody who asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Asker {
    /// Whoever has this token or login, by its hash.
    Known(String),
    /// Whoever is at this address, and of this user where that is known.
    At(Peer),
}

/// The buckets of all askers.
#[derive(Debug)]
pub(crate) struct Rates {
    limits: RateLimits,
    asked: Buckets,
    wrong: Buckets,
}

type Buckets = Mutex<HashMap<Asker, Budget>>;

impl Rates {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            asked: Mutex::default(),
            wrong: Mutex::default(),
        }
    }

    /// Counts a request of somebody who is here or elsewhere; how long to wait if there were too many.
    pub(crate) fn asked(&self, asker: Asker, here: bool, now: Timestamp) -> Result<(), Duration> {
        let rate = match here {
            true => self.limits.here,
            false => self.limits.elsewhere,
        };
        spend(&self.asked, asker, rate, now)
    }

    /// Counts a wrong token or code of a peer; how long to wait if there were too many.
    pub(crate) fn was_wrong(&self, peer: Peer, now: Timestamp) -> Result<(), Duration> {
        spend(&self.wrong, Asker::At(peer), self.limits.wrong, now)
    }
}

fn spend(buckets: &Buckets, asker: Asker, rate: Rate, now: Timestamp) -> Result<(), Duration> {
    let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
    let asker = match asker {
        Asker::At(peer) => Asker::At(Peer {
            address: peer.address.map(neighbourhood),
            ..peer
        }),
        known => known,
    };
    if buckets.len() >= MOST && !buckets.contains_key(&asker) {
        let full = f64::from(rate.burst);
        buckets.retain(|_, bucket| bucket.tokens(now) < full);
        if buckets.len() >= MOST {
            buckets.clear();
        }
    }
    let bucket = buckets.entry(asker).or_insert_with(|| rate.bucket(now));
    match bucket.spend(now) {
        true => Ok(()),
        false => Err(bucket.wait(now)),
    }
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
    use unstuck_network::PeerOwner;

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

    fn peer(text: &str) -> Peer {
        Peer {
            address: text.parse().ok(),
            owner: PeerOwner::Unknown,
        }
    }

    fn at(text: &str) -> Asker {
        Asker::At(peer(text))
    }

    #[test]
    fn who_asks_too_often_is_told_when_to_come_back_and_others_are_not_held_up() {
        let rates = rates();
        let busy = || at("192.0.2.7");
        assert!((0..3).all(|_| rates.asked(busy(), false, NOW).is_ok()));
        let wait = rates.asked(busy(), false, NOW).unwrap_err();
        assert!(wait < Duration::from_secs(2) && !wait.is_zero());
        assert!(rates.asked(at("192.0.2.8"), false, NOW).is_ok());
        let known = Asker::Known("hash".to_owned());
        assert!(rates.asked(known, false, NOW).is_ok());
        assert!(rates.asked(busy(), false, NOW.after(wait)).is_ok());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let rates = rates();
        for last in 0..3 {
            let one = at(&format!("2001:db8::{last}"));
            assert!(rates.asked(one, false, NOW).is_ok());
        }
        assert!(rates.asked(at("2001:db8::ffff"), false, NOW).is_err());
        assert!(rates.asked(at("2001:db8:0:1::1"), false, NOW).is_ok());
    }

    /// W2: what somebody does wrong counts against wrong tokens and nothing else.
    #[test]
    fn who_guesses_tokens_is_only_kept_from_guessing() {
        let rates = rates();
        let guesser = peer("192.0.2.7");
        assert!((0..2).all(|_| rates.was_wrong(guesser, NOW).is_ok()));
        let wait = rates.was_wrong(guesser, NOW).unwrap_err();
        assert!(wait > Duration::from_secs(5), "{wait:?}");
        assert!(rates.asked(at("192.0.2.7"), false, NOW).is_ok());
        assert!(rates.was_wrong(peer("192.0.2.8"), NOW).is_ok());
        let other_user = Peer {
            owner: PeerOwner::OtherUser(6666),
            ..guesser
        };
        assert!(rates.was_wrong(other_user, NOW).is_ok());
    }
}

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
use unstuck_core::decision::{RetryBudget, RetryBudgetSettings};

use super::identity::ClientPeer;

/// So many askers are remembered; those that have not asked for long go first.
const MAX_BUCKETS: usize = 10_000;

/// How often one address may ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestRate {
    /// How many requests at once.
    pub burst: u32,
    /// How many in a second, in the long run.
    pub per_second: f64,
}

impl RequestRate {
    fn bucket(self, now: Timestamp) -> RetryBudget {
        let settings = RetryBudgetSettings {
            capacity: f64::from(self.burst),
            deposit: 0.0,
            floor_per_minute: self.per_second * 60.0,
        };
        RetryBudget::full(settings, now)
    }
}

/// The rates that hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimits {
    /// Of each token or login from this machine; 2000 at once and 500 in a second by default.
    pub here: RequestRate,
    /// Of each token or login from elsewhere, and of each other address; 200 at once and 50 in a second by default.
    pub elsewhere: RequestRate,
    /// How often an address, or one user of this machine, is told that a token or code is wrong; 20 at once and one in ten
    /// seconds by default. Right ones of the same address are not held up by it.
    pub wrong: RequestRate,
}

impl Default for RateLimits {
    fn default() -> Self {
        let rate = |burst, per_second| RequestRate { burst, per_second };
        Self {
            here: rate(2000, 500.0),
            elsewhere: rate(200, 50.0),
            wrong: rate(20, 0.1),
        }
    }
}

/// Somebody who asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RateLimitKey {
    /// Whoever has this token or login, by its hash.
    Credential(String),
    /// Whoever is at this address, and of this user where that is known.
    Address(ClientPeer),
}

/// The buckets of all askers.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    limits: RateLimits,
    request_buckets: Buckets,
    rejected_buckets: Buckets,
}

type Buckets = Mutex<HashMap<RateLimitKey, RetryBudget>>;

impl RateLimiter {
    pub(crate) fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            request_buckets: Mutex::default(),
            rejected_buckets: Mutex::default(),
        }
    }

    /// Counts a request of somebody who is here or elsewhere; how long to wait if there were too many.
    pub(crate) fn check_request(
        &self,
        asker: RateLimitKey,
        here: bool,
        now: Timestamp,
    ) -> Result<(), Duration> {
        let rate = if here {
            self.limits.here
        } else {
            self.limits.elsewhere
        };
        take_from_bucket(&self.request_buckets, asker, rate, now)
    }

    /// Counts a wrong token or code of a peer; how long to wait if there were too many.
    pub(crate) fn check_rejected(&self, peer: ClientPeer, now: Timestamp) -> Result<(), Duration> {
        take_from_bucket(
            &self.rejected_buckets,
            RateLimitKey::Address(peer),
            self.limits.wrong,
            now,
        )
    }
}

fn take_from_bucket(
    buckets: &Buckets,
    asker: RateLimitKey,
    rate: RequestRate,
    now: Timestamp,
) -> Result<(), Duration> {
    let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
    let asker = match asker {
        RateLimitKey::Address(peer) => RateLimitKey::Address(ClientPeer {
            address: peer.address.map(network_prefix),
            ..peer
        }),
        known => known,
    };
    if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&asker) {
        let full = f64::from(rate.burst);
        buckets.retain(|_, bucket| bucket.tokens(now) < full);
        if buckets.len() >= MAX_BUCKETS {
            buckets.clear();
        }
    }
    let bucket = buckets.entry(asker).or_insert_with(|| rate.bucket(now));
    if bucket.try_spend(now) {
        Ok(())
    } else {
        Err(bucket.time_until_retry(now))
    }
}

/// Whoever has one address of IPv6 has a whole network of them.
fn network_prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            if address.is_loopback() {
                address.into()
            } else {
                Ipv6Addr::from(network).into()
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

    fn rates() -> RateLimiter {
        let rate = |burst, per_second| RequestRate { burst, per_second };
        RateLimiter::new(RateLimits {
            here: rate(100, 1.0),
            elsewhere: rate(3, 1.0),
            wrong: rate(2, 0.1),
        })
    }

    fn peer(text: &str) -> ClientPeer {
        ClientPeer {
            address: text.parse().ok(),
            owner: PeerOwner::Unknown,
        }
    }

    fn at(text: &str) -> RateLimitKey {
        RateLimitKey::Address(peer(text))
    }

    #[test]
    fn who_asks_too_often_is_told_when_to_come_back_and_others_are_not_held_up() {
        let rates = rates();
        let busy = || at("192.0.2.7");
        assert!((0..3).all(|_| rates.check_request(busy(), false, NOW).is_ok()));
        let wait = rates.check_request(busy(), false, NOW).unwrap_err();
        assert!(wait < Duration::from_secs(2) && !wait.is_zero());
        assert!(rates.check_request(at("192.0.2.8"), false, NOW).is_ok());
        let known = RateLimitKey::Credential("hash".to_owned());
        assert!(rates.check_request(known, false, NOW).is_ok());
        assert!(rates.check_request(busy(), false, NOW.after(wait)).is_ok());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let rates = rates();
        for last in 0..3 {
            let one = at(&format!("2001:db8::{last}"));
            assert!(rates.check_request(one, false, NOW).is_ok());
        }
        assert!(
            rates
                .check_request(at("2001:db8::ffff"), false, NOW)
                .is_err()
        );
        assert!(
            rates
                .check_request(at("2001:db8:0:1::1"), false, NOW)
                .is_ok()
        );
    }

    /// W2: what somebody does wrong counts against wrong tokens and nothing else.
    #[test]
    fn who_guesses_tokens_is_only_kept_from_guessing() {
        let rates = rates();
        let guesser = peer("192.0.2.7");
        assert!((0..2).all(|_| rates.check_rejected(guesser, NOW).is_ok()));
        let wait = rates.check_rejected(guesser, NOW).unwrap_err();
        assert!(wait > Duration::from_secs(5), "{wait:?}");
        assert!(rates.check_request(at("192.0.2.7"), false, NOW).is_ok());
        assert!(rates.check_rejected(peer("192.0.2.8"), NOW).is_ok());
        let other_user = ClientPeer {
            owner: PeerOwner::OtherUser(6666),
            ..guesser
        };
        assert!(rates.check_rejected(other_user, NOW).is_ok());
    }
}

//! Rate limits: one token bucket per client, so that no client blocks the others.
//!
//! Each valid token or login has its own bucket: many clients share the address of one machine, and the mistakes of one
//! must not block the others. For the same reason read access from this machine is not limited. Secrets have 256 bits
//! and cannot be guessed: rejected ones are limited only to keep them from filling logs and files.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use unstuck_core::Timestamp;
use unstuck_core::decision::{RetryBudgetSettings, UpstreamRetryBudget};

use super::identity::ClientPeer;

/// Maximum number of buckets; those unused for longest are dropped first.
const MAX_BUCKETS: usize = 10_000;

/// A limit of the request rate: burst and sustained rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WebClientRateLimit {
    /// Number of requests in a burst.
    pub burst: u32,
    /// Sustained requests per second.
    pub per_second: f64,
}

impl WebClientRateLimit {
    fn bucket(self, now: Timestamp) -> UpstreamRetryBudget {
        let settings = RetryBudgetSettings {
            capacity: f64::from(self.burst),
            deposit: 0.0,
            floor_per_minute: self.per_second * 60.0,
        };
        UpstreamRetryBudget::full(settings, now)
    }
}

/// The rate limits of requests to this server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WebRequestRateLimits {
    /// Limit of each token or login from this machine; by default a burst of 2000 and 500 per second.
    pub here: WebClientRateLimit,
    /// Limit of each token or login from elsewhere, and of each other address; by default a burst of 200 and 50 per
    /// second.
    pub elsewhere: WebClientRateLimit,
    /// Limit of rejected tokens or codes per address or user of this machine; by default a burst of 20 and one per ten
    /// seconds. Valid credentials from the same address are not affected.
    pub wrong: WebClientRateLimit,
}

impl Default for WebRequestRateLimits {
    fn default() -> Self {
        let rate = |burst, per_second| WebClientRateLimit { burst, per_second };
        Self {
            here: rate(2000, 500.0),
            elsewhere: rate(200, 50.0),
            wrong: rate(20, 0.1),
        }
    }
}

/// The client that a bucket belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RateLimitKey {
    /// A token or login, by its hash.
    Credential(String),
    /// An address, with its user if known.
    Address(ClientPeer),
}

/// The token buckets of all clients.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    limits: WebRequestRateLimits,
    request_buckets: Buckets,
    rejected_buckets: Buckets,
}

type Buckets = Mutex<HashMap<RateLimitKey, UpstreamRetryBudget>>;

impl RateLimiter {
    pub(crate) fn new(limits: WebRequestRateLimits) -> Self {
        Self {
            limits,
            request_buckets: Mutex::default(),
            rejected_buckets: Mutex::default(),
        }
    }

    /// Counts a request; returns the time to wait if the limit is exceeded.
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

    /// Counts a rejected token or code of a peer; returns the time to wait if the limit is exceeded.
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
    rate: WebClientRateLimit,
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

/// Reduces an address to its network: an IPv6 client controls a whole network of addresses.
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
        let rate = |burst, per_second| WebClientRateLimit { burst, per_second };
        RateLimiter::new(WebRequestRateLimits {
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
    fn rate_limit_returns_the_wait_and_does_not_affect_others() {
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
    fn ipv6_network_shares_one_bucket() {
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

    /// W2: rejected tokens use only the limit for rejected tokens.
    #[test]
    fn guessing_tokens_limits_only_further_guesses() {
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

//! Counts rejected tokens and codes per address, to report attacks without blocking anyone.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast;
use unstuck_core::Timestamp;

/// Time without another rejected token after which an address is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Number of rejected tokens below which they are treated as typing errors.
const REPORT_THRESHOLD: u64 = 10;
/// Maximum number of addresses that are tracked.
const MAX_ADDRESSES: usize = 1000;
/// Capacity of the report channel.
const REPORT_CAPACITY: usize = 16;

/// A report of the rejected tokens and codes of one address, without a longer pause between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectedTokenReport {
    /// Address; `None` if unknown.
    pub address: Option<IpAddr>,
    /// Number of rejected tokens.
    pub count: u64,
    /// Time of the first one.
    pub first: Timestamp,
    /// Time of the last one.
    pub last: Timestamp,
}

/// Counts rejected tokens and codes by address.
#[derive(Debug)]
pub(crate) struct RejectedTokenCounter {
    by_address: Mutex<HashMap<Option<IpAddr>, RejectedTokenReport>>,
    reports: broadcast::Sender<RejectedTokenReport>,
}

impl Default for RejectedTokenCounter {
    fn default() -> Self {
        Self {
            by_address: Mutex::default(),
            reports: broadcast::Sender::new(REPORT_CAPACITY),
        }
    }
}

impl RejectedTokenCounter {
    /// Counts a rejected token. Reports the first, tenth, hundredth and so on of an address.
    pub(crate) fn record(&self, address: Option<IpAddr>, now: Timestamp) {
        let mut seen = self
            .by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, one| now.since(one.last) < FORGET_AFTER);
        if seen.len() >= MAX_ADDRESSES && !seen.contains_key(&address) {
            return;
        }
        let one = seen.entry(address).or_insert(RejectedTokenReport {
            address,
            count: 0,
            first: now,
            last: now,
        });
        one.count += 1;
        one.last = now;
        let digits = one.count.ilog10();
        if one.count == 10_u64.pow(digits) {
            // There may be no subscriber.
            let _ = self.reports.send(*one);
        }
    }

    /// Returns the address with the most rejected tokens, if they exceed typing errors.
    pub(crate) fn worst_address(&self, now: Timestamp) -> Option<RejectedTokenReport> {
        let seen = self
            .by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let lately = seen.values().filter(|one| {
            let is_late = now.since(one.last) < FORGET_AFTER;
            is_late && one.count >= REPORT_THRESHOLD
        });
        lately.max_by_key(|one| one.count).copied()
    }

    /// Subscribes to future reports.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<RejectedTokenReport> {
        self.reports.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_794_777_000);

    fn second(n: u64) -> Timestamp {
        NOW.after(Duration::from_secs(n))
    }

    #[test]
    fn repeated_rejected_tokens_are_reported_at_powers_of_ten() {
        let rejected = RejectedTokenCounter::default();
        let mut reports = rejected.subscribe();
        let here = "127.0.0.1".parse().ok();
        for n in 0..9 {
            rejected.record(here, second(n));
        }
        assert_eq!(rejected.worst_address(second(9)), None, "typing errors");
        for n in 9..1234 {
            rejected.record(here, second(n));
        }
        let most = rejected.worst_address(second(1234)).unwrap();
        assert_eq!((most.address, most.count), (here, 1234));
        assert_eq!((most.first, most.last), (NOW, second(1233)));
        let mut told = Vec::new();
        while let Ok(report) = reports.try_recv() {
            told.push(report.count);
        }
        assert_eq!(told, [1, 10, 100, 1000]);
    }

    #[test]
    fn idle_address_is_forgotten() {
        let rejected = RejectedTokenCounter::default();
        let here = "192.0.2.7".parse().ok();
        (0..20).for_each(|_| rejected.record(here, NOW));
        assert!(rejected.worst_address(second(599)).is_some());
        assert_eq!(rejected.worst_address(second(600)), None);
        rejected.record(here, second(700));
        let again: Vec<_> = (0..9).map(|_| rejected.record(here, second(700))).collect();
        assert_eq!(again.len(), 9);
        assert_eq!(
            rejected.worst_address(second(700)).map(|one| one.count),
            Some(10)
        );
    }
}

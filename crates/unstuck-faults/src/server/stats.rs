//! Request statistics: cheap enough for benchmarks, bounded however long the server runs.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

/// Maximum number of distinct paths and models; further ones are counted together.
const MAX_NAMES: usize = 200;
const OTHERS: &str = "(others)";

/// Maximum number of seconds counted separately.
const MAX_SECONDS: usize = 24 * 60 * 60;

/// The statistics of a server; `GET /__faults/stats` returns them as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FaultServerStats {
    /// Received requests, except those for the statistics.
    pub requests: u64,
    /// Accepted connections.
    pub connections: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Maximum number of requests in flight at once.
    pub most_in_flight: u64,
    /// Answers whose client disconnected early.
    pub abandoned: u64,
    /// Counts by outcome: a reply's name, `over_limit`, `over_capacity`, `no_step`, `bad_request` or `aside` (auxiliary
    /// queries).
    pub by_reply: BTreeMap<String, u64>,
    /// Counts by HTTP status; 0 if there was none.
    pub by_status: BTreeMap<u16, u64>,
    /// Counts by path.
    pub by_path: BTreeMap<String, u64>,
    /// Counts by model.
    pub by_model: BTreeMap<String, u64>,
    /// Requests in each second since the first request; for the first day.
    pub per_second: Vec<u64>,
    /// Successful answers (2xx) begun in each of these seconds.
    pub good_per_second: Vec<u64>,
}

/// The counters behind the statistics.
#[derive(Debug, Default)]
pub(super) struct StatsCounter {
    requests: u64,
    connections: u64,
    in_flight: u64,
    most_in_flight: u64,
    abandoned: u64,
    by_reply: HashMap<&'static str, u64>,
    by_status: HashMap<u16, u64>,
    by_path: HashMap<String, u64>,
    by_model: HashMap<String, u64>,
    first: Option<u64>,
    per_second: Vec<u64>,
    good_per_second: Vec<u64>,
}

impl StatsCounter {
    pub(super) fn count_connection(&mut self) {
        self.connections += 1;
    }

    /// Counts a request received in this second.
    pub(super) fn count_request(&mut self, path: &str, second: u64) {
        self.requests += 1;
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
        count_name(&mut self.by_path, path);
        let first = *self.first.get_or_insert(second);
        count_second(&mut self.per_second, second - first.min(second));
    }

    pub(super) fn count_model(&mut self, model: &str) {
        count_name(&mut self.by_model, model);
    }

    pub(super) fn count_reply(&mut self, reply: &'static str) {
        *self.by_reply.entry(reply).or_default() += 1;
    }

    /// Counts an answer whose headers are sent in this second; 0 for none.
    pub(super) fn count_response(&mut self, status: u16, second: u64) {
        *self.by_status.entry(status).or_default() += 1;
        if (200..300).contains(&status) {
            let first = self.first.unwrap_or(second);
            count_second(&mut self.good_per_second, second - first.min(second));
        }
    }

    pub(super) fn count_end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn count_abandoned(&mut self) {
        self.abandoned += 1;
    }

    /// Resets all counts except those of requests in flight.
    pub(super) fn restart(&mut self) {
        *self = Self {
            in_flight: self.in_flight,
            most_in_flight: self.in_flight,
            ..Self::default()
        };
    }

    pub(super) fn stats(&self) -> FaultServerStats {
        let by_name = |counts: &HashMap<String, u64>| {
            let counts = counts.iter();
            counts.map(|(name, count)| (name.clone(), *count)).collect()
        };
        let by_reply = self.by_reply.iter();
        FaultServerStats {
            requests: self.requests,
            connections: self.connections,
            in_flight: self.in_flight,
            most_in_flight: self.most_in_flight,
            abandoned: self.abandoned,
            by_reply: by_reply
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
            by_status: self.by_status.iter().map(|(a, b)| (*a, *b)).collect(),
            by_path: by_name(&self.by_path),
            by_model: by_name(&self.by_model),
            per_second: self.per_second.clone(),
            good_per_second: self.good_per_second.clone(),
        }
    }
}

fn count_name(counts: &mut HashMap<String, u64>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count += 1;
        return;
    }
    let name = if counts.len() < MAX_NAMES {
        name
    } else {
        OTHERS
    };
    *counts.entry(name.to_owned()).or_default() += 1;
}

fn count_second(seconds: &mut Vec<u64>, second: u64) {
    let Some(place) = usize::try_from(second)
        .ok()
        .filter(|place| *place < MAX_SECONDS)
    else {
        return;
    };
    if seconds.len() <= place {
        seconds.resize(place + 1, 0);
    }
    seconds[place] += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_count_from_the_first_request() {
        let mut tally = StatsCounter::default();
        for second in [100, 100, 103] {
            tally.count_request("/", second);
            tally.count_response(200, second);
        }
        tally.count_response(500, 103);
        let stats = tally.stats();
        assert_eq!(stats.per_second, [2, 0, 0, 1]);
        assert_eq!(stats.good_per_second, [2, 0, 0, 1]);
        assert_eq!(stats.by_status, BTreeMap::from([(200, 3), (500, 1)]));
    }

    #[test]
    fn excess_names_are_counted_together() {
        let mut tally = StatsCounter::default();
        for number in 0..1_000 {
            tally.count_request(&format!("/{number}"), 0);
        }
        let stats = tally.stats();
        assert_eq!(stats.by_path.len(), MAX_NAMES + 1);
        assert_eq!(stats.by_path[OTHERS], 800);
    }
}

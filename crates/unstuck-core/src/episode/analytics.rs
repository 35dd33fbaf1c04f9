//! What many failures say together, as a fold over single tries.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::failure::Kind;
use crate::moment::Timestamp;

/// How many of the most frequent messages are told.
const TOP: usize = 10;

/// One try, as far as analytics care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried<'a> {
    /// When it ended.
    pub at: Timestamp,
    /// The model that was used, if one was.
    pub model: Option<&'a str>,
    /// What went wrong and what was said about it; none where it succeeded.
    pub failure: Option<(Kind, &'a str)>,
}

/// A message and how often it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessageCount {
    /// The message; with its variable parts masked if the caller passes it so.
    pub message: String,
    /// How often it came.
    pub count: u64,
}

/// Failures by kind, model, message and day; `record` takes in one try at a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FailureAnalytics {
    total: u64,
    kinds: BTreeMap<Kind, u64>,
    models: BTreeMap<String, u64>,
    messages: BTreeMap<String, u64>,
    days: BTreeMap<String, (u64, u64)>,
}

impl FailureAnalytics {
    /// Takes in one try, successful or not: the rate by day needs both.
    pub fn record(&mut self, tried: Tried<'_>) {
        // The day is that of UTC: the first ten letters of an RFC 3339 moment.
        let mut day = tried.at.to_string();
        day.truncate(10);
        let (failures, tries) = self.days.entry(day).or_default();
        *tries += 1;
        let Some((kind, message)) = tried.failure else {
            return;
        };
        *failures += 1;
        self.total += 1;
        *self.kinds.entry(kind).or_default() += 1;
        *self.messages.entry(message.to_owned()).or_default() += 1;
        if let Some(model) = tried.model {
            *self.models.entry(model.to_owned()).or_default() += 1;
        }
    }

    /// How many tries failed.
    pub fn total_failures(&self) -> u64 {
        self.total
    }

    /// The most frequent messages, the most frequent first; equal ones in alphabetical order.
    pub fn top_error_messages(&self) -> Vec<MessageCount> {
        let mut all: Vec<_> = self.messages.iter().collect();
        all.sort_by(|a, b| b.1.cmp(a.1));
        let top = all.into_iter().take(TOP);
        top.map(|(message, count)| MessageCount {
            message: message.clone(),
            count: *count,
        })
        .collect()
    }

    /// The share of tries that failed, from 0 to 1, by day (UTC).
    pub fn failure_rate_by_day(&self) -> BTreeMap<&str, f64> {
        let rate = |(failures, tries): (u64, u64)| failures as f64 / tries as f64;
        let days = self.days.iter();
        days.map(|(day, counts)| (&**day, rate(*counts))).collect()
    }
}

impl<'a> FromIterator<Tried<'a>> for FailureAnalytics {
    fn from_iter<I: IntoIterator<Item = Tried<'a>>>(tries: I) -> Self {
        let mut analytics = Self::default();
        tries.into_iter().for_each(|tried| analytics.record(tried));
        analytics
    }
}

impl Serialize for FailureAnalytics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            total_failures: u64,
            by_error_type: &'a BTreeMap<Kind, u64>,
            by_model: &'a BTreeMap<String, u64>,
            top_error_messages: Vec<MessageCount>,
            failure_rate_by_day: BTreeMap<&'a str, f64>,
        }
        let wire = Wire {
            total_failures: self.total,
            by_error_type: &self.kinds,
            by_model: &self.models,
            top_error_messages: self.top_error_messages(),
            failure_rate_by_day: self.failure_rate_by_day(),
        };
        wire.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried<'a>(day: i64, failure: Option<(Kind, &'a str)>) -> Tried<'a> {
        Tried {
            at: Timestamp::from_seconds(1_794_777_000 + day * 86_400),
            model: Some("claude-sonnet-5-5"),
            failure,
        }
    }

    /// S4-22: the analytics and their names.
    #[test]
    fn failures_are_counted_by_kind_model_message_and_day() {
        let analytics: FailureAnalytics = [
            tried(0, Some((Kind::RateLimit, "slow down"))),
            tried(0, Some((Kind::RateLimit, "slow down"))),
            tried(0, Some((Kind::Timeout, "timed out"))),
            tried(0, None),
            tried(1, None),
        ]
        .into_iter()
        .collect();
        assert_eq!(
            serde_json::to_value(&analytics).unwrap(),
            serde_json::json!({
                "totalFailures": 3,
                "byErrorType": {"rate_limit": 2, "timeout": 1},
                "byModel": {"claude-sonnet-5-5": 3},
                "topErrorMessages": [
                    {"message": "slow down", "count": 2}, {"message": "timed out", "count": 1}
                ],
                "failureRateByDay": {"2026-11-15": 0.75, "2026-11-16": 0.0}
            })
        );
    }
}

//! Parses the provider's rate limits from the headers of a response.

use std::time::Duration;

use serde::Serialize;

use super::rate_limit_header_names::{
    LimitHeaders, SubscriptionHeaders, UsedShareFormat, families,
};
use crate::diagnosis::read_duration;
use crate::failure::Headers;
use crate::time::{ClockReading, Timestamp};

/// The remaining quota of one resource that a provider limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RemainingQuota {
    /// The total quota, if stated.
    pub limit: Option<u64>,
    /// The remaining quota.
    pub remaining: u64,
    /// The time at which the full quota is available again.
    pub reset: Timestamp,
    /// True if it refills gradually until the reset rather than at once.
    pub refills: bool,
}

/// The usage of a subscription; of several windows the most used one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionUsage {
    /// The used share in percent; above 100 if overage is paid for.
    pub used_percent: f64,
    /// The reset time.
    pub reset: Timestamp,
    /// True if calls are refused until then.
    #[serde(rename = "exhausted", alias = "spent")]
    pub is_exhausted: bool,
}

/// The limits stated by the headers of a response.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResponseRateLimits {
    /// The time at which this was read; anything older than the known state is ignored.
    pub read_at: Option<Timestamp>,
    /// Requests.
    pub requests: Option<RemainingQuota>,
    /// Tokens of both kinds.
    pub tokens: Option<RemainingQuota>,
    /// Input tokens.
    pub input_tokens: Option<RemainingQuota>,
    /// Output tokens.
    pub output_tokens: Option<RemainingQuota>,
    /// Subscription usage.
    pub plan: Option<SubscriptionUsage>,
}

impl ResponseRateLimits {
    /// Parses the header formats in `data/rate_limits.toml`; invalid values are ignored.
    ///
    /// ```
    /// use unstuck_core::admission::ResponseRateLimits;
    /// use unstuck_core::{Headers, ClockReading, Timestamp};
    ///
    /// let headers: Headers = [
    ///     ("x-ratelimit-limit-requests", "10000"),
    ///     ("x-ratelimit-remaining-requests", "9999"),
    ///     ("x-ratelimit-reset-requests", "6ms"),
    /// ].into_iter().collect();
    /// let now = ClockReading::utc(Timestamp::from_seconds(1_763_000_000));
    /// let limits = ResponseRateLimits::from_headers("openai", &headers, &now);
    /// assert_eq!(limits.requests.map(|window| window.remaining), Some(9999));
    /// ```
    pub fn from_headers(provider: &str, headers: &Headers, now: &ClockReading) -> Self {
        let mut limits = Self {
            read_at: Some(now.at),
            ..Self::default()
        };
        for family in families(provider) {
            let refills = family.refills;
            let read = |names: &Option<LimitHeaders>| {
                read_limit_status(names.as_ref()?, refills, headers, now.at)
            };
            limits.requests = limits.requests.or_else(|| read(&family.requests));
            limits.tokens = limits.tokens.or_else(|| read(&family.tokens));
            limits.input_tokens = limits.input_tokens.or_else(|| read(&family.input_tokens));
            limits.output_tokens = limits.output_tokens.or_else(|| read(&family.output_tokens));
            let plans = family
                .plan
                .iter()
                .filter_map(|names| read_subscription(names, headers, now.at));
            limits.plan = limits.plan.into_iter().chain(plans).reduce(more_used);
        }
        limits
    }

    /// Returns true if no limit is stated.
    pub fn is_empty(&self) -> bool {
        self.plan.is_none() && self.windows().all(|window| window.is_none())
    }

    fn windows(&self) -> impl Iterator<Item = Option<RemainingQuota>> {
        [
            self.requests,
            self.tokens,
            self.input_tokens,
            self.output_tokens,
        ]
        .into_iter()
    }
}

fn more_used(a: SubscriptionUsage, b: SubscriptionUsage) -> SubscriptionUsage {
    if (b.is_exhausted, b.used_percent) > (a.is_exhausted, a.used_percent) {
        b
    } else {
        a
    }
}

fn read_limit_status(
    names: &LimitHeaders,
    refills: bool,
    headers: &Headers,
    now: Timestamp,
) -> Option<RemainingQuota> {
    Some(RemainingQuota {
        remaining: parse_count(names.remaining.find(headers)?)?,
        limit: names.limit.find(headers).and_then(parse_count),
        reset: parse_reset_time(names.reset.find(headers)?, now)?,
        refills,
    })
}

fn read_subscription(
    names: &SubscriptionHeaders,
    headers: &Headers,
    now: Timestamp,
) -> Option<SubscriptionUsage> {
    let reset = parse_reset_time(names.reset.find(headers)?, now)?;
    let stated = names.used.as_ref().and_then(|name| name.find(headers));
    let used = stated.and_then(|used| used.parse::<f64>().ok());
    let used = used.map(|used| match names.used_is {
        Some(UsedShareFormat::Percent) => used,
        Some(UsedShareFormat::Fraction) | None => used * 100.0,
    });
    let status = names.status.as_ref().and_then(|name| name.find(headers));
    let spent = match status {
        Some(status) => names.spent.as_deref() == Some(status),
        None => used? >= 100.0,
    };
    // A bare status that calls are allowed says nothing about usage.
    let used_percent = used.or(spent.then_some(100.0))?;
    Some(SubscriptionUsage {
        used_percent,
        reset,
        is_exhausted: spent,
    })
}

/// Parses a count; fractions are truncated, and negative values are invalid.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from floats saturate"
)]
fn parse_count(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| {
        let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0)?;
        Some(number as u64)
    })
}

/// Parses a reset time in any of the known formats.
#[expect(
    clippy::cast_possible_truncation,
    reason = "casts from floats saturate"
)]
fn parse_reset_time(text: &str, now: Timestamp) -> Option<Timestamp> {
    if let Ok(number) = text.parse::<f64>() {
        return match number {
            number if number >= 1e11 => Some(Timestamp::from_millis(number as i64)),
            number if number >= 1e9 => Some(Timestamp::from_seconds(number as i64)),
            number if number >= 0.0 => {
                let wait = Duration::try_from_secs_f64(number).ok()?;
                Some(now.after(wait))
            }
            _ => None,
        };
    }
    let nothing = || (text == "0s" || text == "0ms").then_some(Duration::ZERO);
    read_duration(text)
        .or_else(nothing)
        .map(|wait| now.after(wait))
        .or_else(|| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::super::rate_limit_header_names::{FILE, parse};
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Samples {
        sample: Vec<Sample>,
    }

    #[derive(Debug, Deserialize)]
    struct Sample {
        provider: String,
        headers: BTreeMap<String, String>,
        expect: BTreeMap<String, String>,
    }

    fn shown(limits: &ResponseRateLimits) -> BTreeMap<String, String> {
        let windows = [
            ("requests", limits.requests),
            ("tokens", limits.tokens),
            ("input_tokens", limits.input_tokens),
            ("output_tokens", limits.output_tokens),
        ];
        let windows = windows.into_iter().filter_map(|(name, window)| {
            let window = window?;
            let limit = window.limit.map(|limit| limit.to_string());
            let (limit, left) = (limit.unwrap_or_default(), window.remaining);
            Some((name.to_owned(), format!("{limit}/{left}/{}", window.reset)))
        });
        let plan = limits.plan.map(|plan| {
            let used = if plan.is_exhausted {
                "spent".to_owned()
            } else {
                format!("{}%", plan.used_percent)
            };
            ("plan".to_owned(), format!("{used}/{}", plan.reset))
        });
        windows.chain(plan).collect()
    }

    #[test]
    fn every_sample_is_read_as_expected() {
        parse().unwrap();
        let samples: Samples =
            toml::from_str(FILE.split_once("\n# --- samples ---\n").unwrap().1).unwrap();
        assert!(samples.sample.len() >= 15);
        let now = ClockReading::utc("2026-11-15T20:30:00Z".parse().unwrap());
        for sample in samples.sample {
            let limits = ResponseRateLimits::from_headers(
                &sample.provider,
                &sample.headers.iter().collect(),
                &now,
            );
            assert_eq!(shown(&limits), sample.expect, "{:?}", sample.headers);
            assert_eq!(limits.is_empty(), sample.expect.is_empty());
        }
    }
}

//! Hourly sums of API usage, and the queries they answer without reading single calls.

use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::decision::TokenUsage;
use unstuck_core::event::ApiCallRecord;

use crate::rollup;

/// The maximum token count accepted for a single call, so that sums fit in 64 bits.
pub(crate) const MAX_TOKENS: u64 = 1 << 40;

/// The grouping of costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CostGroupBy {
    /// By day (UTC).
    #[default]
    Day,
    /// By project.
    Project,
    /// By run.
    Run,
    /// By session.
    Session,
    /// By model.
    Model,
    /// By upstream.
    Upstream,
}

/// A query for spending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpendingQuery {
    /// The grouping.
    pub group_by: CostGroupBy,
    /// The earliest hour.
    pub since: Option<Timestamp>,
    /// The latest hour.
    pub until: Option<Timestamp>,
    /// The project root.
    pub project: Option<String>,
}

/// The spending of one group.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CostSummary {
    /// The day, project, run, session, model or upstream; empty if there is none.
    pub id: String,
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that succeeded after a failure.
    pub recovered: u64,
    /// The number of calls that failed or were cut off.
    pub failed: u64,
    /// The number of API attempts.
    pub tries: u64,
    /// The number of uncached input tokens.
    pub input_tokens: u64,
    /// The number of input tokens read from the provider's cache.
    pub cached_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The cost in USD, as far as prices are known.
    pub cost_usd: f64,
    /// The number of calls with tokens of unknown price.
    pub unpriced: u64,
}

impl CostSummary {
    /// Returns the uncached input and output tokens, the figure that agents report.
    pub fn new_tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }

    /// Returns the total number of tokens.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens + self.cached_tokens + self.output_tokens
    }
}

/// The dimensions of a spending sum.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SpendingKey {
    pub(crate) hour: i64,
    pub(crate) project: String,
    pub(crate) run: String,
    pub(crate) session: String,
    pub(crate) model: String,
    pub(crate) upstream: String,
    pub(crate) outcome: &'static str,
}

impl SpendingKey {
    /// Returns the key of a call in a project.
    pub(crate) fn for_call(call: &ApiCallRecord, project: &str) -> Self {
        Self {
            hour: rollup::hour_number(call.at),
            project: project.to_owned(),
            run: call.run.as_str().to_owned(),
            session: call.session.as_str().to_owned(),
            model: call.model.clone().unwrap_or_default(),
            upstream: call.upstream.clone(),
            outcome: call.outcome.name(),
        }
    }
}

/// The sums under one key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SpendingTotals {
    pub(crate) calls: i64,
    pub(crate) tries: i64,
    pub(crate) input: i64,
    pub(crate) cached: i64,
    pub(crate) output: i64,
    pub(crate) cost_nanos: i64,
    pub(crate) unpriced: i64,
}

impl SpendingTotals {
    /// Adds one call.
    pub(crate) fn add(&mut self, call: &ApiCallRecord) {
        let tokens = call.tokens.unwrap_or_default();
        self.calls += 1;
        self.tries += i64::from(call.attempts);
        self.input += token_count(tokens.input);
        self.cached += token_count(tokens.cached);
        self.output += token_count(tokens.output);
        self.cost_nanos += call.cost_usd.map_or(0, rollup::usd_to_nanos);
        self.unpriced += i64::from(is_unpriced(call));
    }
}

/// Returns a token count as it is stored.
pub(crate) fn token_count(tokens: u64) -> i64 {
    tokens.min(MAX_TOKENS) as i64
}

/// Returns whether a call used tokens of unknown price.
fn is_unpriced(call: &ApiCallRecord) -> bool {
    let used = |tokens: TokenUsage| tokens.input + tokens.cached + tokens.output > 0;
    call.cost_usd.is_none() && call.tokens.is_some_and(used)
}

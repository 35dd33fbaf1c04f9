//! What calls used, summed up by the hour, and what can be asked about it without looking at each call.

use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::decision::TokenUsage;
use unstuck_core::event::CallRecord;

use crate::rollup;

/// Whoever claims that a single call used more is not believed: sums must stay within 64 bits.
pub(crate) const MAX_TOKENS: u64 = 1 << 40;

/// What is told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CostGroupBy {
    /// The day, in UTC.
    #[default]
    Day,
    /// The project.
    Project,
    /// The run.
    Run,
    /// The session.
    Session,
    /// The model.
    Model,
    /// Who was asked.
    Upstream,
}

/// A question about what was spent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpendingQuery {
    /// What is told apart.
    pub group_by: CostGroupBy,
    /// From the hour of this moment on.
    pub since: Option<Timestamp>,
    /// Up to the hour of this moment.
    pub until: Option<Timestamp>,
    /// Only this project.
    pub project: Option<String>,
}

/// What was spent under one name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CostSummary {
    /// The day, project, run, session, model or upstream; empty where there is none.
    pub id: String,
    /// How many calls there were.
    pub calls: u64,
    /// How many of them were answered after something had failed.
    pub recovered: u64,
    /// How many of them failed, or broke off.
    pub failed: u64,
    /// How often an upstream was asked.
    pub tries: u64,
    /// How many tokens were sent anew.
    pub input_tokens: u64,
    /// How many were sent again and kept by the provider.
    pub cached_tokens: u64,
    /// How many were written by models.
    pub output_tokens: u64,
    /// What they cost, in USD, as far as prices are known.
    pub cost_usd: f64,
    /// How many of the calls used tokens whose price is not known.
    pub unpriced: u64,
}

impl CostSummary {
    /// The tokens that were sent anew or written, which is what agents tell of themselves.
    pub fn new_tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }

    /// All tokens together.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens + self.cached_tokens + self.output_tokens
    }
}

/// What is summed up together.
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
    /// Where a call of a project is counted.
    pub(crate) fn for_call(call: &CallRecord, project: &str) -> Self {
        Self {
            hour: rollup::hour_of(call.at),
            project: project.to_owned(),
            run: call.run.as_str().to_owned(),
            session: call.session.as_str().to_owned(),
            model: call.model.clone().unwrap_or_default(),
            upstream: call.upstream.clone(),
            outcome: call.outcome.name(),
        }
    }
}

/// What was summed up under one key.
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
    pub(crate) fn add(&mut self, call: &CallRecord) {
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

/// A number of tokens as it is kept.
pub(crate) fn token_count(tokens: u64) -> i64 {
    tokens.min(MAX_TOKENS) as i64
}

/// Whether it used tokens whose price is not known.
fn is_unpriced(call: &CallRecord) -> bool {
    let used = |tokens: TokenUsage| tokens.input + tokens.cached + tokens.output > 0;
    call.cost_usd.is_none() && call.tokens.is_some_and(used)
}

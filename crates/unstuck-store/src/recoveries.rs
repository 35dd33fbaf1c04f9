//! How recovery went over many runs; answered from the hourly counts alone.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_core::{Kind, Timestamp};

use crate::error::StoreError;
use crate::rollup;
use crate::stats::{Counted, Dimension, StatsLine, StatsQuery};
use crate::store::Store;

/// A question about recovery; all that is left out does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryQuery {
    /// From the hour of this moment on.
    pub since: Option<Timestamp>,
    /// Before the hour of this moment.
    pub until: Option<Timestamp>,
    /// Only this project.
    pub project: Option<String>,
    /// Only this model.
    pub model: Option<String>,
    /// Only this kind of failure.
    pub kind: Option<Kind>,
}

/// How often an answer to failures helped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerCount {
    /// The level or strategy.
    pub name: String,
    /// How often what followed succeeded, or failed in another way.
    pub helped: u64,
    /// How often the same failure came again.
    pub did_not_help: u64,
}

/// How recovery went on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryDay {
    /// How many sessions did what they should after they had failed.
    pub recoveries: u64,
    /// Half of them took no longer, from the first failure to the success; an upper bound.
    pub median_ms: Option<u64>,
    /// Nine of ten took no longer; an upper bound.
    pub p90_ms: Option<u64>,
    /// How many runs ended well after something had failed.
    pub runs_saved: u64,
    /// How many runs ended badly.
    pub runs_failed: u64,
}

/// How recovery went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryReport {
    /// How often answers of each level helped.
    pub by_level: Vec<AnswerCount>,
    /// How often each strategy helped; the level where the answer was none of a chain.
    pub by_strategy: Vec<AnswerCount>,
    /// How it went by day (UTC).
    pub by_day: BTreeMap<String, RecoveryDay>,
    /// All days together.
    #[serde(flatten)]
    pub total: RecoveryDay,
}

impl Store {
    /// How recovery went: which levels and strategies helped, how long it took, how many runs were saved.
    pub async fn recoveries(&self, query: &RecoveryQuery) -> Result<RecoveryReport, StoreError> {
        use Dimension::{Day, Level, Outcome, Strategy};
        let ask = async |counted, by: &[Dimension]| self.stats(&asked(query, counted, by)).await;
        let mut report = RecoveryReport {
            by_level: answers(ask(Counted::Answers, &[Level, Outcome]).await?),
            by_strategy: answers(ask(Counted::Answers, &[Strategy, Outcome]).await?),
            ..RecoveryReport::default()
        };
        for line in ask(Counted::Recoveries, &[]).await? {
            report.total.recovered(&line);
        }
        for line in ask(Counted::Recoveries, &[Day]).await? {
            report.day(&line).recovered(&line);
        }
        for line in ask(Counted::Runs, &[Day, Outcome]).await? {
            report.total.ended(&line);
            report.day(&line).ended(&line);
        }
        Ok(report)
    }
}

fn asked(query: &RecoveryQuery, counted: Counted, by: &[Dimension]) -> StatsQuery {
    StatsQuery {
        counted,
        by: by.to_vec(),
        project: query.project.clone(),
        kind: query.kind,
        model: query.model.clone(),
        since: query.since,
        until: query.until,
    }
}

fn answers(lines: Vec<StatsLine>) -> Vec<AnswerCount> {
    let mut answers: BTreeMap<String, AnswerCount> = BTreeMap::new();
    for line in lines {
        let name = line.level.or(line.strategy).unwrap_or_default();
        let answer = answers.entry(name.clone()).or_insert(AnswerCount {
            name,
            ..AnswerCount::default()
        });
        match line.outcome.as_deref() {
            Some(rollup::HELPED) => answer.helped += line.count,
            _ => answer.did_not_help += line.count,
        }
    }
    answers.into_values().collect()
}

impl RecoveryReport {
    fn day(&mut self, line: &StatsLine) -> &mut RecoveryDay {
        // The day of an RFC 3339 moment is its first ten letters.
        let mut day = line.from.map(|from| from.to_string()).unwrap_or_default();
        day.truncate(10);
        self.by_day.entry(day).or_default()
    }
}

impl RecoveryDay {
    fn recovered(&mut self, line: &StatsLine) {
        self.recoveries = line.count;
        self.median_ms = line.quantile_ms(0.5);
        self.p90_ms = line.quantile_ms(0.9);
    }

    fn ended(&mut self, line: &StatsLine) {
        match line.outcome.as_deref() {
            Some("run_recovered") => self.runs_saved += line.count,
            Some("run_failed") => self.runs_failed += line.count,
            _ => {}
        }
    }
}

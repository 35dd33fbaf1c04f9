//! Loads the data of the failures page.

use std::collections::BTreeMap;
use std::time::Duration;

use unstuck_core::{FailureKind, RecoveryLevel};
use unstuck_store::{
    CountedQuantity, FailureQuery, RecoveryStatisticsQuery, StatisticsDimension, StatsQuery,
    StatsRow, StrategySuccessCount,
};

use super::load_frame;
use crate::auth::CallerIdentity;
use crate::model::ProblemDetails;
use crate::pages::failures::{
    DailyAttempts, DailyRecoveryTime, FailuresPage, FailuresPageQuery, RecoverySavings,
    RecoveryStatistics, RecurringFailure, StrategyOutcomes,
};
use crate::pages::parts::attempt_timeline::level_label;
use crate::queries;
use crate::server_state::WebState;

/// Maximum number of messages and prompts shown.
const MAX_TOP_ROWS: usize = 12;

pub(in crate::pages) async fn failures(
    web: &WebState,
    who: &CallerIdentity,
    asked: FailuresPageQuery,
) -> Result<FailuresPage, ProblemDetails> {
    let frame = load_frame(web, who).await?;
    let projects = queries::projects(web).await?;
    let project = projects.iter().find(|project| project.id == asked.project);
    let since = asked.since(frame.now).parse().ok();
    let query = FailureQuery {
        since,
        until: None,
        project: project.map(|project| project.root.clone()),
        model: Some(asked.model.clone()).filter(|model| !model.is_empty()),
        kind: asked.kind.parse::<FailureKind>().ok(),
        top: Some(MAX_TOP_ROWS),
    };
    let told = web.store().failure_analytics(&query).await?;
    let days = told.by_day.iter().map(|(day, count)| {
        let counts = DailyAttempts {
            failed: count.failures,
            tries: count.attempts,
        };
        (day.clone(), counts)
    });
    let prompts = told.by_prompt_pattern.into_iter().map(|one| {
        let pattern = one.pattern;
        (
            pattern.role.unwrap_or_default(),
            pattern.template,
            one.count,
        )
    });
    let messages = told
        .top_error_messages
        .into_iter()
        .map(|one| RecurringFailure {
            message: one.message,
            count: one.count,
            kind: one.error_type,
            fingerprint: one.fingerprint,
            last_seen: one.last_seen,
        });
    Ok(FailuresPage {
        days: days.collect(),
        kinds: most_first(told.by_error_type),
        models: most_first(told.by_model),
        by_project: most_first(told.by_project),
        prompts: prompts.collect(),
        messages: messages.collect(),
        recovery: recovery_summary(web, &query).await?,
        frame,
        projects,
        query: asked,
    })
}

fn most_first(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut all: Vec<_> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}

/// Computes the recovery statistics from the hourly counts.
async fn recovery_summary(
    web: &WebState,
    of: &FailureQuery,
) -> Result<RecoveryStatistics, ProblemDetails> {
    let query = RecoveryStatisticsQuery {
        since: of.since,
        until: of.until,
        project: of.project.clone(),
        model: of.model.clone(),
        kind: of.kind,
    };
    let told = web.store().recovery_report(&query).await?;
    let levels = told.by_level.into_iter().map(|one| StrategySuccessCount {
        name: level_label_by_name(&one.name),
        ..one
    });
    let times = told.by_day.iter().map(|(day, counts)| DailyRecoveryTime {
        day: day.clone(),
        median: counts.median_ms.map(Duration::from_millis),
        p90: counts.p90_ms.map(Duration::from_millis),
    });
    Ok(RecoveryStatistics {
        times: times.collect(),
        median: told.total.median_ms.map(Duration::from_millis),
        p90: told.total.p90_ms.map(Duration::from_millis),
        saved: recovery_savings(web, of).await?,
        levels: strategy_outcomes(levels),
        strategies: strategy_outcomes(told.by_strategy.into_iter()),
    })
}

/// Returns the runs that failed and then succeeded, and their cost.
async fn recovery_savings(
    web: &WebState,
    of: &FailureQuery,
) -> Result<RecoverySavings, ProblemDetails> {
    let query = StatsQuery {
        metric: CountedQuantity::Runs,
        group_by: vec![StatisticsDimension::Outcome],
        project: of.project.clone(),
        since: of.since,
        until: of.until,
        ..StatsQuery::default()
    };
    let runs = web.store().stats(&query).await?;
    let is_saved = |line: &&StatsRow| line.outcome.as_deref() == Some("run_recovered");
    let saved = runs.iter().find(is_saved);
    Ok(RecoverySavings {
        runs: saved.map_or(0, |line| line.count),
        cost_usd: saved.map_or(0.0, |line| line.cost_usd),
    })
}

/// Returns the display name of a level from its wire name.
fn level_label_by_name(name: &str) -> String {
    let levels = [
        RecoveryLevel::Same,
        RecoveryLevel::Alternative,
        RecoveryLevel::Clarify,
        RecoveryLevel::Escalate,
    ];
    let found = levels.into_iter().find(|level| level.name() == name);
    found.map_or_else(|| name.to_owned(), |level| level_label(level).to_owned())
}

/// Sorts the outcomes, the most frequent first.
fn strategy_outcomes(all: impl Iterator<Item = StrategySuccessCount>) -> Vec<StrategyOutcomes> {
    let mut all: Vec<_> = all
        .map(|one| StrategyOutcomes {
            name: one.name,
            helped: one.helped,
            not_helped: one.did_not_help,
        })
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.helped + one.not_helped));
    all
}

//! What the page of failures shows.

use std::collections::BTreeMap;
use std::time::Duration;

use unstuck_core::{Kind, Level};
use unstuck_store::{
    AnswerCount, Counted, Dimension, FailureQuery, RecoveryQuery, StatsLine, StatsQuery,
};

use super::frame;
use crate::guard::Who;
use crate::model::Problem;
use crate::pages::failures::{
    Asked, Day, Failures, Helped, Message, Recovery, Saved, TimeToRecovery,
};
use crate::pages::parts::attempts::level_words;
use crate::reading;
use crate::web::Web;

/// So many messages and prompts are shown.
const TOP: usize = 12;

pub(in crate::pages) async fn failures(
    web: &Web,
    who: &Who,
    asked: Asked,
) -> Result<Failures, Problem> {
    let frame = frame(web, who).await?;
    let projects = reading::projects(web).await?;
    let project = projects.iter().find(|project| project.id == asked.project);
    let since = asked.since(frame.now).parse().ok();
    let query = FailureQuery {
        since,
        until: None,
        project: project.map(|project| project.root.clone()),
        model: Some(asked.model.clone()).filter(|model| !model.is_empty()),
        kind: asked.kind.parse::<Kind>().ok(),
        top: Some(TOP),
    };
    let told = web.store().failures(&query).await?;
    let days = told.by_day.iter().map(|(day, count)| {
        let counts = Day {
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
    let messages = told.top_error_messages.into_iter().map(|one| Message {
        message: one.message,
        count: one.count,
        kind: one.error_type,
        fingerprint: one.fingerprint,
        last_seen: one.last_seen,
    });
    Ok(Failures {
        days: days.collect(),
        kinds: most_first(told.by_error_type),
        models: most_first(told.by_model),
        by_project: most_first(told.by_project),
        prompts: prompts.collect(),
        messages: messages.collect(),
        recovery: recovery(web, &query).await?,
        frame,
        projects,
        asked,
    })
}

fn most_first(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut all: Vec<_> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}

/// What recovery came to, from the hourly counts.
async fn recovery(web: &Web, of: &FailureQuery) -> Result<Recovery, Problem> {
    let query = RecoveryQuery {
        since: of.since,
        until: of.until,
        project: of.project.clone(),
        model: of.model.clone(),
        kind: of.kind,
    };
    let told = web.store().recoveries(&query).await?;
    let levels = told.by_level.into_iter().map(|one| AnswerCount {
        name: level_named(&one.name),
        ..one
    });
    let times = told.by_day.iter().map(|(day, counts)| TimeToRecovery {
        day: day.clone(),
        median: counts.median_ms.map(Duration::from_millis),
        most: counts.p90_ms.map(Duration::from_millis),
    });
    Ok(Recovery {
        times: times.collect(),
        median: told.total.median_ms.map(Duration::from_millis),
        most: told.total.p90_ms.map(Duration::from_millis),
        saved: saved(web, of).await?,
        levels: helped(levels),
        strategies: helped(told.by_strategy.into_iter()),
    })
}

/// The runs that failed and ended well, and what they cost.
async fn saved(web: &Web, of: &FailureQuery) -> Result<Saved, Problem> {
    let query = StatsQuery {
        counted: Counted::Runs,
        by: vec![Dimension::Outcome],
        project: of.project.clone(),
        since: of.since,
        until: of.until,
        ..StatsQuery::default()
    };
    let runs = web.store().stats(&query).await?;
    let is_saved = |line: &&StatsLine| line.outcome.as_deref() == Some("run_recovered");
    let saved = runs.iter().find(is_saved);
    Ok(Saved {
        runs: saved.map_or(0, |line| line.count),
        cost_usd: saved.map_or(0.0, |line| line.cost_usd),
    })
}

/// A level by its name on the wire, in words for a person.
fn level_named(name: &str) -> String {
    let levels = [
        Level::Same,
        Level::Alternative,
        Level::Clarify,
        Level::Escalate,
    ];
    let found = levels.into_iter().find(|level| level.name() == name);
    found.map_or(name, |level| level_words(level)).to_owned()
}

/// The most frequent first.
fn helped(all: impl Iterator<Item = AnswerCount>) -> Vec<Helped> {
    let mut all: Vec<_> = all
        .map(|one| Helped {
            name: one.name,
            helped: one.helped,
            did_not: one.did_not_help,
        })
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.helped + one.did_not));
    all
}

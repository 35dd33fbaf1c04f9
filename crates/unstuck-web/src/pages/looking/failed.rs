//! What the page of failures shows.

use std::collections::BTreeMap;
use std::time::Duration;

use unstuck_core::{Kind, Level};
use unstuck_store::{Counted, Dimension, FailureQuery, StatsLine, StatsQuery};

use super::frame;
use crate::guard::Who;
use crate::model::Problem;
use crate::pages::failures::{Asked, Day, Failures, Helped, Message, Recovery, Saved};
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
    // Whole days: the first of them from its beginning on.
    let back = Duration::from_secs(u64::from(asked.days() - 1) * 86_400);
    let mut first = frame.now.before(back).to_string();
    first.truncate(10);
    let since = format!("{first}T00:00:00Z").parse().ok();
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
        (pattern.role.unwrap_or_default(), pattern.template, one.count)
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
    let query = |counted, by: &[Dimension]| StatsQuery {
        counted,
        by: by.to_vec(),
        project: of.project.clone(),
        kind: of.kind,
        since: of.since,
        until: of.until,
    };
    let by = [Dimension::Strategy, Dimension::Outcome];
    let answers = web.store().stats(&query(Counted::Answers, &by)).await?;
    // How a run ended is not counted by kind.
    let runs = StatsQuery {
        kind: None,
        ..query(Counted::Runs, &[Dimension::Outcome])
    };
    let runs = web.store().stats(&runs).await?;
    let recovered = runs.iter().find(|line| line.outcome.as_deref() == Some("run_recovered"));
    Ok(Recovery {
        levels: helped(&answers, |name| level_words(level_of(name)).to_owned()),
        strategies: helped(&answers, str::to_owned),
        times: Vec::new(),
        median: None,
        most: None,
        saved: Saved {
            runs: recovered.map_or(0, |line| line.count),
            cost_usd: recovered.map_or(0.0, |line| line.cost_usd),
        },
    })
}

/// The level of an answer: it is counted under its strategy, or under its level where it has none.
fn level_of(name: &str) -> Level {
    let levels = [Level::Same, Level::Clarify, Level::Escalate];
    let named = levels.into_iter().find(|level| level.name() == name);
    named.unwrap_or(Level::Alternative)
}

fn helped(lines: &[StatsLine], name: impl Fn(&str) -> String) -> Vec<Helped> {
    let mut all: BTreeMap<String, Helped> = BTreeMap::new();
    for line in lines {
        let name = name(line.strategy.as_deref().unwrap_or_default());
        let one = all.entry(name.clone()).or_insert_with(|| Helped {
            name,
            helped: 0,
            did_not: 0,
        });
        match line.outcome.as_deref() {
            Some(unstuck_store::rollup::HELPED) => one.helped += line.count,
            _ => one.did_not += line.count,
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.helped + one.did_not));
    all
}

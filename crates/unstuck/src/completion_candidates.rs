//! Dynamic shell completion of run ids, roles, kinds of failures and agents.

use std::ffi::OsStr;

use anyhow::Result;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use unstuck_core::FailureKind;
use unstuck_core::agent::{Agent, Agents};
use unstuck_store::RunFilter;

use crate::run_history::RunHistory;
use crate::run_title::run_title;
use crate::sanitized_text::truncate;
use crate::{async_runtime, environment_variables};

/// Completes the ids of the newest runs, with descriptions.
pub(crate) fn runs() -> ArgValueCandidates {
    ArgValueCandidates::new(newest_runs)
}

/// Completes the ids of the newest runs, and after a slash the roles of the run.
pub(crate) fn runs_and_roles() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let typed = typed.to_str().unwrap_or_default();
        let mut candidates = match typed.split_once('/') {
            Some((run, _)) => roles_of(run).unwrap_or_default(),
            None => newest_runs(),
        };
        candidates.retain(|one| {
            one.get_value()
                .to_str()
                .is_some_and(|one| one.starts_with(typed))
        });
        candidates
    })
}

fn newest_runs() -> Vec<CompletionCandidate> {
    let found = async_runtime::block_on(async {
        let history = RunHistory::open(&environment_variables::store_location()?).await?;
        let newest = RunFilter {
            limit: Some(30),
            ..RunFilter::default()
        };
        history.runs(&newest).await
    });
    let runs = found.unwrap_or_default().into_iter();
    runs.map(|run| {
        let help = format!("{} · {}", run.status, truncate(&run_title(&run), 50));
        CompletionCandidate::new(run.id.short()).help(Some(help.into()))
    })
    .collect()
}

fn roles_of(typed: &str) -> Result<Vec<CompletionCandidate>> {
    let timeline = async_runtime::block_on(async {
        let history = RunHistory::open(&environment_variables::store_location()?).await?;
        let run = history
            .find(Some(typed).filter(|run| !run.is_empty()))
            .await?;
        history.timeline(&run.id).await
    })?;
    let plan = timeline.run.pipeline();
    let roles = plan.into_iter().flat_map(|plan| &plan.roles);
    Ok(roles
        .map(|role| CompletionCandidate::new(format!("{typed}/{}", role.id)))
        .collect())
}

/// Completes the kinds of failures.
pub(crate) fn kinds() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = FailureKind::ALL.iter().map(|kind| kind.name());
        names.map(CompletionCandidate::new).collect()
    })
}

/// Completes the ids of the built-in agents.
pub(crate) fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let ids = Agents::built_in().iter().map(Agent::id);
        ids.map(CompletionCandidate::new).collect()
    })
}

//! Completion in the shell of what only the program knows: the ids of runs, the kinds of failures, the agents.

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use unstuck_core::Kind;
use unstuck_core::agent::{Agent, Agents};
use unstuck_store::RunFilter;

use crate::commands::runs::what;
use crate::history::History;
use crate::show_text::cut;
use crate::{environment, runtime};

/// The ids of the newest runs, each with its command.
pub(crate) fn runs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = runtime::block_on(async {
            let store = environment::store_location()?;
            let history = History::open(&store).await?;
            let newest = RunFilter {
                limit: Some(30),
                ..RunFilter::default()
            };
            history.runs(&newest).await
        });
        let runs = found.unwrap_or_default().into_iter();
        runs.map(|run| {
            let help = format!("{} · {}", run.status, cut(&what(&run), 50));
            CompletionCandidate::new(run.id.short()).help(Some(help.into()))
        })
        .collect()
    })
}

/// The names of all kinds of failures.
pub(crate) fn kinds() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = Kind::ALL.iter().map(|kind| kind.name());
        names.map(CompletionCandidate::new).collect()
    })
}

/// The ids of the agents that are built in.
pub(crate) fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let ids = Agents::built_in().iter().map(Agent::id);
        ids.map(CompletionCandidate::new).collect()
    })
}

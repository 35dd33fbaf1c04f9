//! Completion of the ids of runs in the shell.

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use unstuck_store::RunFilter;

use crate::history::History;
use crate::show_text::one_line;
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
            let help = format!("{} · {}", run.status, one_line(&run.command.join(" "), 50));
            CompletionCandidate::new(run.id.short()).help(Some(help.into()))
        })
        .collect()
    })
}

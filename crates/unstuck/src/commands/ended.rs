//! How the end of a run is told to whoever started it.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use unstuck_core::event::RunFinished;
use unstuck_run::drive::Finished;

use crate::history::History;
use crate::output::Output;
use crate::runtime;
use crate::session::Session;
use crate::show_text::{round_costs, rounded_usd};

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    id: &'a str,
    #[serde(flatten)]
    end: RunFinished,
    success: bool,
}

/// The end of a run for whoever started it.
pub(super) fn tell(finished: &Finished, json: bool, out: &mut Output) -> Result<ExitCode> {
    if json {
        out.json_line(&summary(finished))?;
    }
    let code = finished.end.exit_code;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// The end of a run for machines.
pub(super) fn summary(finished: &Finished) -> Summary<'_> {
    Summary {
        id: finished.run.as_str(),
        end: RunFinished {
            cost_usd: rounded_usd(finished.end.cost_usd),
            ..finished.end.clone()
        },
        success: finished.end.outcome.is_success(),
    }
}

/// The end of a pipeline for whoever started it, with its roles.
pub(super) fn tell_with_roles(
    finished: &Finished,
    json: bool,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if json {
        let mut told = serde_json::to_value(summary(finished))?;
        let timeline = runtime::block_on(async {
            let history = History::open(session.store).await?;
            history.timeline(&finished.run).await
        })?;
        told["roles"] = serde_json::to_value(&timeline.sessions)?;
        round_costs(&mut told);
        out.json_line(&told)?;
    }
    tell(finished, false, out)
}

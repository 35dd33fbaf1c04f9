//! `unstuck resume --all`: resumes every crashed or externally terminated run in the background.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::Duration;

use anyhow::Result;
use unstuck_core::session_state::consecutive_crashes;
use unstuck_core::views::{RunStatus, RunSummary};
use unstuck_run::runner::why_not_resumable;
use unstuck_store::RunFilter;

use crate::command_context::CommandContext;
use crate::error_report::refusal;
use crate::output::Output;
use crate::project_lookup::{abbreviate_home, current_project};
use crate::run_history::{RunEntry, RunHistory};
use crate::run_supervision::state_dir;
use crate::run_title::{is_gateway_client, run_title};
use crate::sanitized_text::truncate;
use crate::{async_runtime, clock, unstuck_subprocess};

/// A run with this many consecutive crashes without progress is left to a human.
const MAX_CRASHES: u32 = 3;
/// Time limit until a resumed run is supervised again.
const RESUME_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval for checking whether it is.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Exit code of runs stopped by the user, with Ctrl-C or `unstuck stop`.
const EXIT_STOPPED: i32 = 130;

/// Resumes the crashed runs of this project, or of all projects.
pub(super) fn run(
    everywhere: bool,
    quiet: bool,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let project = (!everywhere).then(current_project);
    let listed = async_runtime::block_on(find(project, session))?;
    let mut not_resumed = 0;
    for one in &listed {
        let run = &one.run;
        let line = format!("{}  {}", run.id.short(), truncate(&run_title(run), 60));
        match resume(run, session)? {
            Ok(pid) if !quiet => writeln!(out, "{line}: resumed (pid {pid})")?,
            Ok(_) => {}
            Err(why) => {
                not_resumed += 1;
                writeln!(out, "{line}: not resumed: {why}")?;
            }
        }
        out.flush()?;
    }
    if listed.is_empty() && !quiet {
        let place = if everywhere { "" } else { " in this project" };
        writeln!(out, "nothing to resume{place}")?;
    }
    match not_resumed {
        0 => Ok(ExitCode::SUCCESS),
        n => Err(refusal(
            format!("{n} of {} could not be resumed", listed.len()),
            "`unstuck runs --status crashed,interrupted` lists them; `unstuck abort RUN` aborts one",
        )),
    }
}

/// Returns runs that crashed or were ended by a shutdown; runs stopped by the user are left alone.
async fn find(project: Option<String>, session: &CommandContext<'_>) -> Result<Vec<RunEntry>> {
    let history = RunHistory::open(session.store).await?;
    let filter = RunFilter {
        project,
        status: vec![RunStatus::Crashed, RunStatus::Interrupted],
        ..RunFilter::default()
    };
    let mut listed = history.run_entries(&filter, clock::now().at).await?;
    listed.retain(|one| {
        let is_meant = match one.run.status {
            RunStatus::Interrupted => one.run.exit_code != Some(EXIT_STOPPED),
            _ => true,
        };
        is_meant && !is_gateway_client(&one.run)
    });
    Ok(listed)
}

/// Resumes a run in the background; returns its process id, or why it was not resumed.
fn resume(run: &RunSummary, session: &CommandContext<'_>) -> Result<Result<u32, String>> {
    let events = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history.events(&run.id).await
    })?;
    if let Some(why) = why_not_resumable(&events, &state_dir(session.store)) {
        return Ok(Err(why));
    }
    let crashes = consecutive_crashes(&events);
    if crashes >= MAX_CRASHES {
        return Ok(Err(format!(
            "crashed {crashes} times in a row without progress; `unstuck resume {}` resumes it anyway",
            run.id.short()
        )));
    }
    let project = Path::new(&run.project);
    if !project.is_dir() {
        return Ok(Err(format!(
            "{} no longer exists",
            abbreviate_home(&run.project)
        )));
    }
    let mut child = match unstuck_subprocess::spawn_detached_resume(&run.id, project, session) {
        Ok(child) => child,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let pid = child.id();
    Ok(if wait_until_supervised(run, &mut child, session)? {
        Ok(pid)
    } else {
        Err(format!(
            "see {}",
            abbreviate_home(
                &unstuck_subprocess::resume_log_path(&run.id, session)
                    .display()
                    .to_string()
            )
        ))
    })
}

/// Waits until the run is supervised or has already ended.
fn wait_until_supervised(
    run: &RunSummary,
    child: &mut Child,
    session: &CommandContext<'_>,
) -> Result<bool> {
    async_runtime::block_on(async {
        let found =
            tokio::time::timeout(RESUME_TIMEOUT, poll_supervised(run, child, session)).await;
        found.unwrap_or(Ok(false))
    })
}

async fn poll_supervised(
    run: &RunSummary,
    child: &mut Child,
    session: &CommandContext<'_>,
) -> Result<bool> {
    loop {
        let ended = child.try_wait()?;
        let history = RunHistory::open(session.store).await?;
        let is_driven = history.is_driven(&run.id, clock::now().at).await?;
        if is_driven || history.find(Some(run.id.as_str())).await?.seq > run.seq {
            return Ok(true);
        }
        if ended.is_some() {
            return Ok(false);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

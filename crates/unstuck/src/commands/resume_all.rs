//! `unstuck resume --all`: continues every run that crashed or was ended from outside, each in the background.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::Duration;

use anyhow::Result;
use unstuck_core::episode::{RunView, Status};
use unstuck_core::recovery::crashes_in_a_row;
use unstuck_run::drive::why_not_resumable;
use unstuck_store::RunFilter;

use crate::history::{History, Listed};
use crate::output::Output;
use crate::place::{current_project, homely};
use crate::report::refused;
use crate::run_words::{is_clients, what};
use crate::session::Session;
use crate::show_text::cut;
use crate::supervise::state_folder;
use crate::{clock, runtime, started};

/// A run that crashed so often in a row without a sign of health is left to a person.
const MOST_CRASHES: u32 = 3;
/// How long a run may take until it is supervised again.
const LONGEST: Duration = Duration::from_secs(20);
/// How often is looked whether it is.
const LOOK: Duration = Duration::from_millis(50);
/// The exit codes of runs that a person stopped themselves: Ctrl-C, and `unstuck stop`.
const STOPPED_BY_PERSON: i32 = 130;

/// Resumes what crashed in this project, or everywhere.
pub(super) fn run(
    everywhere: bool,
    quiet: bool,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let project = (!everywhere).then(current_project);
    let listed = runtime::block_on(find(project, session))?;
    let mut not_resumed = 0;
    for one in &listed {
        let run = &one.run;
        let line = format!("{}  {}", run.id.short(), cut(&what(run), 60));
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
        n => Err(refused(
            format!("{n} of {} could not be resumed", listed.len()),
            "`unstuck runs --status crashed,interrupted` lists them; `unstuck abort RUN` ends one",
        )),
    }
}

/// The runs that crashed, or that a shutdown ended; what a person stopped stays stopped.
async fn find(project: Option<String>, session: &Session<'_>) -> Result<Vec<Listed>> {
    let history = History::open(session.store).await?;
    let filter = RunFilter {
        project,
        status: vec![Status::Crashed, Status::Interrupted],
        ..RunFilter::default()
    };
    let mut listed = history.listed(&filter, clock::now().at).await?;
    listed.retain(|one| {
        let is_meant = match one.run.status {
            Status::Interrupted => one.run.exit_code != Some(STOPPED_BY_PERSON),
            _ => true,
        };
        is_meant && !is_clients(&one.run)
    });
    Ok(listed)
}

/// Resumes a run in the background; gives its process, or why it was not resumed.
fn resume(run: &RunView, session: &Session<'_>) -> Result<Result<u32, String>> {
    let events = runtime::block_on(async {
        let history = History::open(session.store).await?;
        history.events(&run.id).await
    })?;
    if let Some(why) = why_not_resumable(&events, &state_folder(session.store)) {
        return Ok(Err(why));
    }
    let crashes = crashes_in_a_row(&events);
    if crashes >= MOST_CRASHES {
        return Ok(Err(format!(
            "it crashed {crashes} times in a row without any progress; `unstuck resume {}` resumes it all the same",
            run.id.short()
        )));
    }
    let project = Path::new(&run.project);
    if !project.is_dir() {
        return Ok(Err(format!("{} is gone", homely(&run.project))));
    }
    let mut child = match started::resume_in_background(&run.id, project, session) {
        Ok(child) => child,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let pid = child.id();
    Ok(match is_supervised(run, &mut child, session)? {
        true => Ok(pid),
        false => Err(format!(
            "see {}",
            homely(&started::log_of(&run.id, session).display().to_string())
        )),
    })
}

/// Waits until the run is supervised, or has already come to its end.
fn is_supervised(run: &RunView, child: &mut Child, session: &Session<'_>) -> Result<bool> {
    runtime::block_on(async {
        let found = tokio::time::timeout(LONGEST, until_supervised(run, child, session)).await;
        found.unwrap_or(Ok(false))
    })
}

async fn until_supervised(run: &RunView, child: &mut Child, session: &Session<'_>) -> Result<bool> {
    loop {
        let ended = child.try_wait()?;
        let history = History::open(session.store).await?;
        let is_driven = history.drives(&run.id, clock::now().at).await?;
        if is_driven || history.find(Some(run.id.as_str())).await?.seq > run.seq {
            return Ok(true);
        }
        if ended.is_some() {
            return Ok(false);
        }
        tokio::time::sleep(LOOK).await;
    }
}

//! `unstuck resume`: takes up a run that was cut off, stopped, or waited for a person.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use unstuck_core::duration;
use unstuck_core::episode::{RunView, Status};
use unstuck_core::event::PipelineStarted;
use unstuck_core::pipeline::{GONE, RoleChange};
use unstuck_core::question::Answer;
use unstuck_core::settings::ProjectSettings;
use unstuck_run::drive::pipeline::{Again, Plan};
use unstuck_run::drive::{Finished, Options, RunError, why_not_resumable};
use unstuck_store::{QuestionFilter, RunFilter};

use super::ended::{tell, tell_with_roles};
use super::resume_all;
use crate::choosing::Candidates;
use crate::config::Config;
use crate::gateway::Wish;
use crate::history::History;
use crate::output::Output;
use crate::pipeline_plan::{self, Wanted};
use crate::place::current_project;
use crate::project_changes::{self, OnChanges};
use crate::repairs;
use crate::report::refused;
use crate::run_words::{is_clients, what};
use crate::session::Session;
use crate::show_text::cut;
use crate::supervise::{
    self, Before, Conducted, Pipelined, Resumed, Supervised, Told, state_folder,
};
use crate::{answering, clock, completion, runtime};

/// Where there is something to take up again; of those that failed only pipelines.
const UNFINISHED: [Status; 5] = [
    Status::Running,
    Status::Waiting,
    Status::AwaitingHuman,
    Status::Interrupted,
    Status::Failed,
];

/// How many runs are tried where none is named.
const CANDIDATES: usize = 30;

/// Resume an interrupted, crashed or blocked run
///
/// A wait that is not over continues; one that is over ends at once. An interrupted attempt is repeated. Of a pipeline,
/// what succeeded is reused, and it continues at the role that failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck resume          (the unfinished run of this project; agents before
                           plain commands)
  unstuck resume k3v9
  unstuck resume --all    (all runs of this project that crashed or that a
                           shutdown ended, in the background; --everywhere:
                           of all projects)
  unstuck resume --restart planner    (run it again, with all that depend on it)

Exit codes: as of `unstuck exec`; 1 when there is nothing to resume, or when several runs could be meant.")]
pub(crate) struct ResumeArgs {
    /// The run: the first letters of its id [default: the only unfinished one of this project]
    #[arg(value_name = "RUN", add = completion::runs())]
    run: Option<String>,

    /// Resume every run of this project that crashed or was ended by a shutdown, in the background
    #[arg(long, conflicts_with_all = ["run", "restart", "accept_changes", "no_gateway", "json"])]
    all: bool,

    /// With --all: those of all projects
    #[arg(long, requires = "all")]
    everywhere: bool,

    /// Run this role again although it is done, with all that depend on it; may be given several times
    #[arg(long, value_name = "ROLE")]
    restart: Vec<String>,

    /// Go on although the project's configuration, or what outputs were made from, was changed since
    #[arg(long)]
    accept_changes: bool,

    /// Go on with the project's configuration as it was when the run began, and ask about what was changed since
    #[arg(long, hide = true, conflicts_with = "accept_changes")]
    hold_changes: bool,

    /// How long what passes by itself is tried again without progress from now on, such as 8h
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    keep_trying: Option<Duration>,

    /// Do not put a gateway between the agents and their APIs
    #[arg(long)]
    no_gateway: bool,

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,

    /// Print one JSON object about the run as the last line
    #[arg(long)]
    json: bool,
}

/// How a person wants it to be taken up.
pub(crate) struct Taken<'a> {
    /// Whether outputs are reused although what they were made from was changed.
    pub(crate) accept_changes: bool,
    /// How changes of the project's configuration are met.
    pub(crate) on_changes: OnChanges,
    pub(crate) restart: &'a [String],
    pub(crate) wanted: Wanted,
    pub(crate) told: Told,
    pub(crate) json: bool,
    pub(crate) gateway: Wish,
}

pub(crate) fn run(
    args: &ResumeArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if args.all {
        return resume_all::run(args.everywhere, args.quiet, session, out);
    }
    let candidates = runtime::block_on(find(args, session))?;
    let taken = Taken {
        accept_changes: args.accept_changes,
        on_changes: OnChanges::of_flags(args.accept_changes, args.hold_changes),
        restart: &args.restart,
        wanted: Wanted {
            keep_trying: args.keep_trying,
            ..Wanted::default()
        },
        told: if args.quiet { Told::Nothing } else { Told::All },
        json: args.json,
        gateway: Wish::of_flag(args.no_gateway),
    };
    first_of(candidates, &taken, config, session, out)
}

/// Takes up the newest pipeline of this project that is not done.
pub(crate) fn newest_pipeline(
    taken: &Taken<'_>,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let candidates = runtime::block_on(async {
        let history = History::open(session.store).await?;
        history.newest(&UNFINISHED, CANDIDATES).await
    })?;
    let is_pipeline = |run: &RunView| run.roles.is_some();
    let candidates = candidates.into_iter().filter(is_pipeline).collect();
    first_of(candidates, taken, config, session, out)
}

/// Takes up the first run that can be.
pub(crate) fn first_of(
    candidates: Vec<RunView>,
    taken: &Taken<'_>,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let mut candidates = candidates.into_iter().peekable();
    let mut first_refusal = None;
    while let Some(run) = candidates.next() {
        match resumed(&run, taken, config, session, out) {
            // One that cannot be taken up again does not stand in the way of those that can.
            Err(error) if is_refusal(&error) && candidates.peek().is_some() => {
                first_refusal.get_or_insert((error, run));
            }
            Err(error) => {
                let (error, run) = first_refusal.unwrap_or((error, run));
                return Err(explained(error, &run));
            }
            done => return done,
        }
    }
    Err(refused(
        "there is nothing to resume in this project",
        "`unstuck runs --status crashed,interrupted,awaiting_human` lists what is left elsewhere",
    ))
}

fn resumed(
    run: &RunView,
    taken: &Taken<'_>,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let done = match run.roles {
        Some(_) => conducted(run, taken, session).map(Supervised::from),
        None => again(run, taken, session),
    };
    match done {
        Err(error) if is_driven(&error) && runtime::block_on(still_asks(session, run))? => {
            answer(config, session, run)?;
            writeln!(
                out,
                "run {} continues in the process that waits for it",
                run.id
            )?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error),
        Ok(done) if run.roles.is_some() => {
            tell_with_roles(&done.finished, taken.json, session, out)
        }
        Ok(done) => tell(&done, &taken.json.into(), out),
    }
}

/// Takes up a single command, with what its project's configuration said when it began.
fn again(run: &RunView, taken: &Taken<'_>, session: &Session<'_>) -> Result<Supervised> {
    let (events, options) = runtime::block_on(async {
        let history = History::open(session.store).await?;
        let timeline = history.timeline(&run.id).await?;
        let spec = timeline.run.sole_session();
        let options = spec.map(|spec| serde_json::from_value::<Options>(spec.options.clone()));
        let options = options.and_then(Result::ok).unwrap_or_default();
        Ok((history.events(&run.id).await?, options))
    })?;
    let config =
        &project_changes::settle(run, &events, session.sources(), &taken.on_changes, session)?;
    let project = PathBuf::from(&run.project);
    let mut repairs = repairs::terms(config, &project, options.repair)?;
    let held = project_changes::lines(config.held_changes());
    if !held.is_empty() {
        repairs.notes.push(format!(
            "the project's configuration was changed since the run began, which does not count for it:\n{}",
            held.join("\n")
        ));
    }
    let before = Before {
        repairs,
        project,
        tty: options.tty,
    };
    let resumed = Resumed::new(&run.id, taken.wanted.keep_trying, config);
    supervise::resume(session, config, resumed, taken.told, before, taken.gateway)
}

/// Takes up a pipeline with the configuration that it was run by, as far as that counts for it.
fn conducted(run: &RunView, taken: &Taken<'_>, session: &Session<'_>) -> Result<Finished> {
    let (timeline, events) = runtime::block_on(async {
        let history = History::open(session.store).await?;
        let timeline = history.timeline(&run.id).await?;
        Ok((timeline, history.events(&run.id).await?))
    })?;
    let then = timeline.run.pipeline();
    let path = then.and_then(|then| then.config_path.as_deref());
    let project = Path::new(&run.project);
    let sources = pipeline_plan::sources_of(path, session.sources())?;
    let config = project_changes::settle(run, &events, sources, &taken.on_changes, session)?;
    let wanted = Wanted {
        task: task(taken, then, &config),
        ..taken.wanted.clone()
    };
    let left_out = then.map_or(&[][..], |then| &then.left_out);
    let planned = |config: &Config| -> Result<Plan> {
        let mut plan = pipeline_plan::plan(config, &wanted, project)?;
        // A run of a part of the roles stays one; roles that are new belong to it.
        plan.leave_out(|id| left_out.iter().any(|one| one == id));
        pipeline_plan::has_task(&plan)?;
        Ok(plan)
    };
    let reload = |accepted: Option<&ProjectSettings>| {
        let sources = pipeline_plan::sources_of(path, session.sources())?;
        planned(&project_changes::load(project, sources, accepted)?)
    };
    let again = Again {
        restart: taken.restart.to_vec(),
        accept_changes: taken.accept_changes,
    };
    let pipeline = Pipelined {
        plan: planned(&config)?,
        how: Conducted::Again(run.id.clone(), again),
        reload: &reload,
        notes: Vec::new(),
        gateway: taken.gateway,
    };
    supervise::conduct(session, &config, pipeline, taken.told)
}

/// What is to be done: what a person says now, what they said then, or what the configuration says.
fn task(taken: &Taken<'_>, then: Option<&PipelineStarted>, config: &Config) -> Option<String> {
    let said_then = then.filter(|then| then.command.iter().any(|word| word == "--task"));
    let said_then = said_then.map(|then| then.task.clone());
    let said_now = taken.wanted.task.clone();
    let known = || then.map(|then| then.task.clone());
    said_now
        .or(said_then)
        .or_else(|| config.run().task.clone())
        .or_else(known)
}

/// The run that is named, or the one of this project that is meant.
async fn find(args: &ResumeArgs, session: &Session<'_>) -> Result<Vec<RunView>> {
    let history = History::open(session.store).await?;
    if let Some(letters) = &args.run {
        return Ok(vec![history.find(Some(letters)).await?]);
    }
    let filter = RunFilter {
        project: Some(current_project()),
        status: vec![
            Status::Crashed,
            Status::Interrupted,
            Status::AwaitingHuman,
            Status::Failed,
        ],
        limit: Some(CANDIDATES),
        ..RunFilter::default()
    };
    let listed = history.listed(&filter, clock::now().at).await?;
    let runs = listed.into_iter().map(|one| one.run);
    // Nobody but its client can continue a client's own session.
    let runs: Vec<_> = runs.filter(|run| !is_clients(run)).collect();
    let mut left = Vec::new();
    let mut refused_run = None;
    for run in runs {
        // Of those that failed only pipelines can be resumed: a single command that failed is over.
        if run.status == Status::Failed {
            continue;
        }
        match why_not_resumable(
            &history.events(&run.id).await?,
            &state_folder(session.store),
        ) {
            None => left.push(run),
            Some(_) => refused_run = refused_run.or(Some(run)),
        }
    }
    let is_agent = |run: &RunView| run.agent.is_some() || run.roles.is_some();
    if left.iter().any(is_agent) {
        left.retain(is_agent);
    }
    if left.is_empty() {
        let failed = failed_pipeline(&history).await?;
        // Whoever asks for a run that is active is told so.
        let active = [Status::Running, Status::Waiting];
        let active = history.newest(&active, 1).await?.pop();
        return Ok(failed.or(refused_run).or(active).into_iter().collect());
    }
    if left.len() > 1 {
        let candidates = Candidates {
            what: "unfinished runs in this project",
            lines: left.iter().map(candidate).collect(),
            hint: "name one: `unstuck resume RUN`; `unstuck abort RUN` ends one".to_owned(),
        };
        left = vec![left.swap_remove(candidates.choose()?)];
    }
    Ok(left)
}

/// The newest pipeline of this project, if it failed.
async fn failed_pipeline(history: &History) -> Result<Option<RunView>> {
    let filter = RunFilter {
        project: Some(current_project()),
        status: vec![Status::Failed],
        limit: Some(CANDIDATES),
        ..RunFilter::default()
    };
    let mut failed = history.runs(&filter).await?.into_iter();
    Ok(failed.find(|run| run.roles.is_some()))
}

/// A run on one line: its id, its state, what it does.
fn candidate(run: &RunView) -> String {
    let ago = clock::ago(run.updated, clock::now().at);
    let what = cut(&what(run), 60);
    format!("{}  {}  {ago}  {what}", run.id.short(), run.status)
}

fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::NotResumable { .. }))
}

/// Whether another process drives it.
fn is_driven(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::Driven { .. }))
}

/// Whether it, or one of its roles, waits for a person at this moment.
async fn still_asks(session: &Session<'_>, run: &RunView) -> Result<bool> {
    let history = History::open(session.store).await?;
    let now = history.timeline(&run.id).await?;
    let mut standings = now.sessions.iter().map(|session| session.status);
    let asks = |status: Status| status == Status::AwaitingHuman;
    Ok(asks(now.view.status) || standings.any(asks))
}

/// Says to every question of a run that a person has seen to it.
fn answer(config: &Config, session: &Session<'_>, run: &RunView) -> Result<()> {
    let filter = QuestionFilter {
        run: Some(run.id.clone()),
        ..QuestionFilter::default()
    };
    let open = answering::open(&filter, session)?.into_iter();
    // What lets the run go on is no reason for it to wait.
    let open = open.filter(|one| !one.asked.is_about_settings());
    // A budget is raised by an answer to its own question only.
    let (money, others): (Vec<_>, Vec<_>) = open.partition(|one| one.asked.is_about_budget());
    for question in &others {
        answering::give(question, Answer::Resolve, "", config, session)?;
    }
    match money.into_iter().next().filter(|_| others.is_empty()) {
        None => Ok(()),
        Some(question) => Err(RunError::WaitsForMoney {
            run: run.id.clone(),
            question: question.asked.id,
            reason: question.asked.reason,
        }
        .into()),
    }
}

/// What was changed since, line by line, and what can be done.
fn changed(run: &RunView, changes: &[RoleChange]) -> anyhow::Error {
    let mut lines = vec![format!(
        "run {} cannot go on as it is: what it has done was made from something else",
        run.id
    )];
    let mut roles = Vec::new();
    for change in changes {
        let who = change.role.as_deref().unwrap_or("all roles");
        lines.extend(change.what.iter().map(|what| format!("  {who}: {what}")));
        let is_gone = change.what.iter().any(|what| what == GONE);
        roles.extend(change.role.as_deref().filter(|_| !is_gone));
    }
    let restart: Vec<_> = roles
        .iter()
        .map(|role| format!("--restart {role}"))
        .collect();
    let restart = match restart.is_empty() {
        true => "`unstuck run` starts anew".to_owned(),
        false => format!("{} runs them again", restart.join(" ")),
    };
    refused(
        lines.join("\n"),
        format!("--accept-changes reuses their outputs all the same; {restart}"),
    )
}

/// A refusal with what to do next.
fn explained(error: anyhow::Error, run: &RunView) -> anyhow::Error {
    let short = run.id.short();
    match error.downcast_ref::<RunError>() {
        Some(RunError::NotResumable { .. }) => refused(
            error.to_string(),
            format!(
                "`unstuck show {short}` tells how it went; `unstuck exec` or `unstuck run` starts anew"
            ),
        ),
        Some(RunError::Changed { changes, .. }) => changed(run, changes),
        Some(RunError::WaitsForMoney { question, .. }) => refused(
            error.to_string(),
            format!(
                "`unstuck approve {question}` allows more; `unstuck abort {question}` ends the run"
            ),
        ),
        Some(RunError::Driven {
            pid, host, seen, ..
        }) => refused(
            format!(
                "run {} is already active (pid {pid} on {host}, last seen {})",
                run.id,
                clock::shown(*seen)
            ),
            format!("`unstuck logs -f {short}` shows what it does"),
        ),
        _ => error,
    }
}

//! `unstuck approve`, `reject`, `resolve`, `skip`, `retry`, `escalate`, `abort`: a person's word to what they are asked.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use unstuck_core::episode::{RunFold, RunView, Status};
use unstuck_core::guard::show;
use unstuck_core::question::Answer;
use unstuck_store::{Question, QuestionFilter, RunFilter};

use super::always;
use super::preview::Proposed;
use super::resume::{self, Taken};
use crate::answering::{self, Given, Which};
use crate::config::Config;
use crate::gateway::Wish;
use crate::history::History;
use crate::output::{BOLD, DIM, Output};
use crate::pipeline_plan::Wanted;
use crate::place::{current_project, homely, project_named};
use crate::project_changes::OnChanges;
use crate::run_words::what;
use crate::session::Session;
use crate::show_text::one_line;
use crate::supervise::Told;
use crate::{clock, completion, runtime};

/// Approve the proposed action and continue
///
/// Exactly what was shown is done. A repair runs once, in the sandbox; then what failed is retried.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck approve                 (the open request of this project)
  unstuck approve k3v9
  unstuck approve k3v9 --always   (also adds the repair to auto_approve of the
                                   project's unstuck.toml)

Exit codes: as of `unstuck exec`; 1 when there is no such request, when several could be meant, when it was answered, or inside a supervised agent.")]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    about: About,

    /// Add this very command to auto_approve of the project's configuration
    #[arg(long)]
    always: bool,
}

/// Answer what a run asks for
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  unstuck inbox                              (what is open, and the possible answers)
  unstuck reject k3v9 --note \"wrong folder\"
  unstuck resolve --last --note \"logged in again\"
  unstuck skip k3v9

Exit codes: as of `unstuck exec`; 0 when the answer ends the run; 1 when there is no such request, when several could be meant, when it was answered, or inside a supervised agent.")]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    about: About,
}

/// Abort a run that waits for you, was interrupted or crashed
///
/// The run ends for good; nothing of it is executed. An active run is stopped with `unstuck stop`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck abort                   (the run of this project that waits for you)
  unstuck abort k3v9 --note \"not needed any more\"
  unstuck abort --all             (every run of this project that waits for you)
  unstuck abort --all --project ~/shop

Exit codes: 0 aborted; 1 when there is nothing to abort, when several could be meant, when the run is active or has ended, or inside a supervised agent.")]
pub(crate) struct AbortArgs {
    #[command(flatten)]
    about: About,

    /// Abort every run of the project that waits for you
    #[arg(long, conflicts_with_all = ["id", "last"])]
    all: bool,

    /// The project that --all means [default: the current one]
    #[arg(long, value_name = "DIR", requires = "all")]
    project: Option<PathBuf>,
}

impl AnswerArgs {
    /// What is named.
    pub(crate) fn id(&self) -> Option<&str> {
        self.about.id.as_deref()
    }
}

/// The same for whoever names the loop that waits
#[derive(Debug, Args)]
pub(crate) struct LoopArgs {
    /// The run that waits: the first letters of its id
    #[arg(long = "loop", value_name = "ID", add = completion::runs())]
    run: Option<String>,

    /// Why, for those who read the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,

    /// Say nothing but what the command says
    #[arg(long, short)]
    quiet: bool,
}

impl From<&LoopArgs> for AnswerArgs {
    fn from(args: &LoopArgs) -> Self {
        Self {
            about: About {
                id: args.run.clone(),
                last: args.run.is_none(),
                note: args.note.clone(),
                quiet: args.quiet,
            },
        }
    }
}

#[derive(Debug, Clone, Args)]
struct About {
    /// The request or its run: the first letters of its id [default: the only open one of this project]
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), add = completion::runs())]
    id: Option<String>,

    /// The newest request of this project
    #[arg(long, conflicts_with = "id")]
    last: bool,

    /// Why, for those who read the history; for `retry` what is to be done otherwise
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,

    /// Say nothing but what the command says
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn approve(
    args: &ApproveArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let given = Giving {
        answer: Answer::Approve,
        always: args.always,
        about: &args.about,
    };
    given.run(config, session, out)
}

pub(crate) fn answer(
    answer: Answer,
    args: &AnswerArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let given = Giving {
        answer,
        always: false,
        about: &args.about,
    };
    given.run(config, session, out)
}

/// An answer that is being given.
struct Giving<'a> {
    answer: Answer,
    always: bool,
    about: &'a About,
}

impl Giving<'_> {
    fn run(&self, config: &Config, session: &Session<'_>, out: &mut Output) -> Result<ExitCode> {
        let (answer, about) = (self.answer, self.about);
        let question = answering::find(about.which(), answer, session)?;
        let given = answering::give(&question, answer, &about.note, config, session)?;
        if !about.quiet {
            show_answer(&question, answer, &given, out)?;
        }
        if self.always {
            let said = always::write(Path::new(&question.project), &question.asked, &about.note)?;
            writeln!(out, "{said}")?;
        }
        // What follows may write by itself, and take long.
        out.flush()?;
        match given {
            Given::Noted | Given::Heard | Given::Ended(_) => Ok(ExitCode::SUCCESS),
            Given::Waits => go_on(&question, about.quiet, config, session, out),
        }
    }
}

impl About {
    fn which(&self) -> Which<'_> {
        match &self.id {
            Some(id) => Which::Id(id),
            None if self.last => Which::Newest,
            None => Which::Only,
        }
    }
}

/// What was answered, once it is recorded, and what follows.
fn show_answer(question: &Question, answer: Answer, given: &Given, out: &mut Output) -> Result<()> {
    let shown = &question.asked.shown;
    let run = question.run.short();
    if let Given::Ended(reason) = given {
        let doing = one_line(&shown.doing, 80);
        writeln!(out, "run {run} has ended: {} ({doing})", show(reason))?;
        return Ok(());
    }
    if let Some(command) = &shown.command {
        writeln!(out, "{BOLD}{}{BOLD:#}", show(command))?;
    }
    let choice = shown.choices.iter().find(|one| one.answer == answer);
    let does = choice.map_or_else(String::new, |one| format!(": {}", show(&one.does)));
    let said = answer.said();
    writeln!(out, "{DIM}{} {said}{does}{DIM:#}", question.asked.id)?;
    if *given == Given::Heard {
        writeln!(out, "run {run} continues in the process that waits for it")?;
    }
    Ok(())
}

/// Aborts the run that is meant, or all of a project that wait for a person.
pub(crate) fn abort(
    args: &AbortArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    if args.all {
        return abort_all(args, config, session, out);
    }
    let given = Giving {
        answer: Answer::Abort,
        always: false,
        about: &args.about,
    };
    let Some(id) = &args.about.id else {
        return given.run(config, session, out);
    };
    let filter = QuestionFilter {
        prefix: Some(id.clone()),
        ..QuestionFilter::default()
    };
    if !answering::open(&filter, session)?.is_empty() {
        return given.run(config, session, out);
    }
    // Runs that nothing is asked about any more can be ended, too.
    let letters = id.split_once('-').map_or(id.as_str(), |(run, _)| run);
    let run = runtime::block_on(async {
        let history = History::open(session.store).await?;
        history.find(Some(letters)).await
    })?;
    let reason = answering::abort_run(&run, &args.about.note, config, session)?;
    if !args.about.quiet {
        let short = run.id.short();
        writeln!(
            out,
            "run {short} has ended: {} ({})",
            show(&reason),
            what(&run)
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Aborts every run of a project that waits for a person.
fn abort_all(
    args: &AbortArgs,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let project = match &args.project {
        Some(folder) => project_named(folder)?,
        None => current_project(),
    };
    let filter = QuestionFilter {
        project: Some(project.clone()),
        ..QuestionFilter::default()
    };
    let note = &args.about.note;
    let open = answering::open(&filter, session)?;
    let mut aborted = answering::abort_each(&open, note, config, session, |question, given| {
        if args.about.quiet {
            return Ok(());
        }
        show_answer(question, Answer::Abort, given, out)
    })?;
    for run in waiting_without_question(&project, session)? {
        match answering::abort_run(&run, note, config, session) {
            Ok(reason) => {
                aborted.count += 1;
                if !args.about.quiet {
                    let short = run.id.short();
                    writeln!(
                        out,
                        "run {short} has ended: {} ({})",
                        show(&reason),
                        what(&run)
                    )?;
                }
            }
            Err(error) => aborted.refused.push(error),
        }
    }
    if !args.about.quiet {
        let project = homely(&project);
        match aborted.count {
            0 => writeln!(out, "nothing to abort in {project}")?,
            n => writeln!(out, "{n} aborted in {project}")?,
        }
    }
    match aborted.refused.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Runs that wait for a person although nothing is asked any more.
fn waiting_without_question(project: &str, session: &Session<'_>) -> Result<Vec<RunView>> {
    let filter = RunFilter {
        project: Some(project.to_owned()),
        status: vec![Status::AwaitingHuman],
        ..RunFilter::default()
    };
    runtime::block_on(async {
        let history = History::open(session.store).await?;
        let listed = history.listed(&filter, clock::now().at).await?;
        let left = listed.into_iter().filter(|one| !one.driven);
        Ok(left.map(|one| one.run).collect())
    })
}

/// The run is taken up here.
fn go_on(
    question: &Question,
    quiet: bool,
    config: &Config,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let run = runtime::block_on(async {
        let history = History::open(session.store).await?;
        history.find(Some(question.run.as_str())).await
    })?;
    let taken = Taken {
        accept_changes: false,
        // An answer is about its question, and not about what was changed meanwhile.
        on_changes: OnChanges::Hold,
        restart: &[],
        wanted: Wanted::default(),
        told: if quiet { Told::Nothing } else { Told::All },
        json: false,
        gateway: Wish::Configured,
    };
    resume::first_of(vec![run], &taken, config, session, out)
}

/// What a repair that waits for an answer would run, by the id of the question or its run; none if it is no such id.
pub(crate) fn waiting(id: &str, session: &Session<'_>) -> Result<Option<Proposed>> {
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !id.bytes().all(is_id) {
        return Ok(None);
    }
    let filter = QuestionFilter {
        prefix: Some(id.to_owned()),
        ..QuestionFilter::default()
    };
    let mut found = answering::open(&filter, session)?;
    found.retain(|one| one.asked.repair.is_some());
    let Some(question) = found.into_iter().next() else {
        return Ok(None);
    };
    let events = runtime::block_on(async {
        let history = History::open(session.store).await?;
        history.events(&question.run).await
    })?;
    let fold = RunFold::fold(&events);
    let repair = question.asked.repair.as_deref().unwrap_or_default();
    let repair = fold.as_ref().and_then(|fold| fold.repairs.named(repair));
    Ok(repair.map(|repair| Proposed {
        command: repair.proposed.command.clone(),
        project: Some(PathBuf::from(&question.project)),
        working_dir: repair.proposed.working_dir.clone(),
        timeout: Duration::from_secs(repair.proposed.timeout_seconds.into()),
    }))
}

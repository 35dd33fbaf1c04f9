//! `unstuck approve`, `reject`, `resolve`, `skip`, `retry`, `escalate`, `abort`: a person's word to what they are asked.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use unstuck_core::episode::RunFold;
use unstuck_core::guard::show;
use unstuck_core::question::Answer;
use unstuck_store::{Question, QuestionFilter};

use super::always;
use super::preview::Proposed;
use super::resume::{self, Taken};
use crate::answering::{self, Given};
use crate::config::Config;
use crate::gateway::Wish;
use crate::history::History;
use crate::output::{BOLD, DIM, Output};
use crate::pipeline_plan::Wanted;
use crate::report::refused;
use crate::session::Session;
use crate::supervise::Told;
use crate::{completion, runtime};

/// Allow what a run asks for, and go on
///
/// Exactly what was shown is done. A repair runs once, in the sandbox; then what failed is tried again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck approve                 (the newest question)
  unstuck approve k3v9
  unstuck approve k3v9 --always   (also adds the repair to auto_approve of the project's unstuck.toml)

Exit codes: as of `unstuck exec`; 1 when there is no such question, when it was answered, or inside a supervised agent.")]
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
  unstuck inbox                              (what waits, and what can be answered)
  unstuck reject k3v9 --note \"wrong folder\"
  unstuck resolve --last --note \"logged in again\"
  unstuck retry k3v9 --note \"use the staging database\"

Exit codes: as of `unstuck exec`; 1 when there is no such question, when it was answered, or inside a supervised agent.")]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    about: About,
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
    /// The question or its run: the first letters of its id [default: the newest]
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), add = completion::runs())]
    id: Option<String>,

    /// The newest question
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
    if answer == Answer::Retry && args.about.note.trim().is_empty() {
        return Err(refused(
            "retry needs your words",
            "unstuck retry ID --note \"what is to be done otherwise\"; `unstuck resolve` tries the same again",
        ));
    }
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
        let question = answering::find(about.id.as_deref(), answer, session)?;
        if !about.quiet {
            show_question(&question, answer, out)?;
            // What follows may write by itself, and take long.
            out.flush()?;
        }
        let given = answering::give(&question, answer, &about.note, config, session)?;
        if self.always {
            let said = always::write(Path::new(&question.project), &question.asked, &about.note)?;
            writeln!(out, "{said}")?;
            out.flush()?;
        }
        match given {
            Given::Noted => Ok(ExitCode::SUCCESS),
            Given::Heard => {
                let run = &question.run;
                writeln!(out, "run {run} goes on in the process that waits for it")?;
                Ok(ExitCode::SUCCESS)
            }
            Given::Waits => go_on(&question, about.quiet, config, session, out),
        }
    }
}

/// What is answered, so that nobody answers something else than they think.
fn show_question(question: &Question, answer: Answer, out: &mut Output) -> Result<()> {
    let shown = &question.asked.shown;
    if let Some(command) = &shown.command {
        writeln!(out, "{BOLD}{}{BOLD:#}", show(command))?;
    }
    let choice = shown.choices.iter().find(|one| one.answer == answer);
    let does = choice.map_or_else(String::new, |one| format!(": {}", show(&one.does)));
    writeln!(out, "{DIM}{answer} {}{does}{DIM:#}", question.asked.id)?;
    Ok(())
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
    let Some(question) = found.pop() else {
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

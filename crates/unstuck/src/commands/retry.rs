//! `unstuck retry`: retries a waiting or failed run with additional instructions.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::SessionId;
use unstuck_core::views::RunSummary;
use unstuck_core::{RunId, duration};

use super::resume::{self, ResumeRequest};
use crate::command_context::CommandContext;
use crate::error_report::refusal;
use crate::escalation_answers::EscalationSelector;
use crate::gateway::PrivateGatewayMode;
use crate::input_file::read_input;
use crate::output::{DIM, Output};
use crate::pipeline_from_config::PipelineOptions;
use crate::project_setting_changes::{self, OnSettingChanges};
use crate::run_history::RunHistory;
use crate::run_supervision::Verbosity;
use crate::session_retry::{RetryChanges, RetryEffect, RetryTarget};
use crate::{async_runtime, completion_candidates, escalation_answers};

/// Retry with additional instructions
///
/// Answers the request of a waiting run. Retries a failed run in its own directory; earlier attempts stay in its
/// history.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck retry k3v9 --say \"use the staging database\"
  unstuck retry k3v9 --context                   (sends the error, stack trace and output)
  unstuck retry k3v9 --model claude-opus-5-5 --timeout 40m
  unstuck retry k3v9-2 --context --show          (only shows the prompt)
  unstuck retry --last --say \"skip the slow tests\"

Exit codes: those of `unstuck exec` for the resumed run; 1 nothing to retry, already answered, run active, or inside a supervised agent.")]
pub(crate) struct RetryArgs {
    /// Id prefix of the request, run or session [default: the open request of this project]
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new(), add = completion_candidates::runs())]
    id: Option<String>,

    /// Answer the newest request of this project
    #[arg(long, conflicts_with = "id")]
    last: bool,

    /// Additional instructions, appended to the prompt
    #[arg(
        long,
        value_name = "TEXT",
        visible_alias = "note",
        default_value = "",
        hide_default_value = true
    )]
    say: String,

    /// Include the failure: the error, the stack trace, the failing output
    #[arg(long)]
    context: bool,

    /// Send this file as the prompt instead
    #[arg(long, value_name = "FILE")]
    prompt_file: Option<PathBuf>,

    /// Use another model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Timeout of an attempt, such as 40m
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Only show the prompt that unstuck would send
    #[arg(long)]
    show: bool,

    /// Continue even if the project's configuration changed since the run began
    #[arg(long)]
    accept_changes: bool,

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,
}

impl RetryArgs {
    /// True if something is retried, not only shown.
    pub(crate) fn changes_run(&self) -> bool {
        !self.show
    }
}

pub(crate) fn run(
    args: &RetryArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let different = args.changes()?;
    let subject = args.target(session)?;
    if args.show {
        let would = subject.preview_prompt(&different, session)?;
        writeln!(out, "{}", would.prompt.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    if different == RetryChanges::default() && subject.escalation().is_some() {
        return Err(refusal(
            "a message or a change is required",
            "unstuck retry ID --say \"what to do differently\", or --context, --model, --timeout; `unstuck resolve` retries unchanged",
        ));
    }
    let run = subject.run.clone();
    let mut on_changes = OnSettingChanges::from_flags(args.accept_changes, false);
    if !subject.is_driven() {
        on_changes =
            project_setting_changes::confirm_changes(&run, subject.events(), on_changes, session)?;
    }
    let follows = subject.retry(&different, &escalation_answers::current_user(), session)?;
    if !args.quiet {
        let id = subject.session.id.as_str();
        writeln!(out, "{DIM}retrying {id}{DIM:#}")?;
        // Flush first: the resumed run may write directly, and take long.
        out.flush()?;
    }
    match follows {
        RetryEffect::Delivered => {
            let id = &run.id;
            writeln!(out, "run {id} continues in the waiting process")?;
            Ok(ExitCode::SUCCESS)
        }
        RetryEffect::NeedsResume { restart } => {
            let taken = ResumeRequest {
                accept_changes: args.accept_changes,
                on_changes,
                restart: &restart,
                options: PipelineOptions::default(),
                verbosity: if args.quiet {
                    Verbosity::Quiet
                } else {
                    Verbosity::All
                },
                json: false,
                gateway: PrivateGatewayMode::Configured,
            };
            resume_run(&run, &taken, session, out)
        }
    }
}

/// Resumes the run in this process.
fn resume_run(
    run: &RunSummary,
    taken: &ResumeRequest<'_>,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let run = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        history.find(Some(run.id.as_str())).await
    })?;
    resume::resume_first_possible(vec![run], taken, session, out)
}

impl RetryArgs {
    fn changes(&self) -> Result<RetryChanges> {
        let prompt = self.prompt_file.as_deref().map(read_input).transpose()?;
        Ok(RetryChanges {
            context: self.context,
            message: self.say.clone(),
            prompt,
            model: self.model.clone(),
            timeout: self.timeout,
        })
    }

    /// Resolves the target: the newest request, a request, a session or a run.
    fn target(&self, session: &CommandContext<'_>) -> Result<RetryTarget> {
        let Some(id) = &self.id else {
            let which = if self.last {
                EscalationSelector::Newest
            } else {
                EscalationSelector::Only
            };
            let question =
                escalation_answers::find_escalation(which, EscalationAnswer::Retry, session)?;
            return RetryTarget::find_in_run(
                &question.run,
                question.request.session.as_ref(),
                session,
            );
        };
        let (letters, number) = match id.rsplit_once('-') {
            Some((run, number)) if number.parse::<u32>().is_ok() => (run, Some(number)),
            // The id of an escalation.
            Some(_) => {
                let question = escalation_answers::find_escalation(
                    EscalationSelector::Id(id),
                    EscalationAnswer::Retry,
                    session,
                )?;
                return RetryTarget::find_in_run(
                    &question.run,
                    question.request.session.as_ref(),
                    session,
                );
            }
            None => (id.as_str(), None),
        };
        let run = async_runtime::block_on(async {
            let history = RunHistory::open(session.store).await?;
            history.find(Some(letters)).await
        })?;
        let asked = number.map(|number| SessionId::new(format!("{}-{number}", run.id)));
        let asking = || self.session_with_escalation(&run.id, session);
        match asked {
            Some(asked) => RetryTarget::find(&asked, session),
            None => RetryTarget::find_in_run(&run.id, asking()?.as_ref(), session),
        }
    }

    /// Returns the session of a run that has an open escalation.
    fn session_with_escalation(
        &self,
        run: &RunId,
        session: &CommandContext<'_>,
    ) -> Result<Option<SessionId>> {
        let filter = unstuck_store::EscalationFilter {
            run: Some(run.clone()),
            ..Default::default()
        };
        let newest = escalation_answers::open_escalations(&filter, session)?
            .into_iter()
            .next();
        Ok(newest.and_then(|one| one.request.session))
    }
}

//! `unstuck preview`: what a command would change, before it is allowed to.

mod ask;
mod print;
mod progress;
mod tried;
mod trouble;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use unstuck_core::duration;
use unstuck_repair::preview::{Applied, End, Preview, Previews, Report};
use unstuck_run::inside::supervised_agent;

use self::ask::Choice;
use crate::clock;
use crate::config::Config;
use crate::inside::only_a_person;
use crate::messages::Messages;
use crate::output::{Output, YELLOW};
use crate::place::homely;
use crate::report::hinted;
use crate::session::Session;
use crate::supervise::state_folder;

/// The exit code of a command that took too long.
const TIMED_OUT: u8 = 124;

/// Show what a command would change in the project, then apply or drop it
///
/// The command runs on an overlay of the project, in the whole sandbox and without network: nothing of the project changes until you apply it. Only files are previewed. Without a command, the previews that are kept are listed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck preview \"rm -rf node_modules && npm ci\"
  unstuck preview \"npm ci\" --working-dir packages/web --network
  unstuck preview q7w2                (the command of an open escalation)
  unstuck preview --apply 3f9a2c81d07e
  unstuck preview --drop 3f9a2c81d07e
  unstuck preview --json \"make clean\" | jq '.rows[].path'

Exit code: that of the command if one ran (124 if it took too long); otherwise 0, 1 if it cannot be done, 2 an error of our own.")]
pub(crate) struct PreviewArgs {
    /// The command, or the id of an escalation that proposes one
    #[arg(value_name = "COMMAND|ESCALATION")]
    target: Option<String>,

    /// The folder to run it in, from the root of the project [default: the root]
    #[arg(long, value_name = "DIR", requires = "target")]
    working_dir: Option<String>,

    /// Let it use the network; what it does there is real
    #[arg(long, requires = "target")]
    network: bool,

    /// How long it may take [default: 120s, or what the escalation says]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "target")]
    timeout: Option<Duration>,

    /// Apply the preview ID; with a command, apply what it would change if it succeeds
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "drop")]
    apply: Option<String>,

    /// Drop the preview ID; with a command, only show what it would change
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    drop: Option<String>,

    /// Show a preview that is kept once more
    #[arg(long, value_name = "ID", conflicts_with_all = ["target", "apply", "drop"])]
    show: Option<String>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// What somebody proposes to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proposed {
    pub(crate) command: String,
    /// The project it is for; that of the current folder where none is named.
    pub(crate) project: Option<PathBuf>,
    pub(crate) working_dir: Option<String>,
    pub(crate) timeout: Duration,
}

/// Finds what an open escalation proposes, by its id or the first letters of it; none if there is no such escalation.
pub(crate) type Escalated<'a> = &'a dyn Fn(&str) -> Result<Option<Proposed>>;

/// What is to be done.
enum Wish<'a> {
    List,
    Try(&'a str, Then),
    Show(&'a str),
    Apply(&'a str),
    Drop(&'a str),
}

/// What is to be done with a preview once it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// On a terminal a person is asked, elsewhere it is kept.
    Ask,
    Apply,
    Drop,
}

/// What has become of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
    Applied(Applied),
}

pub(crate) fn run(
    args: &PreviewArgs,
    config: &Config,
    session: &Session<'_>,
    escalated: Escalated<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let previews = Previews::at(&state_folder(session.store));
    if args.apply.is_some() {
        only_for_people()?;
    }
    settle(&previews)?;
    let find = |id: &str| previews.find(id).map_err(trouble::of_preview);
    let (preview, choice) = match args.wish()? {
        Wish::List => {
            list(&previews.list(), args.json, out)?;
            return Ok(ExitCode::SUCCESS);
        }
        Wish::Try(target, then) => {
            let trial = tried::Wanted::new(args, target, config, escalated)?;
            let preview = trial.run(session, &previews, !args.json)?;
            return tell_tried(args, preview, then, session, out);
        }
        Wish::Show(id) => (find(id)?, Choice::Keep),
        Wish::Apply(id) => (find(id)?, Choice::Apply),
        Wish::Drop(id) => (find(id)?, Choice::Drop),
    };
    if choice == Choice::Keep && !args.json {
        print::report(preview.report(), out)?;
    }
    fulfil(args, preview, choice, session, out)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows what a command would change, and does with it what is wanted.
fn tell_tried(
    args: &PreviewArgs,
    preview: Preview,
    then: Then,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let report = preview.report().clone();
    if !args.json {
        print::report(&report, out)?;
        // Whatever happens now, this was seen.
        out.flush()?;
    }
    let failed = report.ran.exit_code != 0;
    let choice = match then {
        // There is nothing to decide about.
        _ if report.is_empty() => Choice::Drop,
        Then::Drop => Choice::Drop,
        Then::Apply if failed => {
            let code = report.ran.exit_code;
            let told = format!("it failed with exit code {code}, so it was not applied");
            writeln!(Messages::auto(), "{YELLOW}{told}{YELLOW:#}")?;
            Choice::Keep
        }
        Then::Apply => Choice::Apply,
        Then::Ask if args.json => Choice::Keep,
        Then::Ask => ask::choose(&report, out)?,
    };
    fulfil(args, preview, choice, session, out)?;
    let code = match report.ran.timed_out {
        true => TIMED_OUT,
        false => u8::try_from(report.ran.exit_code).unwrap_or(1),
    };
    Ok(ExitCode::from(code))
}

/// Does with a preview what was chosen, and tells it.
fn fulfil(
    args: &PreviewArgs,
    preview: Preview,
    choice: Choice,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    let report = preview.report().clone();
    let fate = match choice {
        Choice::Keep => Fate::Kept,
        Choice::Drop => {
            preview.discard().map_err(trouble::of_preview)?;
            Fate::Dropped
        }
        Choice::Apply => {
            only_for_people()?;
            Fate::Applied(preview.apply().map_err(trouble::of_apply)?)
        }
    };
    match args.json {
        true => print::json(&report, &fate, out),
        false => print::fate(&report, &fate, session, out),
    }
}

/// Applying is a person's decision.
fn only_for_people() -> Result<()> {
    match supervised_agent() {
        Some(inside) => Err(only_a_person("apply a preview", &inside.to_string())),
        None => Ok(()),
    }
}

impl PreviewArgs {
    /// Whether a preview is applied, or one that is kept is dropped.
    pub(crate) fn decides(&self) -> bool {
        self.apply.is_some() || self.drop.is_some() && self.target.is_none()
    }

    fn wish(&self) -> Result<Wish<'_>> {
        let (apply, drop) = (self.apply.as_deref(), self.drop.as_deref());
        let wish = match (self.target.as_deref(), self.show.as_deref(), apply, drop) {
            (None, Some(id), ..) => Wish::Show(id),
            (None, None, None, None) => Wish::List,
            (None, None, Some(id), _) if !id.is_empty() => Wish::Apply(id),
            (None, None, _, Some(id)) if !id.is_empty() => Wish::Drop(id),
            (Some(target), _, None, None) => Wish::Try(target, Then::Ask),
            (Some(target), _, Some(""), _) => Wish::Try(target, Then::Apply),
            (Some(target), _, _, Some("")) => Wish::Try(target, Then::Drop),
            (None, ..) => {
                return Err(hinted(
                    "which preview is meant?",
                    "`unstuck preview` lists those that are kept, with their ids",
                ));
            }
            (Some(_), ..) => {
                return Err(hinted(
                    "a command and the id of a preview do not go together",
                    "put --apply or --drop behind the command: unstuck preview \"npm ci\" --apply",
                ));
            }
        };
        Ok(wish)
    }
}

/// Finishes or undoes what a crash left half applied, and tells it.
fn settle(previews: &Previews) -> Result<()> {
    for settled in previews.settle() {
        let (id, project) = (&settled.id, homely(&settled.project.display().to_string()));
        let told = match settled.end {
            End::Finished => {
                format!("preview {id} was half applied to {project}: it is finished now")
            }
            End::Undone => format!(
                "preview {id} was half applied to {project}: that is undone, and it is kept"
            ),
            End::Left(left) => format!(
                "preview {id} was half applied to {project}, which has changed since; look at {}",
                left.join(", ")
            ),
        };
        writeln!(Messages::auto(), "{YELLOW}{told}{YELLOW:#}")?;
    }
    Ok(())
}

fn list(reports: &[Report], json: bool, out: &mut Output) -> Result<()> {
    if json {
        return out.json(&reports);
    }
    if reports.is_empty() {
        writeln!(Messages::auto(), "no previews are kept")?;
    }
    print::list(reports, clock::now().at, out)
}

//! Tries a command that nobody approved: in the whole sandbox, on an overlay that takes all that it writes.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;
use unstuck_core::Timestamp;
use unstuck_core::guard::{Approved, ProposalError};
use unstuck_repair::environment::Environment;
use unstuck_repair::place::{Folder, Root};
use unstuck_repair::preview::{self, Draft, Preview, PreviewError, Previews};
use unstuck_repair::sandbox::{Confinement, Network, Overlay, Profile, guarded, user_of};

use crate::process::{Sink, Stop};

use super::error::RepairError;
use super::executor::Executor;
use super::job::Job;
use super::ran::Ran;

/// How many of the last lines of each stream are kept.
const LINES: usize = 8;
/// How many ticks pass between two looks at how much was written.
const TICKS: u32 = 5;

/// A command that is to be tried.
#[derive(Debug)]
pub struct Trial<'a> {
    /// The command.
    pub command: &'a str,
    /// The project.
    pub root: &'a Root,
    /// The folder to run it in.
    pub folder: &'a Folder,
    /// The variables that it gets.
    pub environment: Environment,
    /// Whether it may use the network; what it does there is real.
    pub network: Network,
    /// Folders and files of unstuck's own beside its state, which it does not see.
    pub own: Vec<PathBuf>,
    /// How long it may take.
    pub timeout: Duration,
    /// How much it may write.
    pub bounds: preview::Bounds,
}

/// Why there is no preview. A command that fails is not an error.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The command is not one that could be proposed.
    #[error("{0}")]
    Command(#[from] ProposalError),
    /// It could not be run, or not with the whole sandbox.
    #[error(transparent)]
    Repair(#[from] RepairError),
    /// What it left cannot be shown.
    #[error(transparent)]
    Preview(#[from] PreviewError),
    /// We are root and the project is not: its owner, as whom it would run, cannot reach the folders of an overlay.
    #[error("the project belongs to another user (uid {0})")]
    AnotherUser(u32),
    /// Somebody stopped it.
    #[error("it was stopped before its end")]
    Stopped,
    /// Processes of it could not be ended, so nobody knows what they still write.
    #[error("{0} of its processes could not be ended")]
    Survived(u32),
}

impl Executor {
    /// Tries a command and tells what it would change. The project stays as it is.
    pub async fn preview(
        &mut self,
        trial: &Trial<'_>,
        previews: &Previews,
        now: Timestamp,
        stop: watch::Receiver<Stop>,
    ) -> Result<Preview, TrialError> {
        let approved = Approved::for_preview(trial.command)?;
        if let Some(user) = user_of(trial.root.path()) {
            return Err(TrialError::AnotherUser(user.uid));
        }
        let draft = previews.prepare(trial.root.path(), trial.bounds, now)?;
        let environment = trial.environment.clone();
        let job = Job {
            profile: profile(trial, &draft),
            timeout: trial.timeout,
            ..Job::new(&approved, trial.root, trial.folder, environment)
        };
        let mut watch = Watch {
            draft: &draft,
            ticks: 0,
            is_full: false,
        };
        let ran = self.run_with(&job, &mut watch, stop).await?;
        let is_full = watch.is_full || draft.is_full();
        check(&ran, is_full)?;
        Ok(draft.finish(told(trial, &ran), guarded(), now)?)
    }
}

/// The whole sandbox, and nothing real that could be written to.
fn profile(trial: &Trial<'_>, draft: &Draft) -> Profile {
    Profile {
        network: trial.network,
        own: trial.own.clone(),
        overlay: Some(Overlay {
            lower: draft.project().to_owned(),
            upper: draft.upper(),
            work: draft.work(),
        }),
        ..Profile::of(draft.project())
    }
}

/// Whether what is left is all that the command did, and nothing else could be.
fn check(ran: &Ran, is_full: bool) -> Result<(), TrialError> {
    if ran.survivors > 0 {
        return Err(TrialError::Survived(ran.survivors));
    }
    if is_full {
        let why = "it was stopped, because it wrote too much".to_owned();
        return Err(PreviewError::TooMuch(why).into());
    }
    if ran.stopped {
        return Err(TrialError::Stopped);
    }
    match ran.sandbox.confinement {
        Confinement::Full => Ok(()),
        Confinement::Partial | Confinement::None if ran.timed_out => Err(TrialError::Stopped),
        Confinement::Partial | Confinement::None => Err(RepairError::SetUp {
            doing: "confine the command as a preview needs it".to_owned(),
            why: ran.sandbox.missing.join("; "),
        }
        .into()),
    }
}

fn told(trial: &Trial<'_>, ran: &Ran) -> preview::Ran {
    let last = |text: &str| {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        lines[lines.len().saturating_sub(LINES)..].to_vec()
    };
    let discarded = ran.discarded.iter();
    preview::Ran {
        command: trial.command.to_owned(),
        working_dir: trial.folder.relative().display().to_string(),
        exit_code: ran.status.code(),
        timed_out: ran.timed_out,
        duration: ran.duration,
        network: trial.network == Network::On,
        output: [last(&ran.stdout), last(&ran.stderr)].concat(),
        discarded: discarded.map(|path| path.display().to_string()).collect(),
    }
}

/// Looks now and then how much the command has written, and stops it when that is too much.
struct Watch<'a> {
    draft: &'a Draft,
    ticks: u32,
    is_full: bool,
}

impl Sink for Watch<'_> {
    fn stdout(&mut self, _bytes: &[u8]) {}

    fn stderr(&mut self, _bytes: &[u8]) {}

    fn ticks(&self) -> bool {
        true
    }

    fn tick(&mut self) {
        self.ticks += 1;
        if self.ticks.is_multiple_of(TICKS) {
            self.is_full = self.draft.is_full();
        }
    }

    fn is_open(&self) -> bool {
        !self.is_full
    }
}

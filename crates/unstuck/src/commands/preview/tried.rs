//! Tries the command that is to be previewed.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use unstuck_config::Origin;
use unstuck_core::guard::DEFAULT_TIMEOUT;
use unstuck_repair::environment::Environment;
use unstuck_repair::place::{Folder, Root};
use unstuck_repair::preview::{Bounds, Preview, Previews};
use unstuck_repair::sandbox::Network;
use unstuck_run::process::{ReaperProgram, Stop};
use unstuck_run::repair::{Executor, Trial};

use super::{Escalated, PreviewArgs, Proposed, ask, progress, trouble};
use crate::config::Config;
use crate::place::project_of;
use crate::report::hinted;
use crate::session::Session;
use crate::supervise::{self, state_folder};
use crate::{clock, environment, runtime};

/// How often installers ask again for what they do not get. Without network that only takes time, several minutes with npm.
const NO_RETRIES: [&str; 6] = [
    "npm_config_fetch_retries",
    "PIP_RETRIES",
    "UV_HTTP_RETRIES",
    "CARGO_NET_RETRY",
    "BUNDLE_RETRY",
    "YARN_HTTP_RETRY",
];

/// A command that is to be tried, and where.
pub(super) struct Wanted {
    proposed: Proposed,
    root: Root,
    folder: Folder,
    network: Network,
}

impl Wanted {
    /// What a person means by a command or the id of an escalation.
    pub(super) fn new(
        args: &PreviewArgs,
        target: &str,
        config: &Config,
        escalated: Escalated<'_>,
    ) -> Result<Self> {
        let proposed = match escalated(target)? {
            Some(proposed) => proposed,
            None => Proposed {
                command: target.to_owned(),
                project: None,
                working_dir: None,
                timeout: Duration::from_secs(DEFAULT_TIMEOUT.into()),
            },
        };
        let proposed = Proposed {
            working_dir: args.working_dir.clone().or(proposed.working_dir),
            timeout: args.timeout.unwrap_or(proposed.timeout),
            ..proposed
        };
        let project = match &proposed.project {
            Some(project) => project.clone(),
            None => {
                let here = std::env::current_dir();
                project_of(&here.context("cannot find the current folder")?)
            }
        };
        let root = Root::open(&project)?;
        let folder = root.folder(proposed.working_dir.as_deref());
        let folder = folder.map_err(|error| {
            hinted(
                error.to_string(),
                "it is a folder from the root of the project",
            )
        })?;
        let wanted = args.network || owner_says_network(config);
        let network = match wanted || ask::for_network(&proposed.command, args.json)? {
            true => Network::On,
            false => Network::Off,
        };
        Ok(Self {
            proposed,
            root,
            folder,
            network,
        })
    }

    /// Runs it on an overlay, and keeps what it would change.
    pub(super) fn run(
        &self,
        session: &Session<'_>,
        previews: &Previews,
        tells: bool,
    ) -> Result<Preview> {
        let trial = Trial {
            command: &self.proposed.command,
            root: &self.root,
            folder: &self.folder,
            // What the owner lets approved commands see is not for one that nobody approved.
            environment: self.environment(),
            network: self.network,
            own: environment::own_folders(session.store),
            timeout: self.proposed.timeout,
            bounds: Bounds::default(),
        };
        runtime::block_on(async {
            let (stop, stopped) = watch::channel(Stop::No);
            supervise::listen(stop, None)?;
            let state = state_folder(session.store);
            let temporary = std::env::temp_dir();
            let program = ReaperProgram::own();
            let executor = Executor::start(&program, &state, &temporary, environment::redactor());
            let mut executor = executor.map_err(|error| trouble::of_trial(error.into()))?;
            let now = clock::now().at;
            let tried = executor.preview(&trial, previews, now, stopped);
            let tried = match tells {
                true => progress::told(self.network, self.proposed.timeout, tried).await,
                false => tried.await,
            };
            tried.map_err(trouble::of_trial)
        })
    }

    /// The variables that the command gets.
    fn environment(&self) -> Environment {
        let owner = environment::all().map(|(name, value)| (name.into(), value.into()));
        let rebuilt = Environment::rebuilt(owner, self.root.path(), &[]);
        match self.network {
            Network::On => rebuilt,
            Network::Off => NO_RETRIES
                .iter()
                .fold(rebuilt, |all, name| all.with(*name, "0")),
        }
    }
}

/// Whether the owner's own configuration says that repairs have the network; the project's word does not count.
fn owner_says_network(config: &Config) -> bool {
    let said = config.value("recovery.network") == Some(true.into());
    let projects = config.project_recovery().map(|project| &project.files);
    let is_projects = |path: &PathBuf| projects.is_some_and(|files| files.contains(path));
    let by_owner = match config.origin("recovery.network") {
        Some(Origin::File { path, .. }) => !is_projects(&path),
        Some(Origin::Named(_)) => true,
        Some(Origin::BuiltIn) | None => false,
    };
    said && by_owner
}

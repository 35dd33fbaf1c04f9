//! Runs the command to preview.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use unstuck_config::ConfigValueOrigin;
use unstuck_core::command_policy::DEFAULT_TIMEOUT_SECONDS;
use unstuck_repair::environment::RepairEnvironmentVariables;
use unstuck_repair::preview::{Preview, PreviewLimits, PreviewStore};
use unstuck_repair::project_dir::{ProjectRoot, RepairWorkingDir};
use unstuck_repair::sandbox::NetworkAccess;
use unstuck_run::process::{AttemptStopRequest, ReaperProgram};
use unstuck_run::repair_execution::{PreviewJob, RepairExecutor};

use super::{CommandProposal, PreviewArgs, ProposalLookup, errors, progress, terminal_prompt};
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::project_lookup::project_of;
use crate::run_supervision::{self, state_dir};
use crate::{async_runtime, clock, environment_variables};

/// Disables retries of installers: without network they only waste time, several minutes with npm.
const NO_RETRIES: [&str; 6] = [
    "npm_config_fetch_retries",
    "PIP_RETRIES",
    "UV_HTTP_RETRIES",
    "CARGO_NET_RETRY",
    "BUNDLE_RETRY",
    "YARN_HTTP_RETRY",
];

/// A command to preview and its directory.
pub(super) struct PreviewRequest {
    proposed: CommandProposal,
    root: ProjectRoot,
    folder: RepairWorkingDir,
    network: NetworkAccess,
}

impl PreviewRequest {
    /// Resolves a command or the id of an escalation.
    pub(super) fn new(
        args: &PreviewArgs,
        target: &str,
        config: &Config,
        escalated: ProposalLookup<'_>,
    ) -> Result<Self> {
        let proposed = match escalated(target)? {
            Some(proposed) => proposed,
            None => CommandProposal {
                command: target.to_owned(),
                project: None,
                working_dir: None,
                timeout: Duration::from_secs(DEFAULT_TIMEOUT_SECONDS.into()),
            },
        };
        let proposed = CommandProposal {
            working_dir: args.working_dir.clone().or(proposed.working_dir),
            timeout: args.timeout.unwrap_or(proposed.timeout),
            ..proposed
        };
        let project = match &proposed.project {
            Some(project) => project.clone(),
            None => {
                let here = std::env::current_dir();
                project_of(&here.context("cannot determine the current directory")?)
            }
        };
        let root = ProjectRoot::open(&project)?;
        let folder = root.open_working_dir(proposed.working_dir.as_deref());
        let folder = folder.map_err(|error| {
            error_with_hint(
                error.to_string(),
                "--working-dir is relative to the project root",
            )
        })?;
        let wanted = args.network || owner_allows_network(config);
        let network = if wanted || terminal_prompt::confirm_network(&proposed.command, args.json)? {
            NetworkAccess::On
        } else {
            NetworkAccess::Off
        };
        Ok(Self {
            proposed,
            root,
            folder,
            network,
        })
    }

    /// Runs the command on an overlay and saves its changes.
    pub(super) fn run(
        &self,
        session: &CommandContext<'_>,
        previews: &PreviewStore,
        tells: bool,
    ) -> Result<Preview> {
        let trial = PreviewJob {
            command: &self.proposed.command,
            root: &self.root,
            folder: &self.folder,
            // Variables passed through to approved commands are withheld: this one is not approved.
            environment: self.environment(),
            network: self.network,
            hidden_paths: environment_variables::own_paths(session.store),
            timeout: self.proposed.timeout,
            bounds: PreviewLimits::default(),
        };
        async_runtime::block_on(async {
            let (stop, stopped) = watch::channel(AttemptStopRequest::Continue);
            run_supervision::listen(stop, None)?;
            let state = state_dir(session.store);
            let temporary = std::env::temp_dir();
            let program = ReaperProgram::own();
            let executor = RepairExecutor::start(
                &program,
                &state,
                &temporary,
                environment_variables::redactor(),
            );
            let mut executor = executor.map_err(|error| errors::trial_error(error.into()))?;
            let now = clock::now().at;
            let tried = executor.preview(&trial, previews, now, stopped);
            let tried = if tells {
                progress::with_progress(self.network, self.proposed.timeout, tried).await
            } else {
                tried.await
            };
            tried.map_err(errors::trial_error)
        })
    }

    /// Returns the environment variables of the command.
    fn environment(&self) -> RepairEnvironmentVariables {
        let owner = environment_variables::all().map(|(name, value)| (name.into(), value.into()));
        let rebuilt = RepairEnvironmentVariables::from_owner(owner, self.root.path(), &[]);
        match self.network {
            NetworkAccess::On => rebuilt,
            NetworkAccess::Off => NO_RETRIES
                .iter()
                .fold(rebuilt, |all, name| all.with_variable(*name, "0")),
        }
    }
}

/// True if the user's own configuration allows network access for repairs; the project's setting is ignored.
fn owner_allows_network(config: &Config) -> bool {
    let said = config.value("recovery.network") == Some(true.into());
    let projects = config.project_recovery().map(|project| &project.files);
    let is_projects = |path: &PathBuf| projects.is_some_and(|files| files.contains(path));
    let by_owner = match config.origin("recovery.network") {
        Some(ConfigValueOrigin::File { path, .. }) => !is_projects(&path),
        Some(ConfigValueOrigin::Named(_)) => true,
        Some(ConfigValueOrigin::BuiltIn) | None => false,
    };
    said && by_owner
}

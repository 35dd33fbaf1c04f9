//! Sets up what a run needs (store, reaper, signals, screen) and drives it.

mod chance;
mod pipeline_screen;
mod screen;
mod signals;
mod story;

pub(crate) use pipeline_screen::PipelineScreen;
pub(crate) use screen::{Screen, Told};

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use tokio::sync::watch;
use unstuck_core::RunId;
use unstuck_core::action::{Prompts, shell_quote};
use unstuck_core::agent::Agents;
use unstuck_core::redact::{Redactor, secret_values};
use unstuck_run::clock::Clock;
use unstuck_run::drive::{Engine, Finished, Knowledge, Reporter, Request, RunError, Supervisors};
use unstuck_run::process::{ReaperProgram, Stdin, Stop};
use unstuck_store::Location;

use crate::config::Config;
use crate::environment;
use crate::output::Color;
use crate::place::homely;

/// What every command that runs something starts from.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) store: &'a Location,
    pub(crate) color: Color,
}

impl Session<'_> {
    /// A command line of unstuck that finds this very store when a person copies it.
    pub(crate) fn line(&self, words: &str) -> String {
        format!("unstuck {words}{}", self.store_option())
    }

    /// The option that names the store, with a blank before it; empty where it is the usual one.
    fn store_option(&self) -> String {
        if environment::store_location().is_ok_and(|usual| usual == *self.store) {
            return String::new();
        }
        let path = self.store.to_string();
        match shell_quote(&path) {
            quoted if quoted == path => format!(" --store {}", homely(&path)),
            quoted => format!(" --store {quoted}"),
        }
    }
}

/// What is to be driven.
enum Task {
    Start(Box<Request>),
    Resume(RunId),
}

/// What a run finds around it.
struct Setting<'a> {
    agents: &'a Agents,
    stdin: Stdin,
}

impl<'a> Setting<'a> {
    /// What the user has.
    fn own(config: &'a Config) -> Result<Self> {
        Ok(Self {
            agents: config.agents(),
            stdin: Stdin::inherited().map_err(RunError::from)?,
        })
    }
}

/// Runs a command to its end.
pub(crate) fn start(
    session: &Session<'_>,
    config: &Config,
    request: Request,
    told: Told,
    warnings: &[String],
) -> Result<Finished> {
    let mut screen = Screen::new(session, told, request.options.tty);
    for warning in warnings {
        screen.warn(warning);
    }
    let task = Task::Start(Box::new(request));
    drive(session, config, Setting::own(config)?, task, &mut screen)
}

/// Runs a command of the demo: with agents of its own, and without what comes on standard input.
pub(crate) fn stage(
    session: &Session<'_>,
    agents: &Agents,
    request: Request,
    reporter: &mut dyn Reporter,
) -> Result<Finished> {
    let setting = Setting {
        agents,
        stdin: Stdin::null(),
    };
    // What the user has configured could make the same failures end in another way.
    let config = Config::default();
    let task = Task::Start(Box::new(request));
    drive(session, &config, setting, task, reporter)
}

/// Takes a run up again.
pub(crate) fn resume(
    session: &Session<'_>,
    config: &Config,
    run: RunId,
    told: Told,
) -> Result<Finished> {
    let mut screen = Screen::new(session, told, false);
    let setting = Setting::own(config)?;
    drive(session, config, setting, Task::Resume(run), &mut screen)
}

fn drive(
    session: &Session<'_>,
    config: &Config,
    mut setting: Setting<'_>,
    task: Task,
    reporter: &mut dyn Reporter,
) -> Result<Finished> {
    config.prepare()?;
    let redactor = Arc::new(Redactor::new(secret_values(environment::all())));
    crate::runtime::block_on(async {
        // The reaper comes up while the store is being opened.
        let supervisors = Supervisors::start(ReaperProgram::own(), 1).map_err(RunError::from)?;
        let store = crate::store::open(session.store, Arc::clone(&redactor)).await?;
        let (stop, stopped) = watch::channel(Stop::No);
        signals::listen(stop, supervisors.remote())?;
        let classifier = || config.classifier_or_built_in();
        let state = state_folder(session.store);
        let prompts = OnceCell::new();
        let mut engine = Engine {
            store: &store,
            knowledge: Knowledge {
                classifier: &classifier,
                playbook: &|| config.playbook(),
                catalog: &|| config.catalog(),
                agents: setting.agents,
                prompts: &|| {
                    prompts.get_or_init(|| config.prompts().unwrap_or_else(|_| Prompts::embedded()))
                },
                version: env!("CARGO_PKG_VERSION"),
            },
            redactor: &redactor,
            supervisors: &supervisors,
            stdin: &mut setting.stdin,
            reporter,
            stop: stopped,
            clock: Clock::System,
            draws: &mut chance::draw,
            state: &state,
            role: None,
        };
        let finished = match task {
            Task::Start(request) => engine.start(*request).await,
            Task::Resume(run) => engine.resume(&run).await,
        };
        let closed = store.close().await;
        let finished = finished.map_err(explained)?;
        closed.map_err(crate::store::explained)?;
        Ok(finished)
    })
}

/// An error of the store comes with what to do about it.
fn explained(error: RunError) -> anyhow::Error {
    match error {
        RunError::Store(error) => crate::store::explained(error),
        other => other.into(),
    }
}

/// Where what is needed to take a run up again is kept: beside the store.
pub(crate) fn state_folder(store: &Location) -> PathBuf {
    store.path().with_extension("d")
}

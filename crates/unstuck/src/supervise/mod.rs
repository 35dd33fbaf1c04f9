//! Sets up what a run needs (store, reaper, signals, screen) and drives it.

mod chance;
mod screen;
mod signals;
mod story;

pub(crate) use screen::{Screen, Told};

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use tokio::sync::watch;
use unstuck_core::RunId;
use unstuck_core::redact::{Redactor, secret_values};
use unstuck_run::clock::Clock;
use unstuck_run::drive::{Engine, Finished, Knowledge, Reporter, Request, RunError};
use unstuck_run::process::{ReaperProgram, Stdin, Stop, Supervisor};
use unstuck_store::Location;

use crate::config::Config;
use crate::environment;
use crate::output::Color;

/// What every command that runs something starts from.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) store: &'a Location,
    pub(crate) color: Color,
}

/// What is to be driven.
enum Task {
    Start(Box<Request>),
    Resume(RunId),
}

/// Runs a command to its end.
pub(crate) fn start(
    session: &Session<'_>,
    config: &Config,
    request: Request,
    told: Told,
    warnings: &[String],
) -> Result<Finished> {
    let mut screen = Screen::new(session.color, told, request.options.tty);
    for warning in warnings {
        screen.warn(warning);
    }
    drive(session, config, Task::Start(Box::new(request)), &mut screen)
}

/// Takes a run up again.
pub(crate) fn resume(
    session: &Session<'_>,
    config: &Config,
    run: RunId,
    told: Told,
) -> Result<Finished> {
    let mut screen = Screen::new(session.color, told, false);
    drive(session, config, Task::Resume(run), &mut screen)
}

fn drive(
    session: &Session<'_>,
    config: &Config,
    task: Task,
    screen: &mut Screen,
) -> Result<Finished> {
    config.prepare()?;
    let redactor = Arc::new(Redactor::new(secret_values(environment::all())));
    crate::runtime::block_on(async {
        // The reaper comes up while the store is being opened.
        let mut supervisor = Supervisor::start(&ReaperProgram::own()).map_err(RunError::from)?;
        let store = crate::store::open(session.store, Arc::clone(&redactor)).await?;
        let (stop, stopped) = watch::channel(Stop::No);
        signals::listen(stop, supervisor.remote())?;
        let mut stdin = Stdin::inherited().map_err(RunError::from)?;
        let classifier = || config.classifier_or_built_in();
        let mut engine = Engine {
            store: &store,
            knowledge: Knowledge {
                classifier: &classifier,
                playbook: &|| config.playbook(),
                catalog: &|| config.catalog(),
                agents: config.agents(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            redactor: &redactor,
            supervisor: &mut supervisor,
            stdin: &mut stdin,
            reporter: screen,
            stop: stopped,
            clock: Clock::System,
            draws: &mut chance::draw,
            state: state_folder(session.store),
        };
        let finished = match task {
            Task::Start(request) => engine.start(*request).await,
            Task::Resume(run) => engine.resume(&run).await,
        };
        store.close().await?;
        Ok(finished?)
    })
}

/// Where what is needed to take a run up again is kept: beside the store.
fn state_folder(store: &Location) -> PathBuf {
    store.path().with_extension("d")
}

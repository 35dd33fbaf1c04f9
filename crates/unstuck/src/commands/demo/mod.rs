//! `unstuck demo`: a simulated agent runs into typical failures under the real engine.
//!
//! Only the agent and the API are simulated: the agent is this program started again, the API a loopback server that
//! follows the script. The output is that of `unstuck exec`.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, out of the agents' reach"
)]

mod agent;
mod scene;
mod summary;

pub(crate) use agent::run_if_agent as agent_called;

use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_core::agent::Agents;
use unstuck_core::event::RunOutcome;
use unstuck_core::{EventRecord, SessionState};
use unstuck_faults::{FaultScript, FaultServer};
use unstuck_run::runner::{OutputChannel, RunResult, SessionReporter};
use unstuck_store::StoreLocation;

use self::scene::{DemoScene, DemoSpeed};
use super::run_result::result_json;
use crate::command_context::CommandContext;
use crate::environment_variables;
use crate::error_report::error_with_hint;
use crate::output::{BOLD, DIM, Output};
use crate::run_supervision::{self, CommandScreen, Verbosity};

/// Exit code after an interrupt (128 + SIGINT).
const EXIT_INTERRUPTED: u8 = 130;

/// Watch a simulated agent fail and recover: no API key, no network, half a minute
///
/// The agent and the API are simulated; recovery, processes, waits and history are real. The history is in a separate
/// file (next to your store, or the file given by --store). The demo writes nothing to the current directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck demo
  unstuck demo --fast
  unstuck demo --fast --json | jq '.[].outcome'

Exit codes: 0 every scene ended as expected; 2 the demo failed; 130 interrupted.")]
pub(crate) struct DemoArgs {
    /// Use short waits: takes about two seconds
    #[arg(long)]
    fast: bool,

    /// Print only a JSON array of the runs
    #[arg(long)]
    json: bool,
}

/// Paths and settings of a demo run.
struct DemoRunner<'a> {
    session: &'a CommandContext<'a>,
    /// Path of this executable.
    program: PathBuf,
    agents: Agents,
    /// Working directory of the agent.
    project: PathBuf,
    pace: DemoSpeed,
    json: bool,
}

pub(crate) fn run(
    args: &DemoArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let stage = DemoRunner::set_up(args, session)?;
    let scenes = scene::all_scenes()?;
    if !args.json {
        welcome(args, out)?;
    }
    let Some(played) = stage.run_scenes(&scenes, out)? else {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    };
    if args.json {
        let runs: Vec<_> = played.iter().map(result_json).collect();
        out.write_json(&runs)?;
    } else {
        summary::print_summary(&played, session, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn welcome(args: &DemoArgs, out: &mut Output) -> Result<()> {
    let time = if args.fast { "2 s" } else { "25 s" };
    writeln!(
        out,
        "The agent and its LLM API (on 127.0.0.1) are simulated; engine, processes, waits\n\
         and history are real. The demo takes about {time} and costs nothing; amounts are\n\
         estimates for the named models."
    )?;
    Ok(())
}

impl<'a> DemoRunner<'a> {
    fn set_up(args: &DemoArgs, session: &'a CommandContext<'a>) -> Result<Self> {
        check_loopback()?;
        let program = std::env::current_exe().context("cannot locate the unstuck executable")?;
        let project = project_dir(session.store)?;
        let made = fs::create_dir_all(&project).and_then(|()| project.canonicalize());
        let project = made.map_err(|error| {
            error_with_hint(
                format!("cannot create directory {}: {error}", project.display()),
                "choose a writable location with --store FILE",
            )
        })?;
        Ok(Self {
            agents: scene::demo_agents(&program)?,
            program,
            project,
            session,
            pace: if args.fast {
                DemoSpeed::Fast
            } else {
                DemoSpeed::Normal
            },
            json: args.json,
        })
    }

    /// Runs all scenes in order; none if interrupted.
    fn run_scenes(&self, scenes: &[DemoScene], out: &mut Output) -> Result<Option<Vec<RunResult>>> {
        let mut played = Vec::with_capacity(scenes.len());
        for (number, scene) in (1..).zip(scenes) {
            if !self.json {
                self.announce(scene, (number, scenes.len()), out)?;
            }
            let finished = self.run_scene(scene)?;
            match finished.end.outcome {
                RunOutcome::Interrupted => return Ok(None),
                outcome if outcome != scene.expected_outcome => {
                    return Err(self.unexpected_outcome(scene, &finished));
                }
                _ => played.push(finished),
            }
        }
        Ok(Some(played))
    }

    /// Prints the introduction of a scene.
    fn announce(
        &self,
        scene: &DemoScene,
        (number, of): (usize, usize),
        out: &mut Output,
    ) -> Result<()> {
        writeln!(
            out,
            "\n{BOLD}{number}/{of} {}{BOLD:#}\n{}\n{DIM}$ {}{DIM:#}",
            scene.title,
            scene.introduction.trim(),
            scene.shell_line(self.pace)?
        )?;
        // Flush: the run writes to the terminal directly.
        out.finish()
    }

    /// Runs one scene with its own API.
    fn run_scene(&self, scene: &DemoScene) -> Result<RunResult> {
        let api = FaultServer::start(scene.script(self.pace)).map_err(loopback_error)?;
        let request = scene.request(&self.program, api.url(), &self.project, self.pace)?;
        if self.json {
            return run_supervision::run_demo(
                self.session,
                &self.agents,
                request,
                &mut SilentReporter,
            );
        }
        let mut screen = CommandScreen::new(self.session, Verbosity::All, false);
        run_supervision::run_demo(self.session, &self.agents, request, &mut screen)
    }

    /// Returns the error for a scene with an unexpected outcome.
    fn unexpected_outcome(&self, scene: &DemoScene, finished: &RunResult) -> anyhow::Error {
        let title = &scene.title;
        let show = format!("show {}", finished.run.short());
        error_with_hint(
            format!(
                "scene `{title}` ended unexpectedly: {}",
                finished.end.reason
            ),
            format!(
                "`{}` shows what happened",
                self.session.unstuck_command(&show)
            ),
        )
    }
}

/// Checks that a loopback server can be reached before the demo starts.
fn check_loopback() -> Result<()> {
    let server = FaultServer::start(FaultScript::default()).map_err(loopback_error)?;
    TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).map_err(loopback_error)?;
    Ok(())
}

fn loopback_error(error: impl Display) -> anyhow::Error {
    error_with_hint(
        format!("cannot run a server on 127.0.0.1: {error}"),
        "the demo needs a loopback interface, which some sandboxes lack; `unstuck exec` does not need one",
    )
}

/// Returns the agent's directory next to the store.
fn project_dir(store: &StoreLocation) -> Result<PathBuf> {
    let path = std::path::absolute(store.path()).context("cannot locate the store")?;
    let is_ours = environment_variables::demo_store().is_ok_and(|ours| ours == *store);
    // Next to a custom store, a directory with that plain name may belong to the user.
    Ok(path.with_extension(if is_ours { "" } else { "project" }))
}

/// A reporter that prints nothing.
struct SilentReporter;

impl SessionReporter for SilentReporter {
    fn output(&mut self, _channel: OutputChannel, _bytes: &[u8]) {}

    fn on_events(&mut self, _events: &[EventRecord], _recovery: &SessionState) {}

    fn warn(&mut self, _message: &str) {}
}

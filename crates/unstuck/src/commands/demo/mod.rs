//! `unstuck demo`: a simulated agent goes through the usual trouble, under the real engine.
//!
//! Only the agent and the API are simulated: the agent is this program started again, the API a server on the
//! loopback interface that answers as the scenes say. What is printed is what `unstuck exec` prints.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

mod agent;
mod closing;
mod scene;

pub(crate) use agent::called as agent_called;

use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_core::agent::Agents;
use unstuck_core::event::Outcome;
use unstuck_core::{Recorded, Recovery};
use unstuck_faults::{FaultServer, Script};
use unstuck_run::drive::{Channel, Finished, Reporter};
use unstuck_store::Location;

use self::scene::{Pace, Scene};
use super::ended::summary;
use crate::environment;
use crate::output::{BOLD, DIM, Output};
use crate::report::hinted;
use crate::session::Session;
use crate::supervise::{self, Screen, Told};

/// The exit code of whoever was interrupted.
const INTERRUPTED: u8 = 130;

/// Watch a simulated agent get into trouble and out of it: no key, no network, half a minute
///
/// Agent and API are simulated; engine, processes, waits and history are real. Its history is a file of its own
/// (beside yours, or the one that --store names), and nothing is written to the current folder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck demo
  unstuck demo --fast
  unstuck demo --fast --json | jq '.[].outcome'

Exit codes: 0 all went as announced; 130 interrupted; 2 the demo could not be played.")]
pub(crate) struct DemoArgs {
    /// Play the same with short waits, in about two seconds
    #[arg(long)]
    fast: bool,

    /// Print nothing but a JSON array of the runs
    #[arg(long)]
    json: bool,
}

/// Where the demo is played.
struct Stage<'a> {
    session: &'a Session<'a>,
    /// This very program.
    program: PathBuf,
    agents: Agents,
    /// The folder in which the agent works.
    project: PathBuf,
    pace: Pace,
    json: bool,
}

pub(crate) fn run(args: &DemoArgs, session: &Session<'_>, out: &mut Output) -> Result<ExitCode> {
    let stage = Stage::set_up(args, session)?;
    let scenes = scene::all()?;
    if !args.json {
        welcome(args, out)?;
    }
    let Some(played) = stage.play_all(&scenes, out)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    if args.json {
        let runs: Vec<_> = played.iter().map(summary).collect();
        out.json(&runs)?;
    } else {
        closing::tell(&played, session, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn welcome(args: &DemoArgs, out: &mut Output) -> Result<()> {
    let time = if args.fast { "2 s" } else { "25 s" };
    writeln!(
        out,
        "The agent and its LLM API (on 127.0.0.1) are simulated; all else is real: the\n\
         engine, the processes, the waits, the history. It takes about {time} and costs\n\
         nothing; amounts are estimates for the named models."
    )?;
    Ok(())
}

impl<'a> Stage<'a> {
    fn set_up(args: &DemoArgs, session: &'a Session<'a>) -> Result<Self> {
        find_loopback()?;
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let project = project(session.store)?;
        let made = fs::create_dir_all(&project).and_then(|()| project.canonicalize());
        let project = made.map_err(|error| {
            hinted(
                format!("cannot make the folder {}: {error}", project.display()),
                "--store FILE names a place that can be written",
            )
        })?;
        Ok(Self {
            agents: scene::agents(&program)?,
            program,
            project,
            session,
            pace: if args.fast { Pace::Fast } else { Pace::Normal },
            json: args.json,
        })
    }

    /// Plays one scene after the other; none if a person has stopped it.
    fn play_all(&self, scenes: &[Scene], out: &mut Output) -> Result<Option<Vec<Finished>>> {
        let mut played = Vec::with_capacity(scenes.len());
        for (number, scene) in (1..).zip(scenes) {
            if !self.json {
                self.announce(scene, (number, scenes.len()), out)?;
            }
            let finished = self.play(scene)?;
            match finished.end.outcome {
                Outcome::Interrupted => return Ok(None),
                outcome if outcome != scene.ends => return Err(self.surprised(scene, &finished)),
                _ => played.push(finished),
            }
        }
        Ok(Some(played))
    }

    /// Says what is about to happen.
    fn announce(
        &self,
        scene: &Scene,
        (number, of): (usize, usize),
        out: &mut Output,
    ) -> Result<()> {
        writeln!(
            out,
            "\n{BOLD}{number}/{of} {}{BOLD:#}\n{}\n{DIM}$ {}{DIM:#}",
            scene.title,
            scene.about.trim(),
            scene.typed(self.pace)?
        )?;
        // What the run prints takes another way.
        out.finish()
    }

    /// Plays one scene: an API of its own, and one run.
    fn play(&self, scene: &Scene) -> Result<Finished> {
        let api = FaultServer::start(scene.script(self.pace)).map_err(no_loopback)?;
        let request = scene.request(&self.program, api.url(), &self.project, self.pace)?;
        if self.json {
            return supervise::stage(self.session, &self.agents, request, &mut Silence);
        }
        let mut screen = Screen::new(self.session, Told::All, false);
        supervise::stage(self.session, &self.agents, request, &mut screen)
    }

    /// The error of a scene that went another way than announced.
    fn surprised(&self, scene: &Scene, finished: &Finished) -> anyhow::Error {
        let title = &scene.title;
        let show = format!("show {}", finished.run.short());
        hinted(
            format!(
                "`{title}` did not end as announced: {}",
                finished.end.reason
            ),
            format!("`{}` tells what happened", self.session.line(&show)),
        )
    }
}

/// Makes sure that a server on this machine can be reached, before anything is promised.
fn find_loopback() -> Result<()> {
    let server = FaultServer::start(Script::default()).map_err(no_loopback)?;
    TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).map_err(no_loopback)?;
    Ok(())
}

fn no_loopback(error: impl Display) -> anyhow::Error {
    hinted(
        format!("the demo needs a server on 127.0.0.1: {error}"),
        "it cannot be played in a sandbox without a loopback interface; `unstuck exec` needs none",
    )
}

/// The folder in which the demo's agent works, beside the store.
fn project(store: &Location) -> Result<PathBuf> {
    let path = std::path::absolute(store.path()).context("cannot tell where the store is")?;
    let is_ours = environment::demo_store().is_ok_and(|ours| ours == *store);
    // Elsewhere there may be a folder of that plain name, which is somebody's own.
    Ok(path.with_extension(if is_ours { "" } else { "project" }))
}

/// Tells nobody.
struct Silence;

impl Reporter for Silence {
    fn output(&mut self, _channel: Channel, _bytes: &[u8]) {}

    fn happened(&mut self, _events: &[Recorded], _recovery: &Recovery) {}

    fn warn(&mut self, _message: &str) {}
}

//! Child processes of unstuck itself, started by the inbox or the dashboard: resumed runs and previews.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use unstuck_core::RunId;
use unstuck_run::run_dir;
use unstuck_store::StoreLocation;

use crate::command_context::CommandContext;
use crate::run_supervision::state_dir;

/// Log file for the output of a run resumed in the background.
const RESUME_LOG: &str = "resumed.log";

/// First argument of a process that is to outlive its terminal.
const DETACHED_ARG: &str = "__detached";

/// Detaches from the terminal if requested, and returns the remaining arguments.
pub(crate) fn detach_if_requested(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|first| first == DETACHED_ARG) {
        arguments.remove(1);
        // Fails only if already detached.
        let _ = rustix::process::setsid();
    }
    arguments
}

/// Resumes a run in a new process.
pub(crate) fn spawn_resume(
    run: &RunId,
    project: &Path,
    session: &CommandContext<'_>,
) -> io::Result<Child> {
    let mut command = own_command(project, session)?;
    command
        .args(["resume", run.as_str(), "--quiet", "--hold-changes"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn()
}

/// Resumes a run in a new process whose output is logged in the run directory; returns the process.
///
/// The roles in `restart` are re-run, with all that depend on them. `kept` is held until the process has ended.
pub(crate) fn spawn_resume_logged(
    run: &RunId,
    project: &Path,
    restart: &[String],
    session: &CommandContext<'_>,
    kept: impl Send + 'static,
) -> io::Result<u32> {
    let mut child = spawn_with_log(run, project, restart, session)?;
    let pid = child.id();
    std::thread::spawn(move || {
        // Its events record the outcome.
        let _ = child.wait();
        drop(kept);
    });
    Ok(pid)
}

/// Resumes a run in a process that outlives this one; its output is logged in the run directory.
pub(crate) fn spawn_detached_resume(
    run: &RunId,
    project: &Path,
    session: &CommandContext<'_>,
) -> io::Result<Child> {
    spawn_with_log(run, project, &[], session)
}

fn spawn_with_log(
    run: &RunId,
    project: &Path,
    restart: &[String],
    session: &CommandContext<'_>,
) -> io::Result<Child> {
    let mut command = own_command(project, session)?;
    command.args(["--color", "never", "resume", run.as_str()]);
    command.arg("--hold-changes");
    for role in restart {
        command.args(["--restart", role]);
    }
    let log = run_dir::open_log(&state_dir(session.store), run, RESUME_LOG);
    let (stdout, stderr) = match log.and_then(|file| Ok((file.try_clone()?, file))) {
        Ok((stdout, stderr)) => (Stdio::from(stdout), Stdio::from(stderr)),
        // The run continues anyway, and its events record what it does.
        Err(_) => (Stdio::null(), Stdio::null()),
    };
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    command.spawn()
}

/// Returns the log file for the output of a run resumed in the background.
pub(crate) fn resume_log_path(run: &RunId, session: &CommandContext<'_>) -> PathBuf {
    run_dir::run_files_dir(&state_dir(session.store), run).join(RESUME_LOG)
}

/// Process of a preview that somebody waits for, and who may stop waiting.
#[derive(Debug, Default)]
pub(crate) struct PreviewProcess(Mutex<PreviewProcessState>);

#[derive(Debug, Default, Clone, Copy)]
enum PreviewProcessState {
    #[default]
    NotStarted,
    Running(Pid),
    /// Ended, or canceled before it was started.
    Over,
}

impl PreviewProcess {
    /// Previews the command of a pending repair and returns the output: a report as JSON.
    pub(crate) fn run(
        &self,
        id: &str,
        project: &Path,
        network: bool,
        session: &CommandContext<'_>,
    ) -> io::Result<Output> {
        let mut command = own_command(project, session)?;
        command
            .args(["--color", "never", "preview", id, "--drop", "--json"])
            .args(network.then_some("--network"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = {
            let mut state = self.state();
            if matches!(*state, PreviewProcessState::Over) {
                return Err(io::Error::other("the preview was canceled"));
            }
            let child = command.spawn()?;
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            *state = pid.map_or(PreviewProcessState::Over, PreviewProcessState::Running);
            child
        };
        let mut error_output = child.stderr.take();
        let reading = std::thread::spawn(move || read_all(&mut error_output));
        let stdout = read_all(&mut child.stdout);
        let stderr = reading.join().unwrap_or_default();
        // Both outputs have ended, so the process has too, or is about to. Nobody signals it after it was waited for.
        let mut state = self.state();
        let status = child.wait()?;
        *state = PreviewProcessState::Over;
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }

    /// Ends the process if it still runs; it cleans up after itself.
    pub(crate) fn cancel(&self) {
        let mut state = self.state();
        if let PreviewProcessState::Running(pid) = *state {
            // Fails only if it has already ended.
            let _ = kill_process(pid, Signal::TERM);
        } else {
            *state = PreviewProcessState::Over;
        }
    }

    fn state(&self) -> MutexGuard<'_, PreviewProcessState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a stream to its end, as far as possible.
fn read_all(stream: &mut Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // The part that was read before an error is kept.
        let _ = stream.read_to_end(&mut bytes);
    }
    bytes
}

/// Starts a preview of the command of a pending repair, with piped output.
pub(crate) fn spawn_preview(
    id: &str,
    project: &Path,
    network: bool,
    session: &CommandContext<'_>,
) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    let mut command = own_command(project, session)?;
    command
        .args(["preview", id, "--drop", "--color", "never"])
        .args(network.then_some("--network"))
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    Ok((command.spawn()?, reader))
}

/// Returns a command for this executable in a project, with the same store and configuration.
fn own_command(project: &Path, session: &CommandContext<'_>) -> io::Result<Command> {
    #[expect(
        clippy::disallowed_methods,
        reason = "starts unstuck itself, which supervises its own children"
    )]
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(DETACHED_ARG).current_dir(project);
    // The gateway token must not reach agents.
    command.env_remove("UNSTUCK_TOKEN");
    command
        .arg("--store")
        .arg(absolute_store_path(session.store)?);
    if let Some(config) = session.config {
        command.arg("--config").arg(std::path::absolute(config)?);
    }
    Ok(command)
}

/// Returns the store as an absolute path.
fn absolute_store_path(store: &StoreLocation) -> io::Result<PathBuf> {
    std::path::absolute(store.path())
}

//! Processes of unstuck itself that an inbox or a dashboard starts: a run that goes on by itself, and a preview.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use unstuck_core::RunId;
use unstuck_run::run_dir;
use unstuck_store::StoreLocation;

use crate::command_context::CommandContext;
use crate::run_session::state_dir;

/// The file of what a resumed run says that nobody sits in front of.
const RESUME_LOG: &str = "resumed.log";

/// The first argument of a process that is to outlive the terminal it was started from.
const DETACHED_ARG: &str = "__detached";

/// Leaves the terminal if the arguments say so, and returns those that are left.
pub(crate) fn detach_if_asked(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|first| first == DETACHED_ARG) {
        arguments.remove(1);
        // It fails only for who has left already.
        let _ = rustix::process::setsid();
    }
    arguments
}

/// Lets a run go on in a process of its own.
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

/// Lets a run go on in a process of its own, whose words are kept in the folder of the run; gives the process.
///
/// Roles that are named are run again, with all that depend on them. What is given is kept until the process has ended.
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
        // How it went is told by its events.
        let _ = child.wait();
        drop(kept);
    });
    Ok(pid)
}

/// Resumes a run in a process of its own that outlives this one; its output is kept in the folder of the run.
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
        // It goes on all the same, and its events tell what it does.
        Err(_) => (Stdio::null(), Stdio::null()),
    };
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    command.spawn()
}

/// Where the output of a resumed run is that nobody sits in front of.
pub(crate) fn resume_log_path(run: &RunId, session: &CommandContext<'_>) -> PathBuf {
    run_dir::run_files_dir(&state_dir(session.store), run).join(RESUME_LOG)
}

/// Tries out what a repair that waits would change, and gives all that the process wrote: a report as JSON.
pub(crate) fn run_preview_json(
    id: &str,
    project: &Path,
    network: bool,
    session: &CommandContext<'_>,
) -> io::Result<Output> {
    let mut command = own_command(project, session)?;
    command
        .args(["--color", "never", "preview", id, "--drop", "--json"])
        .args(network.then_some("--network"))
        .stdin(Stdio::null());
    command.output()
}

/// Shows what a repair that waits would change; what is written there is all that the process says.
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

/// This very program in a project, with the same store and configuration.
fn own_command(project: &Path, session: &CommandContext<'_>) -> io::Result<Command> {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is unstuck itself, and supervises what it starts"
    )]
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(DETACHED_ARG).current_dir(project);
    // What opens a gateway is nothing for agents.
    command.env_remove("UNSTUCK_TOKEN");
    command
        .arg("--store")
        .arg(absolute_store_path(session.store)?);
    if let Some(config) = session.config {
        command.arg("--config").arg(std::path::absolute(config)?);
    }
    Ok(command)
}

/// The store by a name that holds in every folder.
fn absolute_store_path(store: &StoreLocation) -> io::Result<PathBuf> {
    std::path::absolute(store.path())
}

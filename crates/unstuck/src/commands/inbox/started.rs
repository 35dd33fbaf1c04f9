//! Processes of unstuck itself that an inbox starts: a run that goes on by itself, and a preview.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use unstuck_core::RunId;
use unstuck_store::Location;

use crate::session::Session;

/// The first argument of a process that is to outlive the terminal it was started from.
const DETACHED: &str = "__detached";

/// Leaves the terminal if the arguments say so, and returns those that are left.
pub(crate) fn detached(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|first| first == DETACHED) {
        arguments.remove(1);
        // It fails only for who has left already.
        let _ = rustix::process::setsid();
    }
    arguments
}

/// Lets a run go on in a process of its own.
pub(super) fn resume(run: &RunId, project: &Path, session: &Session<'_>) -> io::Result<Child> {
    let mut command = own(project, session)?;
    command
        .args(["resume", run.as_str(), "--quiet"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn()
}

/// Shows what a repair that waits would change; what is written there is all that the process says.
pub(super) fn preview(
    id: &str,
    project: &Path,
    session: &Session<'_>,
) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    let mut command = own(project, session)?;
    command
        .args(["preview", id, "--drop", "--color", "never"])
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    Ok((command.spawn()?, reader))
}

/// This very program in a project, with the same store and configuration.
fn own(project: &Path, session: &Session<'_>) -> io::Result<Command> {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is unstuck itself, and supervises what it starts"
    )]
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(DETACHED).current_dir(project);
    command.arg("--store").arg(place(session.store)?);
    if let Some(config) = session.config {
        command.arg("--config").arg(std::path::absolute(config)?);
    }
    Ok(command)
}

/// The store by a name that holds in every folder.
fn place(store: &Location) -> io::Result<PathBuf> {
    std::path::absolute(store.path())
}

//! Starts a child. This and the start of the reaper itself are the only places that start processes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::os_processes::ChildExitStatus;

use super::wire::{ChildStartRequest, ProcessGroupSetup};

/// Starts the requested child and returns its process id.
pub(super) fn spawn_child(
    order: &ChildStartRequest,
    streams: Vec<OwnedFd>,
) -> Result<u32, ChildExitStatus> {
    let Ok([stdin, stdout, stderr]) = <[OwnedFd; 3]>::try_from(streams) else {
        return Err(ChildExitStatus::CannotStart(
            "expected three streams".into(),
        ));
    };
    let program = OsString::from(order.program.clone());
    let folder = order.folder.clone().map(PathBuf::from);
    let mut command = new_command(&program);
    if let Some(name) = &order.arg0 {
        command.arg0(OsString::from(name.clone()));
    }
    command.args(order.arguments.iter().cloned().map(OsString::from));
    if !order.inherits_env {
        command.env_clear();
    }
    for name in &order.env_remove {
        command.env_remove(OsString::from(name.clone()));
    }
    for (name, value) in &order.env {
        command.env(OsString::from(name.clone()), OsString::from(value.clone()));
    }
    if let Some(folder) = &folder {
        command.current_dir(folder);
    }
    match order.leadership {
        ProcessGroupSetup::Reaper | ProcessGroupSetup::ReaperJoining => {
            command.process_group(0);
        }
        ProcessGroupSetup::Child => {}
    }
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    match command.spawn() {
        Ok(child) => Ok(child.id()),
        Err(error) => Err(spawn_error_status(&program, folder.as_deref(), &error)),
    }
}

/// Creates a command; the only place in this module that does.
pub(super) fn new_command(program: &OsStr) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only function that starts supervised processes"
    )]
    Command::new(program)
}

/// Converts the error of a start to a status, as a shell would.
pub(super) fn spawn_error_status(
    program: &OsStr,
    folder: Option<&Path>,
    error: &io::Error,
) -> ChildExitStatus {
    let name = program.display();
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return ChildExitStatus::CannotStart(format!(
            "cannot enter the working directory {}",
            folder.display()
        ));
    }
    let is_path = program.as_encoded_bytes().contains(&b'/');
    match error.kind() {
        io::ErrorKind::NotFound if is_path && Path::new(program).exists() => {
            ChildExitStatus::CannotStart(format!("{name}: interpreter not found"))
        }
        io::ErrorKind::NotFound => ChildExitStatus::NotFound(format!("{name}: no such program")),
        io::ErrorKind::PermissionDenied => {
            ChildExitStatus::NotExecutable(format!("{name}: not executable"))
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            ChildExitStatus::NotExecutable(format!("{name}: not a program for this system"))
        }
        _ => ChildExitStatus::CannotStart(format!("{name}: {error}")),
    }
}

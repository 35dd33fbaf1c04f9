//! Runs a program behind a pseudo-terminal: creates a session, opens the terminal as all three streams, and executes
//! the program in place of this process.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::os_processes::ChildExitStatus;

use super::spawn_child;

/// Runs `<terminal> <name> <program> <arguments…>`, where the program is run under the name; it only returns if that fails.
///
/// A failure is reported on standard output; it is closed without a report when the program runs.
pub(super) fn main(mut arguments: impl Iterator<Item = OsString>) -> i32 {
    let (terminal, name, program) = (arguments.next(), arguments.next(), arguments.next());
    let (Some(terminal), Some(name), Some(program)) = (terminal, name, program) else {
        return 2;
    };
    let Ok(report) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3) else {
        return 2;
    };
    let status = match attach_terminal(Path::new(&terminal)) {
        Ok(()) => {
            let mut command = spawn_child::new_command(&program);
            let error = command.arg0(name).args(arguments).exec();
            spawn_child::spawn_error_status(&program, None, &error)
        }
        Err(error) => ChildExitStatus::CannotStart(format!("cannot attach the terminal: {error}")),
    };
    report_failure(report, &status);
    status.code()
}

fn attach_terminal(terminal: &Path) -> io::Result<()> {
    rustix::process::setsid()?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
    let terminal = rustix::fs::open(terminal, flags, Mode::empty())?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stdout(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    Ok(())
}

/// Reports a failure; an error is ignored because the receiver is gone then.
fn report_failure(report: OwnedFd, status: &ChildExitStatus) {
    let _ = serde_json::to_writer(std::fs::File::from(report), status);
}

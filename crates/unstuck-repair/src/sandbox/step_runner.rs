//! Runs the steps of a repair in sequence, as the parent of everything they leave behind.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::signals::SignalWakeup;
use super::wire::{CommandExit, SandboxCommand};

/// The exit code for a command that cannot be started, as in a shell.
const EXIT_NOT_FOUND: i32 = 127;
const EXIT_NOT_EXECUTABLE: i32 = 126;

/// The directories private to a command.
#[derive(Debug)]
pub(super) struct PrivateDirs {
    /// Temporary directory.
    pub(super) temporary: PathBuf,
    /// A home, if the user has no usable one.
    pub(super) home: Option<PathBuf>,
    /// Search path, if it differs from the environment's.
    pub(super) search: Option<&'static str>,
}

/// Runs the steps until one fails, and records the process groups they started. A termination request is passed on to
/// the running step, and no other step is started.
pub(super) fn run_steps(
    steps: &SandboxCommand,
    programs: &[PathBuf],
    private: &PrivateDirs,
    wakes: &mut SignalWakeup,
    groups: &mut Vec<Pid>,
) -> io::Result<CommandExit> {
    let shell;
    let commands: Vec<&[String]> = match steps {
        SandboxCommand::Argv(commands) => commands.iter().map(Vec::as_slice).collect(),
        SandboxCommand::Shell(line) => {
            shell = ["sh".to_owned(), "-c".to_owned(), line.clone()];
            vec![&shell]
        }
    };
    for (words, program) in commands.into_iter().zip(programs) {
        if wakes.was_end_requested() {
            // Even if the previous step succeeded, the remaining steps did not run.
            return Ok(CommandExit::Signaled(Signal::TERM.as_raw()));
        }
        let end = match spawn_step(program, words, private) {
            Ok(pid) => {
                groups.push(pid);
                wait_for_command(pid, wakes)?
            }
            Err(error) => report_spawn_error(program, &error),
        };
        if end != CommandExit::Exited(0) {
            return Ok(end);
        }
    }
    Ok(CommandExit::Exited(0))
}

fn spawn_step(program: &Path, words: &[String], private: &PrivateDirs) -> io::Result<Pid> {
    #[expect(clippy::disallowed_methods, reason = "starts the commands of repairs")]
    let mut command = Command::new(program);
    if let Some((name, arguments)) = words.split_first() {
        command.arg0(name).args(arguments);
    }
    command.env("TMPDIR", &private.temporary);
    if let Some(home) = &private.home {
        command.env("HOME", home);
    }
    if let Some(search) = private.search {
        command.env("PATH", search);
    }
    let child = command.stdin(Stdio::null()).process_group(0).spawn()?;
    Ok(Pid::from_child(&child))
}

/// Writes the error to standard error, as a shell would.
fn report_spawn_error(program: &Path, error: &io::Error) -> CommandExit {
    let is_absent = error.kind() == io::ErrorKind::NotFound;
    let why = if is_absent {
        "no such program".to_owned()
    } else {
        error.to_string()
    };
    let line = format!("unstuck: {}: {why}\n", program.display());
    // If nobody reads standard error, the exit code has to be enough.
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    CommandExit::Exited(if is_absent {
        EXIT_NOT_FOUND
    } else {
        EXIT_NOT_EXECUTABLE
    })
}

/// Waits for a command, and reaps orphans meanwhile.
fn wait_for_command(command: Pid, wakes: &mut SignalWakeup) -> io::Result<CommandExit> {
    loop {
        wakes.drain();
        while let Some((pid, status)) = next_exited_child()? {
            if let Some(end) = (pid == command).then(|| command_exit(status)).flatten() {
                return Ok(end);
            }
        }
        if wakes.take_end_request() {
            // The process may have just ended.
            let _ = rustix::process::kill_process_group(command, Signal::TERM);
            let _ = rustix::process::kill_process_group(command, Signal::CONT);
        }
        let mut events = [PollFd::new(wakes.stream(), PollFlags::IN)];
        // Interrupted by a signal: treated as a wake-up.
        let _ = rustix::event::poll(&mut events, None);
    }
}

fn next_exited_child() -> io::Result<Option<(Pid, WaitStatus)>> {
    match rustix::process::wait(WaitOptions::NOHANG) {
        Err(rustix::io::Errno::CHILD) => Ok(None),
        other => Ok(rustix::io::retry_on_intr(|| other)?),
    }
}

fn command_exit(status: WaitStatus) -> Option<CommandExit> {
    let signal = status.terminating_signal().map(CommandExit::Signaled);
    status.exit_status().map(CommandExit::Exited).or(signal)
}

//! The reaper: a small process between unstuck and the children, which leaves no process behind.
//!
//! It is started once, starts the requested children, and inherits every process that they leave behind, even detached
//! ones (on Linux; elsewhere it searches for them). When a child has ended, or when unstuck is gone, it ends them all.
//! It has one thread and sleeps until an event.

pub(crate) mod cgroup;
mod event_loop;
mod kill_tree;
mod pty_launcher;
mod reaper_signals;
mod spawn_child;
mod stray_processes;
mod supervised_child;
mod supervisor_socket;
pub(crate) mod wire;

use std::ffi::OsString;
use std::io;

use event_loop::ReaperLoop;
use reaper_signals::ReaperSignals;
use supervisor_socket::SupervisorSocket;

/// The argument that runs the program as the reaper.
pub const REAPER_ARG: &str = "__reaper";
/// The argument that runs the program as the launcher of another one behind a pseudo-terminal.
pub const TTY_ARG: &str = "__tty";

/// Runs the reaper or the terminal launcher if the program was started as one of them, and returns its exit code.
pub fn run_if_called(arguments: &[OsString]) -> Option<u8> {
    let mode = arguments.get(1)?;
    let ours = mode == REAPER_ARG || mode == TTY_ARG;
    ours.then(|| u8::try_from(main(arguments.iter().skip(1).cloned())).unwrap_or(1))
}

/// Runs `unstuck __reaper` or `unstuck __tty` with the arguments after the program's name, and returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let mut arguments = arguments.into_iter();
    match arguments.next() {
        Some(mode) if mode == REAPER_ARG => i32::from(run_reaper().is_err()),
        Some(mode) if mode == TTY_ARG => pty_launcher::main(arguments),
        _ => 2,
    }
}

fn run_reaper() -> io::Result<()> {
    let socket = SupervisorSocket::from_stdin()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let wakes = ReaperSignals::install()?;
    ReaperLoop::new(socket, wakes).run();
    Ok(())
}

//! The reaper: a small process between unstuck and the children, which leaves nothing of them behind.
//!
//! It is started once, starts the children that it is asked to start, and inherits every process that they leave
//! behind, however these detach themselves (on Linux; elsewhere it looks for them). When a child has ended, or when unstuck is gone, it ends them all. It has
//! one thread and sleeps until something happens.

pub(crate) mod cgroup;
mod child;
mod serve;
mod signals;
mod socket;
mod start;
mod strays;
mod sweep;
mod tty;
pub(crate) mod wire;

use std::ffi::OsString;
use std::io;

use serve::Reaper;
use signals::Wakes;
use socket::Socket;

/// The argument that makes the program a reaper.
pub const REAPER: &str = "__reaper";
/// The argument that makes the program put another one behind a pseudo-terminal.
pub const TTY: &str = "__tty";

/// Does the work of the reaper or of the terminal if the program was started as one of them, and returns its exit code.
pub fn called(arguments: &[OsString]) -> Option<u8> {
    let mode = arguments.get(1)?;
    let ours = mode == REAPER || mode == TTY;
    ours.then(|| u8::try_from(main(arguments.iter().skip(1).cloned())).unwrap_or(1))
}

/// Is the whole of `unstuck __reaper` and `unstuck __tty`; takes the arguments after the program's name and returns
/// the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let mut arguments = arguments.into_iter();
    match arguments.next() {
        Some(mode) if mode == REAPER => i32::from(reap().is_err()),
        Some(mode) if mode == TTY => tty::main(arguments),
        _ => 2,
    }
}

fn reap() -> io::Result<()> {
    let socket = Socket::from_stdin()?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let wakes = Wakes::listen()?;
    Reaper::new(socket, wakes).serve();
    Ok(())
}

//! The socket of the sandbox processes to their parent, and the end of their life with it.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;

/// Takes the socket from standard input, which is empty afterwards.
pub(super) fn from_stdin() -> io::Result<UnixStream> {
    let link = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(UnixStream::from(link))
}

/// Requests this signal for when the parent ends; fails if the other end is already closed.
pub(super) fn die_with_parent(link: &UnixStream, signal: Signal) -> io::Result<()> {
    // Other systems do not report the death of a parent.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(signal))?;
    #[cfg(not(target_os = "linux"))]
    let _ = signal;
    // Linux sends the signal by itself, other systems do not.
    let mut events = [PollFd::new(link, PollFlags::HUP)];
    rustix::event::poll(&mut events, Some(&Timespec::default()))?;
    if events[0].revents().contains(PollFlags::HUP) {
        Err(io::ErrorKind::BrokenPipe.into())
    } else {
        Ok(())
    }
}

/// Returns the path of the running program; on Linux it works even if its file was replaced meanwhile.
pub fn own_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/proc/self/exe");
    }
    std::env::current_exe().unwrap_or_default()
}

/// Returns the search path: our own environment is the command's.
pub(super) fn own_search_path() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "this process was given the environment of the command"
    )]
    std::env::var("PATH").unwrap_or_default()
}

//! Reads the process table from `ps`, where there is no `/proc`; it is empty if there is no `ps` either.

use std::process::{Command, Stdio};

use nix::unistd::Pid;

use super::entry::ProcessEntry;
use super::ps_line::parse;

/// A path, so that no folder on the `PATH` can put another one in its place.
const PS_PROGRAM: &str = "/bin/ps";
/// Without headings. The session is not among them: some systems print an address, or nothing but zeros.
const PS_COLUMNS: &str = "pid=,ppid=,pgid=,state=,lstart=";

/// Returns the entry of a process, if it exists.
pub(crate) fn find_process(pid: u32) -> Option<ProcessEntry> {
    list_processes(&["-p", &pid.to_string(), "-o", PS_COLUMNS]).pop()
}

/// Returns all processes.
pub(crate) fn all_processes() -> Vec<ProcessEntry> {
    list_processes(&["-axo", PS_COLUMNS])
}

/// Returns no processes: `ps` does not show environments reliably.
pub(crate) fn processes_with_variable(_assignment: &[u8]) -> Vec<ProcessEntry> {
    Vec::new()
}

/// Returns no names: `ps` does not show environments reliably.
pub(crate) fn environment_names(_pid: u32) -> Vec<Vec<u8>> {
    Vec::new()
}

/// Returns true if this is the first argument of a process. Any other argument matches, too, since a path may have
/// spaces.
pub(crate) fn has_first_argument(pid: u32, argument: &str) -> bool {
    let (line, _) = run_ps(&["-ww", "-p", &pid.to_string(), "-o", "args="]).unwrap_or_default();
    line.split_ascii_whitespace()
        .skip(1)
        .any(|word| word == argument)
}

/// Runs `ps` and parses its output, without the entry of `ps` itself.
fn list_processes(arguments: &[&str]) -> Vec<ProcessEntry> {
    let (text, asked) = run_ps(arguments).unwrap_or_default();
    text.lines()
        .filter_map(|line| parse(line, session_id))
        .filter(|entry| entry.pid != asked)
        .collect()
}

/// Runs `ps` and returns its output and its process id.
fn run_ps(arguments: &[&str]) -> Option<(String, u32)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this platform has no other process table API"
    )]
    let mut command = Command::new(PS_PROGRAM);
    // Names of months and the hour depend on these; the start of a process must not.
    command.env("LC_ALL", "C").env("TZ", "UTC0");
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().ok()?;
    let pid = child.id();
    let output = child.wait_with_output().ok()?;
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), pid))
}

/// The session that `ps` reports for some system processes; no user process has it.
fn session_id(pid: u32) -> Option<u32> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?);
    let session = nix::unistd::getsid(Some(pid)).ok()?;
    u32::try_from(session.as_raw()).ok()
}

//! Reads the process table from `ps`, if there is no `/proc`. Without `ps` it is empty.

use std::process::{Command, Stdio};

use nix::unistd::Pid;

use super::entry::Entry;
use super::ps_line::parse;

/// An absolute path, so that no directory on the `PATH` can replace it.
const PROGRAM: &str = "/bin/ps";
/// Columns without headings. The session is not among them: some systems print an address or zeros.
const COLUMNS: &str = "pid=,ppid=,pgid=,state=,lstart=";

/// Returns the entry of a process, if it exists.
pub(crate) fn entry(pid: u32) -> Option<Entry> {
    entries(&["-p", &pid.to_string(), "-o", COLUMNS]).pop()
}

/// Returns all processes.
pub(crate) fn all() -> Vec<Entry> {
    entries(&["-axo", COLUMNS])
}

/// Returns no process: the initial environment is not reported reliably.
pub(crate) fn with_variable(_assignment: &[u8]) -> Vec<Entry> {
    Vec::new()
}

/// Returns no names: the initial environment is not reported reliably.
pub(crate) fn variables(_pid: u32) -> Vec<Vec<u8>> {
    Vec::new()
}

/// Returns true if this is the first argument of a process. Any other argument matches, too, since a path may have
/// spaces.
pub(crate) fn has_first_argument(pid: u32, argument: &str) -> bool {
    let (line, _) = ask(&["-ww", "-p", &pid.to_string(), "-o", "args="]).unwrap_or_default();
    line.split_ascii_whitespace()
        .skip(1)
        .any(|word| word == argument)
}

/// Runs `ps` and parses its output, without the entry of `ps` itself.
fn entries(arguments: &[&str]) -> Vec<Entry> {
    let (text, asked) = ask(arguments).unwrap_or_default();
    text.lines()
        .filter_map(|line| parse(line, session))
        .filter(|entry| entry.pid != asked)
        .collect()
}

/// Runs `ps` and returns its output and its process id.
fn ask(arguments: &[&str]) -> Option<(String, u32)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "there is no other way to the table of processes here"
    )]
    let mut command = Command::new(PROGRAM);
    // Names of months and the hour depend on these; the start time of a process must not.
    command.env("LC_ALL", "C").env("TZ", "UTC0");
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().ok()?;
    let pid = child.id();
    let output = child.wait_with_output().ok()?;
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), pid))
}

/// Returns the session of a process; some system processes report zero, which is not a valid session.
fn session(pid: u32) -> Option<u32> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?);
    let session = nix::unistd::getsid(Some(pid)).ok()?;
    u32::try_from(session.as_raw()).ok()
}

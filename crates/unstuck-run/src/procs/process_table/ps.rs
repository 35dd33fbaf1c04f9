//! Asks `ps` for the table of processes, where there is no `/proc`. Where there is no `ps` either, it is empty.

use std::process::{Command, Stdio};

use nix::unistd::Pid;

use super::entry::Entry;
use super::ps_line::parse;

/// A path, so that no folder on the `PATH` can put another one in its place.
const PROGRAM: &str = "/bin/ps";
/// Without headings. The session is not among them: some systems print an address, or nothing but zeros.
const COLUMNS: &str = "pid=,ppid=,pgid=,state=,lstart=";

/// The line of one process, if there is such a process.
pub(crate) fn entry(pid: u32) -> Option<Entry> {
    entries(&["-p", &pid.to_string(), "-o", COLUMNS]).pop()
}

/// Every process that is in the table now.
pub(crate) fn all() -> Vec<Entry> {
    entries(&["-axo", COLUMNS])
}

/// Nobody: what a process was started with is not told reliably.
pub(crate) fn with_variable(_assignment: &[u8]) -> Vec<Entry> {
    Vec::new()
}

/// None: what a process was started with is not told reliably.
pub(crate) fn variables(_pid: u32) -> Vec<Vec<u8>> {
    Vec::new()
}

/// Whether this is the first argument of a process. Any other is taken for it, too, since a path may have spaces.
pub(crate) fn has_first_argument(pid: u32, argument: &str) -> bool {
    let (line, _) = ask(&["-ww", "-p", &pid.to_string(), "-o", "args="]).unwrap_or_default();
    line.split_ascii_whitespace()
        .skip(1)
        .any(|word| word == argument)
}

/// Whoever is asked is in the table as well, as a child of ours, and gone when we read it.
fn entries(arguments: &[&str]) -> Vec<Entry> {
    let (text, asked) = ask(arguments).unwrap_or_default();
    text.lines()
        .filter_map(|line| parse(line, session))
        .filter(|entry| entry.pid != asked)
        .collect()
}

/// What `ps` says, and its own number.
fn ask(arguments: &[&str]) -> Option<(String, u32)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "there is no other way to the table of processes here"
    )]
    let mut command = Command::new(PROGRAM);
    // Names of months and the hour depend on these; the start of a process must not.
    command.env("LC_ALL", "C").env("TZ", "UTC0");
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().ok()?;
    let pid = child.id();
    let output = child.wait_with_output().ok()?;
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), pid))
}

/// Nobody's session is zero, but that is what some processes of the system have.
fn session(pid: u32) -> Option<u32> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?);
    let session = nix::unistd::getsid(Some(pid)).ok()?;
    u32::try_from(session.as_raw()).ok()
}

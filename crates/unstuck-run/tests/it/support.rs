//! Support for all tests: a supervisor, a sink that records, and a wait for a condition.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;
use unstuck_run::process::{
    AttemptStopRequest, ChildSupervisor, OutputSink, ProcessError, ProcessResult, ProcessSpec,
    ReaperProgram, Stdin,
};

/// Returns the reaper that was built with these tests.
pub(crate) fn program() -> ReaperProgram {
    ReaperProgram {
        program: PathBuf::from(env!("CARGO_BIN_EXE_unstuck-reaper")),
    }
}

pub(crate) fn supervisor() -> ChildSupervisor {
    ChildSupervisor::start(&program()).unwrap()
}

/// A sink that records the output.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) pid: Option<u32>,
}

impl OutputSink for Memory {
    fn on_stdout(&mut self, bytes: &[u8]) {
        self.stdout.extend_from_slice(bytes);
    }

    fn on_stderr(&mut self, bytes: &[u8]) {
        self.stderr.extend_from_slice(bytes);
    }

    fn on_started(&mut self, pid: u32) {
        self.pid = Some(pid);
    }
}

/// Runs a command in its own supervisor with empty standard input.
pub(crate) async fn run(spec: &ProcessSpec) -> ProcessResult {
    run_with(spec, &mut Stdin::null()).await
}

pub(crate) async fn run_with(spec: &ProcessSpec, stdin: &mut Stdin) -> ProcessResult {
    let mut supervisor = supervisor();
    again(&mut supervisor, spec, stdin).await.unwrap()
}

/// Runs another command in a supervisor.
pub(crate) async fn again(
    supervisor: &mut ChildSupervisor,
    spec: &ProcessSpec,
    stdin: &mut Stdin,
) -> Result<ProcessResult, ProcessError> {
    let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
    supervisor
        .run(spec, stdin, &mut Memory::default(), stop)
        .await
}

/// Waits until a condition holds; fails after ten seconds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came true that {what}");
}

/// Returns the process id that a process wrote to a file, once it exists.
pub(crate) async fn pid_in(file: &Path) -> u32 {
    let read = || std::fs::read_to_string(file).ok()?.trim().parse().ok();
    eventually("the process wrote its number", || read().is_some()).await;
    read().unwrap()
}

pub(crate) fn is_alive(pid: u32) -> bool {
    unstuck_run::process::ProcessId::from_pid(pid).is_some_and(|process| process.is_alive())
}

/// Returns a line for `sh` that leaves a daemon behind: another session, no parent, ignoring SIGTERM and without our
/// variables. It writes its process id to the file; the line fails if it is not alive.
pub(crate) fn daemon(file: &Path) -> String {
    let file = file.display();
    format!(
        "setsid env -i PATH=\"$PATH\" sh -c 'trap \"\" TERM HUP; sh -c \"echo \\$\\$ > {file}.new; mv {file}.new {file}; \
         while :; do sleep 1; done\" >/dev/null 2>&1 &' & while ! test -e {file}; do sleep 0.01; done; kill -0 $(cat {file})"
    )
}

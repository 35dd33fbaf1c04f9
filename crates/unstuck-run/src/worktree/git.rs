//! The one place that runs git, so that nothing which a repository configures is run with it.

use std::ffi::OsString;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::WorktreeError;
use super::parent_death::die_with_parent;
use super::program::GitProgram;
use super::repository::GitFolder;

/// How long one call of git may take.
const LIMIT: Duration = Duration::from_secs(120);

/// How often it is looked whether git waits for something that will never come.
const LOOK: Duration = Duration::from_millis(500);

/// Configuration that takes the repository's say away. An agent may have written the repository's own.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.sparseCheckout=false",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=",
    "core.sshCommand=false",
    "credential.helper=",
    "core.quotePath=false",
    // Paths are recorded as they are, also those that other systems could not hold.
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.logAllRefUpdates=false",
    "index.sparse=false",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The environment of every call; all other `GIT_…` variables are taken away.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_PAGER", ""),
    ("LC_ALL", "C"),
];

/// One call of git.
pub(super) struct Call<'i> {
    command: Command,
    doing: &'static str,
    input: Input<'i>,
    /// What has to hold before it is made.
    guard: Option<&'i GitFolder>,
}

/// What writes the standard input of a call.
type Input<'i> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'i>;

/// What a call gave.
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl<'i> Call<'i> {
    /// A call in a folder, which does something that can be named in an error.
    pub(super) fn new(program: &GitProgram, folder: &Path, doing: &'static str) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "git is no child of an agent, and it is started only here"
        )]
        let mut command = Command::new(&program.path);
        let is_git = |name: &OsString| name.as_encoded_bytes().starts_with(b"GIT_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_git(name)) {
            command.env_remove(name);
        }
        command
            .current_dir(folder)
            .envs(ENVIRONMENT.iter().copied())
            .env("PATH", &program.search)
            .arg("--no-pager");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        // In a group of its own no Ctrl-C cuts it off halfway.
        command.process_group(0);
        die_with_parent(&mut command);
        Self {
            command,
            doing,
            input: Box::new(|_| Ok(())),
            guard: None,
        }
    }

    /// Makes the call only if nothing in the folder of the repository leads elsewhere.
    pub(super) fn guarded(mut self, folder: &'i GitFolder) -> Self {
        self.guard = Some(folder);
        self
    }

    pub(super) fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.command.args(args);
        self
    }

    pub(super) fn env(mut self, name: &str, value: &Path) -> Self {
        self.command.env(name, value);
        self
    }

    pub(super) fn input(self, input: Vec<u8>) -> Self {
        self.input_from(move |to| to.write_all(&input))
    }

    /// Has its standard input written bit by bit.
    pub(super) fn input_from(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'i,
    ) -> Self {
        self.input = Box::new(write);
        self
    }

    /// Runs it and gives what it wrote; an error if it fails.
    pub(super) fn output(self) -> Result<Vec<u8>, WorktreeError> {
        let doing = self.doing;
        let answer = self.answer()?;
        match answer.status.success() {
            true => Ok(answer.stdout),
            false => Err(WorktreeError::said(doing, &answer.stderr)),
        }
    }

    /// Runs it and gives the one line that it wrote.
    pub(super) fn line(self) -> Result<String, WorktreeError> {
        let output = self.output()?;
        Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
    }

    /// Runs it, whether it fails or not.
    pub(super) fn answer(mut self) -> Result<Answer, WorktreeError> {
        if let Some(folder) = self.guard {
            folder.verify()?;
        }
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let doing = self.doing;
        let child = self.command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if self.folder().is_dir() => WorktreeError::NoGit,
            _ => WorktreeError::system("start git in", &self.folder(), error),
        })?;
        let folder = self.folder();
        wait(child, self.input, LIMIT)
            .map_err(|error| WorktreeError::system("read what git writes in", &folder, error))?
            .ok_or(WorktreeError::TookTooLong { doing })
    }

    fn folder(&self) -> PathBuf {
        let folder = self.command.get_current_dir();
        folder.map(Path::to_owned).unwrap_or_default()
    }
}

/// Gives a child its input and waits for its end; none if that took too long, and the child was killed.
fn wait(mut child: Child, input: Input<'_>, limit: Duration) -> io::Result<Option<Answer>> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            // A child that does not read to the end says why on its standard error.
            stdin.map(|stdin| {
                let mut stdin = BufWriter::with_capacity(64 << 10, stdin);
                input(&mut stdin).and_then(|()| stdin.flush())
            })
        });
        let closing = done.clone();
        let stdout = scope.spawn(move || read(stdout, closing));
        let stderr = scope.spawn(move || read(stderr, done));
        let in_time = ends_in_time(&child, &is_done, limit);
        if !in_time {
            kill_process_group(Pid::from_child(&child), Signal::KILL)?;
        }
        let status = child.wait()?;
        let gone = || io::Error::other("a thread of ours ended");
        let stdout = stdout.join().map_err(|_| gone())??;
        let stderr = stderr.join().map_err(|_| gone())??;
        Ok(in_time.then_some(Answer {
            status,
            stdout,
            stderr,
        }))
    })
}

/// Waits for the end of a child; false if that takes too long, or will never come.
fn ends_in_time(child: &Child, is_done: &mpsc::Receiver<()>, limit: Duration) -> bool {
    let mut left = limit;
    let mut was_waiting = false;
    loop {
        let step = LOOK.min(left);
        if is_done.recv_timeout(step) == Err(RecvTimeoutError::Disconnected) {
            return true;
        }
        left -= step;
        let is_waiting = waits_for_fifo(child);
        if left.is_zero() || (is_waiting && was_waiting) {
            return false;
        }
        was_waiting = is_waiting;
    }
}

/// Whether a child waits until somebody opens the other end of a FIFO: one in the place of a file that git reads, such as a
/// `.gitignore`. False where the kernel does not tell.
fn waits_for_fifo(child: &Child) -> bool {
    let file = PathBuf::from(format!("/proc/{}/wchan", child.id()));
    let place = unstuck_files::read_named(&file, 1024);
    place.is_ok_and(|place| place == b"wait_for_partner")
}

/// Reads to the end; the sender is dropped only then.
fn read(from: Option<impl Read>, done: mpsc::Sender<()>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        from.read_to_end(&mut bytes)?;
    }
    drop(done);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a child that does not end")]
    fn sleeper() -> Child {
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::piped()).process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    #[test]
    fn a_git_that_does_not_end_is_ended() {
        let ended = wait(sleeper(), Box::new(|_| Ok(())), Duration::from_millis(20)).unwrap();
        assert!(ended.is_none());
    }
}

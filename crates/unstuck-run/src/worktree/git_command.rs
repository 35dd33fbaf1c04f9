//! The one place that runs git, so that nothing which a repository configures is run with it.

use std::ffi::OsString;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::Instant;

use super::error::WorktreeError;
use super::git_program::GitProgram;
use super::parent_death::die_with_parent;
use super::repository::GitDir;

/// How long one call of git may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// How often it is looked whether git waits for something that will never come.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// So much fits into every pipe before anybody reads.
const PIPE_BUF: usize = 4096;

/// How much is read from git at once: as much as a pipe usually holds.
const AT_ONCE: usize = 64 << 10;

/// Configuration that takes the repository's say away. An agent may have written the repository's own.
const GIT_CONFIG_OVERRIDES: &[&str] = &[
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
const GIT_ENVIRONMENT: &[(&str, &str)] = &[
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
pub(super) struct GitCommand<'i> {
    command: Command,
    operation: &'static str,
    input: Option<StdinWriter<'i>>,
    /// Whether it may open files of the work tree, of which one could be a FIFO.
    enters_work_tree: bool,
    /// What has to hold before it is made.
    verified_dir: Option<&'i GitDir>,
}

/// Writes the standard input of a call.
type WriteInput<'i> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'i>;

/// The standard input of a call.
enum StdinWriter<'i> {
    Bytes(Vec<u8>),
    Written(WriteInput<'i>),
}

/// What a call gave.
pub(super) struct GitOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl<'i> GitCommand<'i> {
    /// A call in a folder, which does something that can be named in an error.
    pub(super) fn new(program: &GitProgram, folder: &Path, operation: &'static str) -> Self {
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
            .envs(GIT_ENVIRONMENT.iter().copied())
            .env("PATH", &program.search_path)
            .arg("--no-pager");
        for setting in GIT_CONFIG_OVERRIDES {
            command.args(["-c", setting]);
        }
        // In a group of its own no Ctrl-C cuts it off halfway.
        command.process_group(0);
        Self {
            command,
            operation,
            input: None,
            enters_work_tree: true,
            verified_dir: None,
        }
    }

    /// Makes the call only if nothing in the folder of the repository leads elsewhere.
    pub(super) fn verifying(mut self, folder: &'i GitDir) -> Self {
        self.verified_dir = Some(folder);
        self
    }

    /// Declares that it opens no file of the work tree: it cannot wait there, and ends by itself as soon as its input does. So it
    /// needs no signal at the end of this process, which would take a fork of all its memory.
    pub(super) fn outside_of_work_tree(mut self) -> Self {
        self.enters_work_tree = false;
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

    pub(super) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = Some(StdinWriter::Bytes(input));
        self
    }

    /// Has its standard input written bit by bit.
    pub(super) fn input_from(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'i,
    ) -> Self {
        self.input = Some(StdinWriter::Written(Box::new(write)));
        self
    }

    /// Runs it and gives what it wrote; an error if it fails.
    pub(super) fn output(self) -> Result<Vec<u8>, WorktreeError> {
        let doing = self.operation;
        let answer = self.run()?;
        if answer.status.success() {
            Ok(answer.stdout)
        } else {
            Err(WorktreeError::from_git_stderr(doing, &answer.stderr))
        }
    }

    /// Runs it and gives the one line that it wrote.
    pub(super) fn line(self) -> Result<String, WorktreeError> {
        let output = self.output()?;
        Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
    }

    /// Runs it, whether it fails or not.
    pub(super) fn run(mut self) -> Result<GitOutput, WorktreeError> {
        if let Some(folder) = self.verified_dir {
            folder.verify()?;
        }
        if self.enters_work_tree {
            die_with_parent(&mut self.command);
        }
        self.command
            .stdin(match &self.input {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let doing = self.operation;
        let child = self.command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if self.folder().is_dir() => WorktreeError::GitNotFound,
            _ => WorktreeError::from_io_error("start git in", &self.folder(), error),
        })?;
        let folder = self.folder();
        wait_with_input(child, self.input, CALL_TIMEOUT)
            .map_err(|error| {
                WorktreeError::from_io_error("read what git writes in", &folder, error)
            })?
            .ok_or(WorktreeError::GitTimedOut { operation: doing })
    }

    fn folder(&self) -> PathBuf {
        let folder = self.command.get_current_dir();
        folder.map(Path::to_owned).unwrap_or_default()
    }
}

/// Gives a child its input and waits for its end; none if that took too long, and the child was killed.
fn wait_with_input(
    mut child: Child,
    input: Option<StdinWriter<'_>>,
    limit: Duration,
) -> io::Result<Option<GitOutput>> {
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        // A child that does not read to the end says why on its standard error.
        match (input, stdin) {
            (Some(StdinWriter::Bytes(bytes)), Some(mut stdin)) if bytes.len() <= PIPE_BUF => {
                let _ = stdin.write_all(&bytes);
            }
            (Some(StdinWriter::Bytes(bytes)), Some(mut stdin)) => {
                scope.spawn(move || stdin.write_all(&bytes));
            }
            (Some(StdinWriter::Written(write)), Some(stdin)) => {
                scope.spawn(move || {
                    let mut stdin = BufWriter::with_capacity(AT_ONCE, stdin);
                    write(&mut stdin).and_then(|()| stdin.flush())
                });
            }
            (None, _) | (_, None) => {}
        }
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let read = read_to_end(&mut child, &mut stdout, &mut stderr, limit);
        let in_time = matches!(read, Ok(true));
        if !in_time {
            kill_process_group(Pid::from_child(&child), Signal::KILL)?;
        }
        let status = child.wait()?;
        read?;
        Ok(in_time.then_some(GitOutput {
            status,
            stdout,
            stderr,
        }))
    })
}

/// Reads all that a child writes; false if that takes too long, or will never come to an end.
fn read_to_end(
    child: &mut Child,
    stdout: &mut Vec<u8>,
    stderr: &mut Vec<u8>,
    limit: Duration,
) -> io::Result<bool> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let look = Timespec::try_from(POLL_INTERVAL).map_err(io::Error::other)?;
    let start = Instant::now();
    let mut was_waiting = false;
    while out.is_some() || err.is_some() {
        let handles = [out.as_ref().map(AsFd::as_fd), err.as_ref().map(AsFd::as_fd)];
        let handles = handles.into_iter().flatten();
        let mut polled: Vec<_> = handles
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let ready = match poll(&mut polled, Some(&look)) {
            Err(Errno::INTR) => continue,
            ready => ready?,
        };
        if start.elapsed() >= limit {
            return Ok(false);
        }
        if ready == 0 {
            let is_waiting = waits_for_fifo(child);
            if is_waiting && was_waiting {
                return Ok(false);
            }
            was_waiting = is_waiting;
            continue;
        }
        was_waiting = false;
        let mut is_ready = polled.iter().map(|one| !one.revents().is_empty());
        let out_is_ready = out.is_some() && is_ready.next() == Some(true);
        let err_is_ready = err.is_some() && is_ready.next() == Some(true);
        if out_is_ready && read_some(&mut out, stdout)? == 0 {
            out = None;
        }
        if err_is_ready && read_some(&mut err, stderr)? == 0 {
            err = None;
        }
    }
    Ok(true)
}

/// Reads what is there, and tells how much that is.
fn read_some(from: &mut Option<impl Read>, to: &mut Vec<u8>) -> io::Result<usize> {
    let Some(from) = from else {
        return Ok(0);
    };
    let mut buffer = [0; AT_ONCE];
    let count = loop {
        match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    to.extend_from_slice(&buffer[..count]);
    Ok(count)
}

/// Whether a child waits until somebody opens the other end of a FIFO: one in the place of a file that git reads, such as a
/// `.gitignore`. False where the kernel does not tell.
fn waits_for_fifo(child: &Child) -> bool {
    let file = PathBuf::from(format!("/proc/{}/wchan", child.id()));
    let place = unstuck_files::read_named(&file, 1024);
    place.is_ok_and(|place| place == b"wait_for_partner")
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
        let ended = wait_with_input(sleeper(), None, Duration::from_millis(20)).unwrap();
        assert!(ended.is_none());
    }
}

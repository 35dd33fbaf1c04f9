//! Runs git, in a way that ignores the configuration of the repository. No other module runs git.

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
use unstuck_files::TrustedProgram;

use super::die_with_parent::die_with_parent;
use super::error::WorktreeError;
use super::repository::GitDir;

/// Timeout of one git command.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Interval at which a git command is checked for a wait that never ends.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Size that fits into every pipe without a reader.
const PIPE_BUF: usize = 4096;

/// Buffer size for the output of git: the usual capacity of a pipe.
const AT_ONCE: usize = 64 << 10;

/// Configuration that overrides the repository's own, which an agent may have written.
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
    // Paths are recorded unchanged, also those that other systems do not support.
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.logAllRefUpdates=false",
    "index.sparse=false",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The environment of every command; all other `GIT_…` variables are removed.
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

/// A git command.
pub(super) struct GitCommand<'i> {
    command: Command,
    operation: &'static str,
    input: Option<StdinWriter<'i>>,
    /// True if it may open files of the work tree, of which one could be a FIFO.
    enters_work_tree: bool,
    /// The directory that is verified before the command runs.
    verified_dir: Option<&'i GitDir>,
}

/// A function that writes the standard input of a command.
type WriteInput<'i> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'i>;

/// The standard input of a command.
enum StdinWriter<'i> {
    Bytes(Vec<u8>),
    Written(WriteInput<'i>),
}

/// The output of a command.
pub(super) struct GitOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl<'i> GitCommand<'i> {
    /// Returns a command in a directory; the operation is named in errors.
    pub(super) fn new(program: &TrustedProgram, folder: &Path, operation: &'static str) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the only function that starts git"
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
        // In a process group of its own, Ctrl-C does not interrupt it.
        command.process_group(0);
        Self {
            command,
            operation,
            input: None,
            enters_work_tree: true,
            verified_dir: None,
        }
    }

    /// Runs the command only if nothing in the repository's directory points elsewhere.
    pub(super) fn verifying(mut self, folder: &'i GitDir) -> Self {
        self.verified_dir = Some(folder);
        self
    }

    /// Declares that the command opens no file of the work tree: it cannot block there, and ends as soon as its input
    /// does. So it needs no signal at the end of this process, which would require a fork with all its memory.
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

    /// Writes the standard input piece by piece.
    pub(super) fn input_from(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'i,
    ) -> Self {
        self.input = Some(StdinWriter::Written(Box::new(write)));
        self
    }

    /// Runs the command and returns its output; an error if it fails.
    pub(super) fn output(self) -> Result<Vec<u8>, WorktreeError> {
        let doing = self.operation;
        let answer = self.run()?;
        if answer.status.success() {
            Ok(answer.stdout)
        } else {
            Err(WorktreeError::from_git_stderr(doing, &answer.stderr))
        }
    }

    /// Runs the command and returns the single line of its output.
    pub(super) fn line(self) -> Result<String, WorktreeError> {
        let output = self.output()?;
        Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
    }

    /// Runs the command and returns its result, even if it fails.
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
                WorktreeError::from_io_error("read the output of git in", &folder, error)
            })?
            .ok_or(WorktreeError::GitTimedOut { operation: doing })
    }

    fn folder(&self) -> PathBuf {
        let folder = self.command.get_current_dir();
        folder.map(Path::to_owned).unwrap_or_default()
    }
}

/// Writes a child's input and waits for its end; `None` if it timed out and was killed.
fn wait_with_input(
    mut child: Child,
    input: Option<StdinWriter<'_>>,
    limit: Duration,
) -> io::Result<Option<GitOutput>> {
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        // A child that does not read all of its input reports the reason on standard error.
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

/// Reads all output of a child; returns false if it times out or would block forever.
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

/// Reads available bytes and returns their number.
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

/// Returns true if a child blocks on opening a FIFO in place of a file that git reads, such as a `.gitignore`. False if
/// the kernel does not report it.
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
    fn hanging_git_is_killed() {
        let ended = wait_with_input(sleeper(), None, Duration::from_millis(20)).unwrap();
        assert!(ended.is_none());
    }
}

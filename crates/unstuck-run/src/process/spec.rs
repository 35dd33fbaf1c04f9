//! The specification of a process and its limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The way in which a child's streams are connected: by pipes or by a pseudo-terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamWiring {
    /// One pipe for each stream.
    #[default]
    Pipes,
    /// A pseudo-terminal for all three streams; all output is standard output.
    Pty,
}

/// The part of our environment that a child inherits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnvInheritance {
    /// All of it.
    #[default]
    All,
    /// None of it; only variables that are set for the child.
    Nothing,
}

/// The time limits of an attempt; by default none, with a grace period of 5 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessTimeouts {
    /// Limit of the whole attempt.
    pub timeout: Option<Duration>,
    /// Limit of the time without output on either stream.
    pub idle_timeout: Option<Duration>,
    /// Time between the termination request and the kill.
    pub grace: Duration,
}

impl Default for ProcessTimeouts {
    fn default() -> Self {
        Self {
            timeout: None,
            idle_timeout: None,
            grace: Duration::from_secs(5),
        }
    }
}

/// One command to run.
///
/// ```
/// use unstuck_run::process::ProcessSpec;
///
/// let spec = ProcessSpec::new("git").with_args(["status", "--short"]);
/// assert_eq!(spec.arguments.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessSpec {
    /// The program: a path, or a name to look up on the child's search path.
    pub program: OsString,
    /// The name under which it is run; by default the program itself.
    pub arg0: Option<OsString>,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The working directory; ours by default.
    pub folder: Option<PathBuf>,
    /// The inherited part of our environment.
    pub env_inheritance: EnvInheritance,
    /// Additional variables.
    pub env: Vec<(OsString, OsString)>,
    /// Variables of ours that are removed.
    pub env_remove: Vec<OsString>,
    /// The time limits.
    pub limits: ProcessTimeouts,
    /// The connection of its streams.
    pub wiring: StreamWiring,
    /// File for the exit status of a child that ends by itself, even if it is no longer supervised.
    pub exit_record: Option<PathBuf>,
}

impl ProcessSpec {
    /// Returns the spec of a program without arguments and limits.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            ..Self::default()
        }
    }

    /// Returns the spec of a command line for `sh`, which is not looked up: the search path may lead into the project.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self {
            arg0: Some("sh".into()),
            ..Self::new("/bin/sh")
        }
        .with_args([OsString::from("-c"), line.into()])
    }

    /// Adds arguments.
    #[must_use]
    pub fn with_args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }
}

/// A request from outside to stop an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttemptStopRequest {
    /// No request: the attempt continues.
    #[default]
    Continue,
    /// The attempt is asked to end and is killed after the grace period.
    Graceful(StopRequestUnixSignal),
    /// The attempt is killed.
    Kill(StopRequestUnixSignal),
}

impl AttemptStopRequest {
    /// Returns the cause of the first stop request; `None` if there was no request.
    pub fn cause(self) -> Option<StopRequestUnixSignal> {
        match self {
            Self::Continue => None,
            Self::Graceful(cause) | Self::Kill(cause) => Some(cause),
        }
    }

    /// Returns the request after one more: the first request is graceful, the second kills.
    #[must_use]
    pub fn escalate_stop(self, cause: StopRequestUnixSignal) -> Self {
        match self.cause() {
            None => Self::Graceful(cause),
            Some(first) => Self::Kill(first),
        }
    }
}

/// The signal that requested a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopRequestUnixSignal {
    /// SIGINT: the user pressed Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

//! What to run, and how far it may go.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How a child gets its output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamWiring {
    /// One pipe for each stream.
    #[default]
    Pipes,
    /// A pseudo-terminal for all three streams; everything it says is standard output.
    Pty,
}

/// What of our environment a child gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnvInheritance {
    /// All of it.
    #[default]
    All,
    /// None of it; only what is set for it.
    Nothing,
}

/// How long an attempt may take; nothing is limited by default, the grace is 5 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// The whole attempt.
    pub timeout: Option<Duration>,
    /// Without a byte on either stream.
    pub idle_timeout: Option<Duration>,
    /// Between the request to end and the kill.
    pub grace: Duration,
}

impl Default for ProcessLimits {
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
/// let spec = ProcessSpec::new("git").with(["status", "--short"]);
/// assert_eq!(spec.arguments.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessSpec {
    /// The program: a path, or a name to look up on the search path of the child.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The folder it runs in; ours by default.
    pub folder: Option<PathBuf>,
    /// What of our variables it gets.
    pub env_inheritance: EnvInheritance,
    /// Variables in addition to those.
    pub env: Vec<(OsString, OsString)>,
    /// Variables of ours that it does not get.
    pub env_remove: Vec<OsString>,
    /// How long it may take.
    pub limits: ProcessLimits,
    /// How its streams are connected.
    pub wiring: StreamWiring,
    /// Where the exit status is written when the child ends by itself, even if nobody supervises any more.
    pub exit_record: Option<PathBuf>,
}

impl ProcessSpec {
    /// A program without arguments and limits.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            ..Self::default()
        }
    }

    /// A line for `sh`.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self::new("sh").with_args([OsString::from("-c"), line.into()])
    }

    /// Adds arguments.
    #[must_use]
    pub fn with_args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }
}

/// Whether an attempt should go on, said from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StopRequest {
    /// It goes on.
    #[default]
    Continue,
    /// It is asked to end and killed after the grace.
    Graceful(StopCause),
    /// It is killed.
    Kill(StopCause),
}

impl StopRequest {
    /// The cause of the first request to stop; none if there was no request.
    pub fn cause(self) -> Option<StopCause> {
        match self {
            Self::Continue => None,
            Self::Graceful(cause) | Self::Kill(cause) => Some(cause),
        }
    }

    /// Returns what a further request makes of it: the first request is gentle, the second kills.
    #[must_use]
    pub fn escalate_stop(self, cause: StopCause) -> Self {
        match self.cause() {
            None => Self::Graceful(cause),
            Some(first) => Self::Kill(first),
        }
    }
}

/// The signal that asked for a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// SIGINT: a person pressed Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

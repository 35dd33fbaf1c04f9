//! Runs one child process at a time and leaves no process behind.
//!
//! A [`ChildSupervisor`] owns a small [reaper](crate::reaper) process that starts the children, so that their descendants
//! can be ended too: when the attempt ends, when it is stopped, and also when the supervising process itself is killed.
//! The output goes to an [`OutputSink`] at once; its beginning and end are kept in a [`ProcessResult`].
//!
//! ```no_run
//! use tokio::sync::watch;
//! use unstuck_run::process::{DiscardOutput, ProcessError, ReaperProgram, ProcessSpec, Stdin, AttemptStopRequest, ChildSupervisor};
//!
//! # async fn example() -> Result<(), ProcessError> {
//! let mut supervisor = ChildSupervisor::start(&ReaperProgram::own())?;
//! let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
//! let spec = ProcessSpec::new("echo").with_args(["hello"]);
//! let ended = supervisor.run(&spec, &mut Stdin::null(), &mut DiscardOutput, stop).await?;
//! assert_eq!(ended.stdout.text(), "hello\n");
//! # Ok(())
//! # }
//! ```

mod async_fd;
mod capture;
mod check_command;
mod child_attempt;
mod child_streams;
mod child_supervisor;
mod deadlines;
mod error;
mod killed_reaper_cleanup;
mod output_sink;
mod output_stream;
mod process_result;
mod pty;
mod reaper_connection;
mod reaper_handle;
mod spec;
mod start_request;
mod stdin;
mod user_terminal;

pub use crate::os_processes::{ChildExitStatus, IgnoredSignals, ProcessId};
pub use capture::{CapturedOutput, MAX_HEAD_BYTES, MAX_TAIL_BYTES};
pub use check_command::{CheckResult, CheckShellCommand, run_check};
pub use child_supervisor::{ChildSignalSender, ChildSupervisor, ReaperProgram};
pub use error::ProcessError;
pub(crate) use killed_reaper_cleanup::REAPER_COOKIE;
pub use output_sink::{DiscardOutput, OutputSink};
pub use process_result::{ProcessResult, ReachedTimeLimit};
pub use spec::{
    AttemptStopRequest, EnvInheritance, ProcessSpec, ProcessTimeouts, StopRequestUnixSignal,
    StreamWiring,
};
pub(crate) use stdin::EnterKey;
pub use stdin::{KnownStdinContents, Stdin};

//! Runs one child process at a time and leaves nothing of it behind.
//!
//! A [`Supervisor`] owns a small [reaper](crate::reaper) process that starts the children, so that whatever they start
//! in turn can be ended too: when the attempt ends, when it is stopped, and also when the supervising process itself is
//! killed. The output goes to a [`Sink`] at once; its beginning and end are kept in an [`Ended`].
//!
//! ```no_run
//! use tokio::sync::watch;
//! use unstuck_run::process::{Discard, ProcessError, ReaperProgram, Spec, Stdin, Stop, Supervisor};
//!
//! # async fn example() -> Result<(), ProcessError> {
//! let mut supervisor = Supervisor::start(&ReaperProgram::own())?;
//! let (_keep, stop) = watch::channel(Stop::No);
//! let spec = Spec::new("echo").with(["hello"]);
//! let ended = supervisor.run(&spec, &mut Stdin::null(), &mut Discard, stop).await?;
//! assert_eq!(ended.stdout.text(), "hello\n");
//! # Ok(())
//! # }
//! ```

mod attempt;
mod captured;
mod channel;
mod check;
mod deadlines;
mod ended;
mod error;
mod link;
mod order;
mod orphans;
mod outlet;
mod pty;
mod reaper_handle;
mod sink;
mod spec;
mod stdin;
mod streams;
mod supervisor;
mod terminal;

pub use crate::host::{IgnoredSignals, ProcessId, Status};
pub use captured::{Captured, HEAD, TAIL};
pub use check::{Check, CheckResult, check};
pub use ended::{Ended, Limit};
pub use error::ProcessError;
pub(crate) use orphans::COOKIE;
pub use sink::{Discard, Sink};
pub use spec::{Inherits, Limits, Spec, Stop, StopCause, Wiring};
pub use stdin::{Recorded, Stdin};
pub use supervisor::{ReaperProgram, Remote, Supervisor};

//! Runs agents and commands, and acts on what fails.
//!
//! [`process`] runs one child and leaves nothing of it behind; [`drive`] runs a command until it did what it should,
//! a person is needed, or it is stopped; [`prompt`] fills what agents are told; [`expectations`] says what counts as success;
//! [`folder`] shows in the project how that stands.
//!
//! ```no_run
//! use tokio::sync::watch;
//! use unstuck_run::expectations::Expectations;
//! use unstuck_run::process::{DiscardOutput, ProcessError, ReaperProgram, ProcessSpec, Stdin, StopRequest, Supervisor};
//!
//! # async fn example() -> Result<(), ProcessError> {
//! // Whatever the command starts is ended with it, also if this process is killed meanwhile.
//! let mut supervisor = Supervisor::start(&ReaperProgram::own())?;
//! let (_stop, stopped) = watch::channel(StopRequest::Continue);
//! let spec = ProcessSpec::shell("echo '# Review'; echo fine");
//! let ended = supervisor.run(&spec, &mut Stdin::null(), &mut DiscardOutput, stopped).await?;
//!
//! let expected = Expectations { sections: vec!["# Review".into()], ..Expectations::default() };
//! assert!(ended.status.is_success() && expected.met_by(&ended.stdout.text()));
//! # Ok(())
//! # }
//! ```

pub mod blobs;
pub mod clock;
pub mod expectations;
mod local_zone;
pub mod nesting;
pub mod process;
mod procs;
pub mod prompt;
pub mod reaper;
pub mod repair;
pub mod run_dir;
pub mod runner;
pub mod worktree;

//! Runs agents and commands, and acts on what fails.
//!
//! [`process`] runs one child and leaves nothing of it behind; [`drive`] runs a command until it did what it should,
//! a person is needed, or it is stopped; [`prompt`] fills what agents are told; [`expect`] says what counts as success;
//! [`folder`] shows in the project how that stands.
//!
//! ```no_run
//! use tokio::sync::watch;
//! use unstuck_run::expect::Expectations;
//! use unstuck_run::process::{Discard, ProcessError, ReaperProgram, Spec, Stdin, Stop, Supervisor};
//!
//! # async fn example() -> Result<(), ProcessError> {
//! // Whatever the command starts is ended with it, also if this process is killed meanwhile.
//! let mut supervisor = Supervisor::start(&ReaperProgram::own())?;
//! let (_stop, stopped) = watch::channel(Stop::No);
//! let spec = Spec::shell("echo '# Review'; echo fine");
//! let ended = supervisor.run(&spec, &mut Stdin::null(), &mut Discard, stopped).await?;
//!
//! let expected = Expectations { sections: vec!["# Review".into()], ..Expectations::default() };
//! assert!(ended.status.is_success() && expected.met_by(&ended.stdout.text()));
//! # Ok(())
//! # }
//! ```

pub mod blobs;
pub mod clock;
pub mod drive;
pub mod expect;
pub mod folder;
mod host;
pub mod inside;
pub mod process;
pub mod prompt;
pub mod reaper;
pub mod repair;
pub mod worktree;
mod zone;

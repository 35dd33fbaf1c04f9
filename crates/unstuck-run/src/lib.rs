//! Runs agents and commands and recovers from their failures.
//!
//! [`process`] runs one child and leaves no process behind; [`runner`] runs a command until it succeeds, needs human
//! input, or is stopped; [`prompt`] renders prompts; [`answer_expectations`] checks the output; [`run_dir`] writes the state
//! of a run to the project directory.
//!
//! ```no_run
//! use tokio::sync::watch;
//! use unstuck_run::answer_expectations::AnswerExpectations;
//! use unstuck_run::process::{DiscardOutput, ProcessError, ReaperProgram, ProcessSpec, Stdin, AttemptStopRequest, ChildSupervisor};
//!
//! # async fn example() -> Result<(), ProcessError> {
//! // Every process that the command starts is ended with it, even if this process is killed meanwhile.
//! let mut supervisor = ChildSupervisor::start(&ReaperProgram::own())?;
//! let (_stop, stopped) = watch::channel(AttemptStopRequest::Continue);
//! let spec = ProcessSpec::shell("echo '# Review'; echo fine");
//! let ended = supervisor.run(&spec, &mut Stdin::null(), &mut DiscardOutput, stopped).await?;
//!
//! let expected = AnswerExpectations { sections: vec!["# Review".into()], ..AnswerExpectations::default() };
//! assert!(ended.status.is_success() && expected.is_met_by(&ended.stdout.text()));
//! # Ok(())
//! # }
//! ```

pub mod answer_expectations;
pub mod blobs;
pub mod clock;
mod local_zone;
pub mod nested_run_detection;
mod os_processes;
pub mod process;
pub mod prompt;
pub mod reaper;
pub mod repair_execution;
pub mod run_dir;
pub mod runner;
pub mod worktree;

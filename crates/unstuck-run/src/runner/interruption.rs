//! Why a run was stopped before its end, and the exit code that says so.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use unstuck_core::RunId;
use unstuck_core::event::InterruptionCause;

use super::reporter::SessionReporter;
use crate::process::{StopCause, StopRequest};

/// Why a run was stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interruption {
    pub(super) by: InterruptionCause,
    pub(super) reason: String,
    pub(super) exit_code: i32,
}

impl Interruption {
    /// Returns why a run stops: a signal, output that cannot be written, a reader that is gone, or Ctrl-C.
    pub(super) fn new(
        stop: StopRequest,
        reporter: &dyn SessionReporter,
        state: &Path,
        run: &RunId,
    ) -> Self {
        match (stop.cause(), reporter.lost_output()) {
            (Some(cause), _) => Self::by_signal(cause, state, run),
            (None, Some(error)) => Self::by_lost_output(error),
            (None, None) if !reporter.is_open() => Self {
                reason: "nobody read its output any more".to_owned(),
                ..Self::by_person()
            },
            (None, None) => Self::by_person(),
        }
    }

    /// Returns why a run stops that a signal asked to; somebody may have asked by name and only used the signal for it.
    pub(super) fn by_signal(cause: StopCause, state: &Path, run: &RunId) -> Self {
        match cause {
            StopCause::Interrupt => Self::by_person(),
            _ if is_stop_requested(state, run) => Self::by_person(),
            StopCause::Terminate => Self {
                by: InterruptionCause::Sigterm,
                reason: "terminated by SIGTERM".to_owned(),
                exit_code: 143,
            },
            StopCause::HangUp => Self {
                by: InterruptionCause::Sighup,
                reason: "terminated by SIGHUP".to_owned(),
                exit_code: 129,
            },
        }
    }

    /// Returns that output could not be written.
    pub(super) fn by_lost_output(reason: String) -> Self {
        Self {
            by: InterruptionCause::Output,
            reason,
            exit_code: 1,
        }
    }

    fn by_person() -> Self {
        Self {
            by: InterruptionCause::Person,
            reason: "stopped by a person".to_owned(),
            exit_code: 130,
        }
    }
}

/// Notes that a person asks for the stop of a run, before the process that drives it gets a SIGTERM.
///
/// SIGINT would say the same, but is ignored by background jobs.
pub fn request_stop(state: &Path, run: &RunId) -> io::Result<()> {
    fs::create_dir_all(state)?;
    fs::write(stop_request_path(state, run), b"")
}

/// Removes the request to stop a run, if there is one.
pub fn clear_stop_request(state: &Path, run: &RunId) {
    // As a rule there is none.
    let _ = fs::remove_file(stop_request_path(state, run));
}

fn is_stop_requested(state: &Path, run: &RunId) -> bool {
    stop_request_path(state, run).exists()
}

fn stop_request_path(state: &Path, run: &RunId) -> PathBuf {
    state.join(format!("{run}.stop"))
}

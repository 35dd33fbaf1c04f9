//! The reason why a run was stopped early, and its exit code.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use unstuck_core::RunId;
use unstuck_core::event::InterruptionCause;

use super::reporter::SessionReporter;
use crate::process::{AttemptStopRequest, StopRequestUnixSignal};

/// The reason why a run was stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interruption {
    pub(super) by: InterruptionCause,
    pub(super) reason: String,
    pub(super) exit_code: i32,
}

impl Interruption {
    /// Returns the reason of a stop: a signal, output that cannot be written, a closed reader, or Ctrl-C.
    pub(super) fn new(
        stop: AttemptStopRequest,
        reporter: &dyn SessionReporter,
        state: &Path,
        run: &RunId,
    ) -> Self {
        match (stop.cause(), reporter.lost_output()) {
            (Some(cause), _) => Self::by_signal(cause, state, run),
            (None, Some(error)) => Self::by_lost_output(error),
            (None, None) if !reporter.is_open() => Self {
                reason: "output was closed (broken pipe)".to_owned(),
                ..Self::by_person()
            },
            (None, None) => Self::by_person(),
        }
    }

    /// Returns the reason of a stop by a signal; a stop request file means that a human asked for it by name.
    pub(super) fn by_signal(cause: StopRequestUnixSignal, state: &Path, run: &RunId) -> Self {
        match cause {
            StopRequestUnixSignal::Interrupt => Self::by_person(),
            _ if is_stop_requested(state, run) => Self::by_person(),
            StopRequestUnixSignal::Terminate => Self {
                by: InterruptionCause::Sigterm,
                reason: "terminated by SIGTERM".to_owned(),
                exit_code: 143,
            },
            StopRequestUnixSignal::HangUp => Self {
                by: InterruptionCause::Sighup,
                reason: "terminated by SIGHUP".to_owned(),
                exit_code: 129,
            },
        }
    }

    /// Returns the reason of a stop because output could not be written.
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
            reason: "stopped by the user".to_owned(),
            exit_code: 130,
        }
    }
}

/// Records that a human requests the stop of a run, before its supervising process gets a SIGTERM.
///
/// SIGINT would have the same meaning but is ignored by background jobs.
pub fn request_stop(state: &Path, run: &RunId) -> io::Result<()> {
    fs::create_dir_all(state)?;
    fs::write(stop_request_path(state, run), b"")
}

/// Removes the request to stop a run, if there is one.
pub fn clear_stop_request(state: &Path, run: &RunId) {
    // Usually there is none.
    let _ = fs::remove_file(stop_request_path(state, run));
}

fn is_stop_requested(state: &Path, run: &RunId) -> bool {
    stop_request_path(state, run).exists()
}

fn stop_request_path(state: &Path, run: &RunId) -> PathBuf {
    state.join(format!("{run}.stop"))
}

//! How errors are shown: what went wrong, where, and what to do next.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::output::{self, Color};

/// The exit code of errors that are our own: usage, configuration, files.
const OUR_ERROR: u8 = 2;
/// The exit code where what was asked for cannot be done: nothing to resume, no such run.
const REFUSED: u8 = 1;

/// An error with the next step for the person who reads it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Hinted {
    message: String,
    hint: String,
    code: u8,
    blame: Blame,
}

/// Why something was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Something is wrong: usage, configuration, files.
    Ours,
    /// It does not fit how things stand.
    Circumstances,
    /// Whoever asks may not.
    Asker,
}

/// An error that says what to do next.
pub(crate) fn hinted(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    with_code(message.into(), hint.into(), OUR_ERROR, Blame::Ours)
}

/// What was asked for cannot be done, and what to do next.
pub(crate) fn refused(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    with_code(message.into(), hint.into(), REFUSED, Blame::Circumstances)
}

/// Whoever asks may not, and what to do next.
pub(crate) fn forbidden(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    with_code(message.into(), hint.into(), REFUSED, Blame::Asker)
}

/// An error in one sentence with what to do next, and why it is one.
pub(crate) fn in_one_sentence(error: &anyhow::Error) -> (String, Blame) {
    let hinted = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Hinted>());
    match hinted {
        Some(hinted) => (format!("{error:#}; {}", hinted.hint), hinted.blame),
        None => (format!("{error:#}"), Blame::Ours),
    }
}

fn with_code(message: String, hint: String, code: u8, blame: Blame) -> anyhow::Error {
    anyhow::Error::new(Hinted {
        message,
        hint,
        code,
        blame,
    })
}

/// Whether whoever read our output has gone.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause
            .downcast_ref::<serde_json::Error>()
            .and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(io::ErrorKind::BrokenPipe)
    };
    error.chain().any(is_pipe)
}

/// Writes an error to standard error.
pub(crate) fn show(error: &anyhow::Error, color: Color) -> ExitCode {
    let mut to = anstream::AutoStream::new(io::stderr(), color.choice());
    let (red, bold) = (output::RED, output::BOLD);
    // Nothing can be done if not even this can be written.
    let _ = writeln!(to, "{red}error{red:#}: {error:#}");
    let hinted = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Hinted>());
    if let Some(hinted) = hinted {
        let _ = writeln!(to, "{bold}hint{bold:#}: {}", hinted.hint);
    }
    ExitCode::from(hinted.map_or(OUR_ERROR, |hinted| hinted.code))
}

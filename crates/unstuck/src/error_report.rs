//! Error output: what went wrong, where, and what to do next.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;
use unstuck_config::Config;
use unstuck_core::command_policy::sanitize;

use crate::output::{self, ColorMode, YELLOW};
use crate::redacted_stderr::{RedactedStderr, redacted};

/// Exit code of unstuck errors: usage, configuration, files.
const EXIT_ERROR: u8 = 2;
/// Longer words are truncated in the middle.
const MAX_WORD: usize = 400;
/// Exit code if the request cannot be fulfilled: nothing to resume, no such run.
const EXIT_REFUSED: u8 = 1;

/// An error with a hint.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct HintedError {
    message: String,
    hint: String,
    code: u8,
    class: ErrorClass,
}

/// Class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// Usage, configuration or file error.
    Internal,
    /// Conflict with the current state.
    Conflict,
    /// Not permitted.
    Forbidden,
}

/// Creates an error with a hint.
pub(crate) fn error_with_hint(
    message: impl Into<String>,
    hint: impl Into<String>,
) -> anyhow::Error {
    with_code(
        message.into(),
        hint.into(),
        EXIT_ERROR,
        ErrorClass::Internal,
    )
}

/// Creates an error for a request that conflicts with the current state, with a hint.
pub(crate) fn refusal(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    with_code(
        message.into(),
        hint.into(),
        EXIT_REFUSED,
        ErrorClass::Conflict,
    )
}

/// Creates an error for a request that is not permitted, with a hint.
pub(crate) fn forbidden(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    with_code(
        message.into(),
        hint.into(),
        EXIT_REFUSED,
        ErrorClass::Forbidden,
    )
}

/// Returns an error in one sentence with its hint, and its class.
pub(crate) fn summarize(error: &anyhow::Error) -> (String, ErrorClass) {
    let hinted = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<HintedError>());
    match hinted {
        Some(hinted) => (format!("{error:#}; {}", hinted.hint), hinted.class),
        None => (format!("{error:#}"), ErrorClass::Internal),
    }
}

fn with_code(message: String, hint: String, code: u8, blame: ErrorClass) -> anyhow::Error {
    anyhow::Error::new(HintedError {
        message,
        hint,
        code,
        class: blame,
    })
}

/// True if the reader of our output is gone (broken pipe).
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

/// An error in JSON form.
#[derive(Debug, Serialize)]
struct JsonError<'a> {
    error: JsonErrorBody<'a>,
}

#[derive(Debug, Serialize)]
struct JsonErrorBody<'a> {
    message: String,
    hint: Option<Cow<'a, str>>,
    exit_code: u8,
}

/// Writes an error to standard output as one line of JSON.
pub(crate) fn print_error_json(error: &anyhow::Error) {
    let hinted = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<HintedError>());
    let line = JsonError {
        error: JsonErrorBody {
            message: redacted(&format!("{error:#}")).into_owned(),
            hint: hinted.map(|hinted| redacted(&hinted.hint)),
            exit_code: hinted.map_or(EXIT_ERROR, |hinted| hinted.code),
        },
    };
    if let Ok(line) = serde_json::to_string(&line) {
        // If writing fails too, nothing is left to try.
        let _ = writeln!(io::stdout(), "{line}");
    }
}

/// Warns of configuration keys with deprecated names.
pub(crate) fn warn_about_deprecated_keys(config: &Config, color: ColorMode) {
    let mut to = RedactedStderr::new(color);
    for old in config.old_names() {
        let text = old.to_string();
        let line = text.lines().next().unwrap_or_default();
        // If writing fails too, nothing is left to try.
        let _ = writeln!(to, "{YELLOW}warning{YELLOW:#}: {line}");
    }
}

/// Warns that a command continues without the project's configuration, because it is invalid.
pub(crate) fn warn_of_ignored_project(invalid: &anyhow::Error, color: ColorMode) {
    let text = format!("{invalid:#}");
    let line = sanitize(text.lines().next().unwrap_or_default());
    let mut to = RedactedStderr::new(color);
    // If writing fails too, nothing is left to try.
    let _ = writeln!(
        to,
        "{YELLOW}warning{YELLOW:#}: the project's configuration is ignored: {line}; `unstuck config check` shows details"
    );
}

/// Truncates very long words in the middle.
pub(crate) fn shorten_words(text: &str) -> String {
    let short = |word: &str| -> String {
        let count = word.chars().count();
        if count <= MAX_WORD {
            return word.to_owned();
        }
        let begin: String = word.chars().take(MAX_WORD / 2).collect();
        let end: String = word.chars().skip(count - MAX_WORD / 4).collect();
        format!("{begin}…{end}")
    };
    let words: Vec<_> = text.split(' ').map(short).collect();
    words.join(" ")
}

/// Writes an error to standard error.
pub(crate) fn print_error(error: &anyhow::Error, color: ColorMode) -> ExitCode {
    let mut to = RedactedStderr::new(color);
    let (red, bold) = (output::RED, output::BOLD);
    // If writing fails too, nothing is left to try.
    let text = shorten_words(&redacted(&format!("{error:#}")));
    let _ = writeln!(to, "{red}error{red:#}: {text}");
    let hinted = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<HintedError>());
    if let Some(hinted) = hinted {
        let hint = shorten_words(&redacted(&hinted.hint));
        let _ = writeln!(to, "{bold}hint{bold:#}: {hint}");
    }
    ExitCode::from(hinted.map_or(EXIT_ERROR, |hinted| hinted.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_long_word_is_truncated_in_the_middle() {
        let text = format!("cannot read {}.log: no such file", "x".repeat(100_000));
        let short = shorten_words(&text);
        assert!(short.len() < 500, "{short}");
        assert!(short.starts_with("cannot read xxx"), "{short}");
        assert!(short.ends_with("x.log: no such file"), "{short}");
        assert_eq!(shorten_words("a b  c"), "a b  c");
    }
}

//! Configuration problems with their locations.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::value_tree::Span;
use crate::value_tree::source::{ConfigSource, Sources, line_and_column};
use crate::value_tree::value_error::ValueError;

/// An error or warning about a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The path of the value, such as `role.planner.timeout`; empty if there is none.
    pub path: String,
    /// The problem and the expected value.
    pub message: String,
    /// The location, if the value comes from a file.
    pub location: Option<SourceLocation>,
}

impl ConfigProblem {
    /// Converts a value error for display.
    pub(crate) fn from_error(sources: &Sources, path: &str, fault: &ValueError) -> Self {
        let location = fault
            .span
            .and_then(|at| SourceLocation::from_span(sources, at));
        let message = fault.message(path);
        let named = fault.span.and_then(|at| match sources.get(at.source) {
            Some(ConfigSource::Named(name)) => Some(name),
            _ => None,
        });
        Self {
            path: path.to_owned(),
            message: named.map_or(message.clone(), |name| format!("{name}: {message}")),
            location,
        }
    }
}

/// A location in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The text of the line.
    pub text: String,
    /// The number of characters to mark.
    pub width: usize,
}

impl SourceLocation {
    /// Returns the location of a value; `None` if it does not come from a file.
    pub(crate) fn from_span(sources: &Sources, at: Span) -> Option<Self> {
        let Some(ConfigSource::File { path, text }) = sources.get(at.source) else {
            return None;
        };
        let (line, column) = line_and_column(text, at.start);
        let whole = text.lines().nth(line - 1).unwrap_or_default();
        let meant = text.get(at.start..at.end.max(at.start)).unwrap_or_default();
        let width = meant.lines().next().unwrap_or_default().chars().count();
        Some(Self {
            file: sources.display_path(path),
            line,
            column,
            text: whole.to_owned(),
            width: width.max(1),
        })
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.location else {
            return f.write_str(&self.message);
        };
        let SourceLocation {
            file,
            line,
            column,
            text,
            width,
        } = place;
        writeln!(f, "{}:{line}:{column}: {}", file.display(), self.message)?;
        let gutter = line.to_string().len();
        // Tabs are kept so that the marker is aligned.
        let before: String = text
            .chars()
            .take(column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        writeln!(f, "{:gutter$} |", "")?;
        writeln!(f, "{line} | {text}")?;
        write!(f, "{:gutter$} | {before}{}", "", "^".repeat(*width))
    }
}

/// A failure to load the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A directory has two configurations.
    #[error(
        "found two configuration files: {first} and {second}",
        first = first.display(),
        second = second.display()
    )]
    TwoFiles {
        /// The first file.
        first: PathBuf,
        /// The second file.
        second: PathBuf,
    },
    /// A file in the project is not a regular file of limited size: agents could make unstuck read any other file.
    #[error("refusing to load {path}: {reason}", path = path.display())]
    UnsafeFile {
        /// The file.
        path: PathBuf,
        /// The type of file found instead.
        reason: String,
    },
    /// Others than the user may have written the project configuration.
    #[error("refusing to load {path}: {reason}", path = path.display())]
    UnsafeDirectory {
        /// The file.
        path: PathBuf,
        /// The reason why it may belong to someone else.
        reason: String,
    },
    /// The configuration that a run was started with no longer exists.
    #[error("configuration file {path} of this run no longer exists", path = path.display())]
    FileGone {
        /// The file.
        path: PathBuf,
    },
    /// The configuration is invalid.
    #[error("{}", list(.problems))]
    Invalid {
        /// All problems.
        problems: Vec<ConfigProblem>,
    },
}

fn list(problems: &[ConfigProblem]) -> String {
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

impl ConfigError {
    pub(crate) fn unreadable(path: &Path, source: io::Error) -> Self {
        Self::Unreadable {
            path: path.to_owned(),
            source,
        }
    }
}

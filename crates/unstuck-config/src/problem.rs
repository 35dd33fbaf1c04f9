//! What is wrong with a configuration, shown where it is.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::spanned::Span;
use crate::spanned::source::{ConfigSource, Sources, line_and_column};
use crate::spanned::value_error::ValueError;

/// One thing that is wrong, or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The value it is about, such as `role.planner.timeout`; empty if it is about none.
    pub path: String,
    /// What is wrong, and what was expected.
    pub message: String,
    /// Where it stands, if it stands in a file.
    pub location: Option<SourceLocation>,
}

impl ConfigProblem {
    /// A fault as people see it.
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

/// A place in a file.
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
    /// How many characters of it are meant.
    pub width: usize,
}

impl SourceLocation {
    /// The place of a value; none if it does not come from a file.
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
        // A tab stays a tab, so that the mark stands under what it means.
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

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A folder has two configurations.
    #[error(
        "there are two configurations: {first} and {second}",
        first = first.display(),
        second = second.display()
    )]
    TwoFiles {
        /// One of them.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
    /// Others than the user can have put a project's configuration there.
    #[error("{path} is not used: {reason}", path = path.display())]
    UnsafeDirectory {
        /// The file.
        path: PathBuf,
        /// Why it could be somebody else's.
        reason: String,
    },
    /// A configuration that a run was started with is not there any more.
    #[error("the configuration {path}, by which it was run, is not there any more", path = path.display())]
    FileGone {
        /// The file.
        path: PathBuf,
    },
    /// What the files say cannot be used.
    #[error("{}", list(.problems))]
    Invalid {
        /// All that is wrong.
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

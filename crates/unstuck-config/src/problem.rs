//! What is wrong with a configuration, shown where it is.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::tree::At;
use crate::tree::fault::Fault;
use crate::tree::source::{Source, Sources, place};

/// One thing that is wrong, or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The value it is about, such as `role.planner.timeout`; empty if it is about none.
    pub path: String,
    /// What is wrong, and what was expected.
    pub message: String,
    /// Where it stands, if it stands in a file.
    pub place: Option<Place>,
}

impl Problem {
    /// A fault as people see it.
    pub(crate) fn of(sources: &Sources, path: &str, fault: &Fault) -> Self {
        let place = fault.at.and_then(|at| Place::of(sources, at));
        let message = fault.told(path);
        let named = fault.at.and_then(|at| match sources.get(at.source) {
            Some(Source::Named(name)) => Some(name),
            _ => None,
        });
        Self {
            path: path.to_owned(),
            message: named.map_or(message.clone(), |name| format!("{name}: {message}")),
            place,
        }
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
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

impl Place {
    /// The place of a value; none if it does not come from a file.
    pub(crate) fn of(sources: &Sources, at: At) -> Option<Self> {
        let Some(Source::File { path, text }) = sources.get(at.source) else {
            return None;
        };
        let (line, column) = place(text, at.start);
        let whole = text.lines().nth(line - 1).unwrap_or_default();
        let meant = text.get(at.start..at.end.max(at.start)).unwrap_or_default();
        let width = meant.lines().next().unwrap_or_default().chars().count();
        Some(Self {
            file: sources.shown(path),
            line,
            column,
            text: whole.to_owned(),
            width: width.max(1),
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = &self.place else {
            return f.write_str(&self.message);
        };
        let Place {
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
    Two {
        /// One of them.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
    /// Others than the user can have put a project's configuration there.
    #[error("{path} is not used: {reason}", path = path.display())]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// Why it could be somebody else's.
        reason: String,
    },
    /// A configuration that a run was started with is not there any more.
    #[error("the configuration {path}, by which it was run, is not there any more", path = path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// What the files say cannot be used.
    #[error("{}", list(.problems))]
    Invalid {
        /// All that is wrong.
        problems: Vec<Problem>,
    },
}

fn list(problems: &[Problem]) -> String {
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

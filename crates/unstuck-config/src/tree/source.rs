//! Where values come from.

use std::fmt;
use std::path::{Path, PathBuf};

/// One of the sources of a configuration, by its place in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(pub(crate) u16);

/// A place in a source, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) source: SourceId,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The formats of configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Toml,
    Json,
    Yaml,
}

impl Format {
    /// The format that a file's name says; TOML where it says nothing else.
    pub(crate) fn of(path: &Path) -> Self {
        let end = path.extension().and_then(|end| end.to_str());
        match end.map(str::to_ascii_lowercase).as_deref() {
            Some("json") => Self::Json,
            Some("yaml" | "yml") => Self::Yaml,
            _ => Self::Toml,
        }
    }
}

/// One source of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// What comes with the program.
    BuiltIn,
    /// A file and its text.
    File { path: PathBuf, text: String },
    /// An environment variable or a flag, by its name.
    Named(String),
}

/// All sources that were read.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sources {
    list: Vec<Source>,
    /// The folder that shown paths start from.
    here: Option<PathBuf>,
}

impl Sources {
    pub(crate) fn new(here: Option<&Path>) -> Self {
        Self {
            list: Vec::new(),
            here: here.map(Path::to_owned),
        }
    }

    /// The id that the next source gets.
    pub(crate) fn next(&self) -> SourceId {
        SourceId(u16::try_from(self.list.len()).unwrap_or(u16::MAX))
    }

    pub(crate) fn add(&mut self, source: Source) -> SourceId {
        let id = self.next();
        self.list.push(source);
        id
    }

    pub(crate) fn get(&self, id: SourceId) -> Option<&Source> {
        self.list.get(usize::from(id.0))
    }

    /// A path as people here would write it.
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        let inside = self
            .here
            .as_ref()
            .and_then(|here| path.strip_prefix(here).ok());
        inside.unwrap_or(path).to_owned()
    }

    /// The folder that the paths in a source are relative to.
    pub(crate) fn folder(&self, id: SourceId) -> Option<&Path> {
        match self.get(id)? {
            Source::File { path, .. } => path.parent(),
            _ => None,
        }
    }

    pub(crate) fn origin(&self, at: At) -> Origin {
        match self.get(at.source) {
            Some(Source::File { path, text }) => Origin::File {
                path: self.shown(path),
                line: place(text, at.start).0,
            },
            Some(Source::Named(name)) => Origin::Named(name.clone()),
            Some(Source::BuiltIn) | None => Origin::BuiltIn,
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The program itself.
    BuiltIn,
    /// A line of a file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable or a flag, by its name.
    Named(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// The line and the column of a byte, both from 1; columns are characters.
pub(crate) fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[start..].chars().count() + 1)
}

//! The sources of configuration values: defaults, files, variables and flags.

use std::fmt;
use std::path::{Path, PathBuf};

/// The index of a source in [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId(pub(crate) u16);

/// A byte range in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) source: SourceId,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The formats of configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    Toml,
    Json,
    Yaml,
}

impl FileFormat {
    /// Returns the format by file name; TOML by default.
    pub(crate) fn from_path(path: &Path) -> Self {
        let end = path.extension().and_then(|end| end.to_str());
        match end.map(str::to_ascii_lowercase).as_deref() {
            Some("json") => Self::Json,
            Some("yaml" | "yml") => Self::Yaml,
            _ => Self::Toml,
        }
    }
}

/// A source of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConfigSource {
    /// The defaults.
    BuiltIn,
    /// A file and its text.
    File { path: PathBuf, text: String },
    /// An environment variable or flag, by name.
    Named(String),
}

/// All sources that were read.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sources {
    list: Vec<ConfigSource>,
    /// The directory that displayed paths are relative to.
    work_dir: Option<PathBuf>,
}

impl Sources {
    pub(crate) fn new(here: Option<&Path>) -> Self {
        Self {
            list: Vec::new(),
            work_dir: here.map(Path::to_owned),
        }
    }

    /// Returns the id of the next source.
    pub(crate) fn next(&self) -> SourceId {
        SourceId(u16::try_from(self.list.len()).unwrap_or(u16::MAX))
    }

    pub(crate) fn add(&mut self, source: ConfigSource) -> SourceId {
        let id = self.next();
        self.list.push(source);
        id
    }

    pub(crate) fn get(&self, id: SourceId) -> Option<&ConfigSource> {
        self.list.get(usize::from(id.0))
    }

    /// Returns a path relative to the working directory where possible.
    pub(crate) fn display_path(&self, path: &Path) -> PathBuf {
        let inside = self
            .work_dir
            .as_ref()
            .and_then(|here| path.strip_prefix(here).ok());
        inside.unwrap_or(path).to_owned()
    }

    /// Returns the directory that paths in a source are relative to.
    pub(crate) fn folder(&self, id: SourceId) -> Option<&Path> {
        match self.get(id)? {
            ConfigSource::File { path, .. } => path.parent(),
            _ => None,
        }
    }

    pub(crate) fn origin(&self, at: Span) -> ConfigValueOrigin {
        match self.get(at.source) {
            Some(ConfigSource::File { path, text }) => ConfigValueOrigin::File {
                path: self.display_path(path),
                line: line_and_column(text, at.start).0,
            },
            Some(ConfigSource::Named(name)) => ConfigValueOrigin::Named(name.clone()),
            Some(ConfigSource::BuiltIn) | None => ConfigValueOrigin::BuiltIn,
        }
    }
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigValueOrigin {
    /// The defaults.
    BuiltIn,
    /// A line in a file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable or flag, by name.
    Named(String),
}

impl fmt::Display for ConfigValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// Returns the line and column of a byte offset, both from 1; columns count characters.
pub(crate) fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte.min(text.len())).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[start..].chars().count() + 1)
}

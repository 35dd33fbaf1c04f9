//! Files of the project that prompts include.

use std::path::{Component, Path, PathBuf};

use unstuck_core::nearest;
use unstuck_files::{DirHandle, FileError, FileProblem};

/// Largest file that can be included.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A source of the files that prompts can include.
pub trait PromptFileSource: Send + Sync {
    /// Reads a file by its path from the root of the project.
    fn read(&self, path: &str) -> Result<String, IncludeError>;
}

/// The error of a file that cannot be included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncludeError {
    /// The reason.
    pub reason: String,
    /// The most similar existing file.
    pub suggestion: Option<String>,
}

impl IncludeError {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            suggestion: None,
        }
    }
}

/// A source without files.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyFileSource;

impl PromptFileSource for EmptyFileSource {
    fn read(&self, _path: &str) -> Result<String, IncludeError> {
        Err(IncludeError::new("files are not available here"))
    }
}

/// The files of a project; files outside of it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFileSource {
    root: PathBuf,
}

impl ProjectFileSource {
    /// Returns the files below a directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn include_error(&self, path: &str, error: &FileError) -> IncludeError {
        match &error.problem {
            FileProblem::Missing | FileProblem::NotADirectory => IncludeError {
                reason: "file not found".to_owned(),
                suggestion: self.nearest_file(path),
            },
            FileProblem::OutsideRoot => IncludeError::new("outside the project"),
            FileProblem::NotAFile(_) => IncludeError::new("not a regular file"),
            FileProblem::TooLarge(_) => IncludeError::new("larger than 4 MB"),
            other => IncludeError::new(other.to_string()),
        }
    }

    /// Returns the file in the same directory with the most similar name.
    fn nearest_file(&self, path: &str) -> Option<String> {
        let wanted = Path::new(path);
        let name = wanted.file_name()?.to_str()?;
        let folder = wanted.parent().unwrap_or(Path::new(""));
        let entries = DirHandle::open(&self.root).ok()?.entries(folder).ok()?;
        let names = entries.into_iter();
        let names: Vec<_> = names
            .filter_map(|entry| entry.name.into_string().ok())
            .collect();
        let near = nearest(name, names.iter().map(|name| (name.as_str(), name)))?;
        Some(folder.join(near).display().to_string())
    }
}

impl PromptFileSource for ProjectFileSource {
    fn read(&self, path: &str) -> Result<String, IncludeError> {
        let outside = || IncludeError::new("outside the project");
        let inside = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside || path.is_empty() {
            return Err(outside());
        }
        let root = DirHandle::open(&self.root).map_err(|_| outside())?;
        // A link may lead out of the project, and an agent may have created it.
        let read = root.read_within(Path::new(path), MAX_FILE_BYTES);
        let bytes = read.map_err(|error| self.include_error(path, &error))?;
        String::from_utf8(bytes).map_err(|_| IncludeError::new("not valid UTF-8"))
    }
}

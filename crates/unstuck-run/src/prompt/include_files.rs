//! Files of the project that prompts include.

use std::path::{Component, Path, PathBuf};

use unstuck_core::nearest;
use unstuck_files::{DirHandle, FileError, FileErrorKind};

/// Largest file that can be included.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A source of the files that prompts can include.
pub trait PromptFileProvider: Send + Sync {
    /// Reads a file by its path from the root of the project.
    fn read(&self, path: &str) -> Result<String, PromptIncludeError>;
}

/// The error of a file that cannot be included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptIncludeError {
    /// The reason.
    pub reason: String,
    /// The most similar existing file.
    pub suggestion: Option<String>,
}

impl PromptIncludeError {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            suggestion: None,
        }
    }
}

/// A source without files.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyPromptFileProvider;

impl PromptFileProvider for EmptyPromptFileProvider {
    fn read(&self, _path: &str) -> Result<String, PromptIncludeError> {
        Err(PromptIncludeError::new("files are not available here"))
    }
}

/// The files of a project; files outside of it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectPromptFileProvider {
    root: PathBuf,
}

impl ProjectPromptFileProvider {
    /// Returns the files below a directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn include_error(&self, path: &str, error: &FileError) -> PromptIncludeError {
        match &error.problem {
            FileErrorKind::Missing | FileErrorKind::NotADirectory => PromptIncludeError {
                reason: "file not found".to_owned(),
                suggestion: self.nearest_file(path),
            },
            FileErrorKind::OutsideRoot => PromptIncludeError::new("outside the project"),
            FileErrorKind::NotAFile(_) => PromptIncludeError::new("not a regular file"),
            FileErrorKind::TooLarge(_) => PromptIncludeError::new("larger than 4 MiB"),
            other => PromptIncludeError::new(other.to_string()),
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

impl PromptFileProvider for ProjectPromptFileProvider {
    fn read(&self, path: &str) -> Result<String, PromptIncludeError> {
        let outside = || PromptIncludeError::new("outside the project");
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
        String::from_utf8(bytes).map_err(|_| PromptIncludeError::new("not valid UTF-8"))
    }
}

//! Prompt texts that may be in separate files.

use std::io;
use std::path::{Component, Path, PathBuf};

use unstuck_core::recovery_plan::{
    PromptNoteError, PromptNotePlacement, PromptNoteTemplate, PromptNoteTemplates,
};

use unstuck_files::{DirHandle, FileError, FileErrorKind, read_named_text};

use crate::config::Config;
use crate::problem::ConfigError;
use crate::section::{PromptNotePlacementSetting, PromptNoteSection, RoleSection};
use crate::value_tree::path;

/// The maximum size of a file that a configuration names.
pub(crate) const MAX_TEXT: u64 = 8 << 20;

/// Returns the path from a directory to a file, without `.` and `..`; `None` if it leads outside.
fn relative_path(root: &Path, file: &Path) -> Option<PathBuf> {
    let mut way = PathBuf::new();
    for part in file.strip_prefix(root).ok()?.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !way.pop() {
                    return None;
                }
            }
            Component::Normal(name) => way.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(way)
}

/// Converts a read error, without the path.
pub(crate) fn read_error(error: FileError) -> io::Error {
    match error.problem {
        FileErrorKind::System(error) => error,
        problem @ FileErrorKind::Missing => {
            io::Error::new(io::ErrorKind::NotFound, problem.to_string())
        }
        problem => io::Error::other(problem.to_string()),
    }
}

impl Config {
    /// Returns the built-in and user-defined prompt templates.
    pub fn prompts(&self) -> Result<PromptNoteTemplates, ConfigError> {
        let mut prompts = PromptNoteTemplates::load_embedded()
            .map_err(|error| self.prompt_error("prompts", &error))?;
        for (name, section) in &self.root.prompts {
            let place = match section.place {
                PromptNotePlacementSetting::Front => PromptNotePlacement::Front,
                PromptNotePlacementSetting::Context => PromptNotePlacement::Context,
            };
            let text = self.template_text(name, section)?;
            prompts = prompts.with(
                name,
                PromptNoteTemplate {
                    description: None,
                    position: place,
                    text,
                },
            );
        }
        Ok(prompts)
    }

    fn template_text(
        &self,
        name: &str,
        section: &PromptNoteSection,
    ) -> Result<String, ConfigError> {
        match (&section.text, &section.file) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(file)) => self.read_text(&format!("prompts.{name}.file"), file),
            (None, None) => {
                let why = "needs a `text` or a `file`";
                let problems = vec![self.problem_at(&format!("prompts.{name}"), why)];
                Err(ConfigError::Invalid { problems })
            }
        }
    }

    fn read_text(&self, key: &str, file: &Path) -> Result<String, ConfigError> {
        let read = self.read_named_file(key, file);
        read.map_err(|error| ConfigError::unreadable(file, read_error(error)))
    }

    /// Reads the file that a key names: a regular file of limited size.
    ///
    /// If agents can write the configuration, the file must be inside the project: agents may not be able to read other
    /// files themselves.
    pub fn read_named_file(&self, key: &str, file: &Path) -> Result<String, FileError> {
        let Some(folder) = self.project_directory(key) else {
            return read_named_text(file, MAX_TEXT);
        };
        let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        let root = folder.ancestors().find(has_git).unwrap_or(folder);
        let failed = |problem| FileError {
            path: file.to_owned(),
            problem,
        };
        let below = relative_path(root, file).ok_or_else(|| failed(FileErrorKind::OutsideRoot))?;
        let read = DirHandle::open(root)?.read_within(&below, MAX_TEXT);
        let bytes = read.map_err(|error| failed(error.problem))?;
        String::from_utf8(bytes).map_err(|_| failed(FileErrorKind::NotText))
    }

    /// Returns the directory of the file that sets a key, if agents can write it.
    fn project_directory(&self, key: &str) -> Option<&Path> {
        let source = path::find_value(&self.tree, key)?.span.source;
        let folder = self.sources().folder(source);
        folder.filter(|_| self.projects.contains(&source))
    }

    /// Returns a role's prompt template; `None` if it has none.
    pub fn prompt_template(&self, role: &RoleSection) -> Result<Option<String>, ConfigError> {
        match (&role.prompt, &role.prompt_file) {
            (Some(text), _) => Ok(Some(text.clone())),
            (None, Some(file)) => {
                let key = format!("role.{}.prompt_file", role.id);
                self.read_text(&key, file).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    fn prompt_error(&self, path: &str, error: &PromptNoteError) -> ConfigError {
        ConfigError::Invalid {
            problems: vec![self.problem_at(path, error.to_string())],
        }
    }
}

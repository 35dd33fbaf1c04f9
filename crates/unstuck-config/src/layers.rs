//! Configuration sources and their precedence.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use unstuck_core::project_settings::ProjectSettings;
use unstuck_files::open_named;

use crate::problem::ConfigError;
use crate::prompt_files::{MAX_TEXT, read_error};
use crate::safe_directories::{SafeDirectories, foreign_file_reason};
use crate::trust_layering::{FileTrust, ownership_problem};

/// The file names of a project configuration.
pub const PROJECT_FILES: [&str; 4] = [
    "unstuck.toml",
    "unstuck.json",
    "unstuck.yaml",
    "unstuck.yml",
];

/// The file names of the user configuration, in its own directory.
pub const USER_FILES: [&str; 4] = ["config.toml", "config.json", "config.yaml", "config.yml"];

/// The supported environment variables and the keys they set.
pub const VARIABLES: [(&str, &str); 5] = [
    ("UNSTUCK_TASK", "run.task"),
    ("UNSTUCK_PARALLEL", "run.parallel"),
    ("UNSTUCK_MAX_ITERATIONS", "loop.max_iterations"),
    ("UNSTUCK_WEBHOOKS_ALLOW_PRIVATE", "webhooks.allow_private"),
    ("UNSTUCK_POLICY", POLICY),
];

/// The key of a [`SettingOverride`] that selects the policy.
pub const POLICY: &str = "policy";

/// The configuration sources; later ones win.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layers {
    /// The directory of the user configuration.
    pub user: Option<PathBuf>,
    /// The working directory; the project configuration is in it or in a parent directory, up to the repository root or
    /// the home directory.
    pub work_dir: Option<PathBuf>,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// The user id of the `sudo` caller, whose projects root accepts as its own.
    pub sudo_user: Option<u32>,
    /// The file given on the command line.
    pub explicit_file: Option<PathBuf>,
    /// Policies that people have set outside of files.
    pub stored_policies: Vec<StoredPolicy>,
    /// Overrides from the environment and from flags, in this order.
    pub overrides: Vec<SettingOverride>,
    /// The project settings accepted when the active run began; `None` if nothing is compared.
    pub accepted: Option<ProjectSettings>,
}

/// A policy set outside of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPolicy {
    /// The scope.
    pub scope: PolicyScope,
    /// The policy as JSON; it replaces `[policy]` entirely.
    pub policy: serde_json::Value,
    /// The source, as text.
    pub origin: String,
}

/// The scope of a stored policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyScope {
    /// All projects without a policy of their own: applied after the user's file and before the project's.
    Everybody,
    /// The current project: applied after all files.
    Project,
}

/// A value set by the environment or a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingOverride {
    /// The variable or flag.
    pub name: String,
    /// The key it sets, such as `run.task`, or [`POLICY`].
    pub key: String,
    /// The value, as text.
    pub value: String,
}

impl SettingOverride {
    /// Returns the overrides from the environment.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Vec<Self> {
        let set = |(name, key): (&str, &str)| {
            Some(Self {
                name: name.to_owned(),
                key: key.to_owned(),
                value: variable(name)?,
            })
        };
        VARIABLES.into_iter().filter_map(set).collect()
    }
}

/// The owner of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileOwner {
    User,
    Project,
    Named,
}

impl Layers {
    /// Returns the existing files, lowest precedence first.
    pub(crate) fn files(&self) -> Result<Vec<(FileOwner, PathBuf)>, ConfigError> {
        let mut files = Vec::new();
        if let Some(folder) = &self.user {
            files.extend(find_single(folder, &USER_FILES)?.map(|path| (FileOwner::User, path)));
        }
        if let Some(path) = self.project_file()? {
            files.push((FileOwner::Project, path));
        }
        // A file that was given explicitly but is the project file anyway is read once.
        if let Some(named) = &self.explicit_file {
            let same = |(_, path): &(FileOwner, PathBuf)| is_same_file(path, named);
            if !files.iter().any(same) {
                files.push((FileOwner::Named, named.clone()));
            }
        }
        Ok(files)
    }

    /// Returns the directories that agents can write.
    pub(crate) fn agent_writable_dirs(&self) -> Result<Vec<PathBuf>, ConfigError> {
        let Some(here) = &self.work_dir else {
            return Ok(Vec::new());
        };
        let configured = self.project_file()?;
        let configured = configured.as_deref().and_then(Path::parent);
        let mut above = here.ancestors();
        let repository = above.find(|folder| folder.join(".git").exists());
        let folders = [Some(here.as_path()), configured, repository];
        let real = |folder: &Path| folder.canonicalize().unwrap_or(folder.to_owned());
        Ok(folders.into_iter().flatten().map(real).collect())
    }

    /// Returns the project configuration file.
    pub fn project_file(&self) -> Result<Option<PathBuf>, ConfigError> {
        let Some(here) = &self.work_dir else {
            return Ok(None);
        };
        for folder in project_dirs(here, self.home.as_deref()) {
            if let Some(found) = find_single(folder, &PROJECT_FILES)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Returns the directories that may hold a project configuration, nearest first, up to the repository root or the home
/// directory.
pub fn project_dirs<'p>(here: &'p Path, home: Option<&Path>) -> Vec<&'p Path> {
    let is_last = |folder: &Path| {
        // In a worktree or submodule `.git` is a file that points to the repository.
        folder.join(".git").symlink_metadata().is_ok()
            || home.is_some_and(|home| home == folder || is_same_file(home, folder))
    };
    let mut folders = Vec::new();
    for folder in here.ancestors() {
        folders.push(folder);
        if is_last(folder) {
            break;
        }
    }
    folders
}

/// Returns whether a directory has a project configuration.
pub fn has_project_file(folder: &Path) -> bool {
    PROJECT_FILES.iter().any(|name| folder.join(name).is_file())
}

fn find_single(folder: &Path, names: &[&str]) -> Result<Option<PathBuf>, ConfigError> {
    let mut found = names
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| path.is_file());
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => Err(ConfigError::TwoFiles { first, second }),
        (first, _) => Ok(first),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The text of a file and its owner.
pub(crate) struct SourceText {
    pub(crate) text: String,
    pub(crate) trust: FileTrust,
    /// The reason why others may have written the project file, if they can.
    pub(crate) danger: Option<String>,
}

impl Layers {
    /// Reads the existing files; a file that disappears meanwhile is skipped unless it was given explicitly.
    pub(crate) fn read(&self) -> Result<Vec<(FileOwner, PathBuf, SourceText)>, ConfigError> {
        self.read_matching(|_| true)
    }

    fn read_matching(
        &self,
        is_read: impl Fn(FileOwner) -> bool,
    ) -> Result<Vec<(FileOwner, PathBuf, SourceText)>, ConfigError> {
        let reach = self.agent_writable_dirs()?;
        let mut texts = Vec::new();
        let mut safe = SafeDirectories::default();
        let files = self.files()?.into_iter();
        for (owner, path) in files.filter(|(owner, _)| is_read(*owner)) {
            match self.read_one(owner, &path, &reach) {
                Ok(text) => {
                    if owner == FileOwner::User && text.trust == FileTrust::Owner {
                        safe = SafeDirectories::from_file(&path, &text.text);
                    }
                    if let Some(reason) = text.danger.as_ref().filter(|_| !safe.contains(&path)) {
                        return Err(ConfigError::UnsafeDirectory {
                            reason: reason.clone(),
                            path,
                        });
                    }
                    texts.push((owner, path, text));
                }
                Err(error) if error.kind() == ErrorKind::NotFound && owner != FileOwner::Named => {}
                Err(error) => return Err(ConfigError::unreadable(&path, error)),
            }
        }
        Ok(texts)
    }

    /// Reads the files, with a text in place of the project's file.
    pub(crate) fn read_with_project_text(
        &self,
        path: &Path,
        text: &str,
    ) -> Result<Vec<(FileOwner, PathBuf, SourceText)>, ConfigError> {
        let mut texts = self.read_matching(|owner| owner != FileOwner::Project)?;
        let users = texts
            .iter()
            .filter(|(owner, _, _)| *owner == FileOwner::User);
        let given = SourceText {
            text: text.to_owned(),
            trust: FileTrust::Project,
            danger: None,
        };
        texts.insert(users.count(), (FileOwner::Project, path.to_owned(), given));
        Ok(texts)
    }

    fn read_one(&self, owner: FileOwner, path: &Path, reach: &[PathBuf]) -> io::Result<SourceText> {
        // The file may be replaced by a FIFO or an endless file while it is opened.
        let mut file = open_named(path).map_err(read_error)?;
        let data = file.metadata()?;
        if data.len() > MAX_TEXT {
            return Err(io::Error::other("it is too large to be a configuration"));
        }
        let mut text = String::new();
        file.by_ref().take(MAX_TEXT).read_to_string(&mut text)?;
        let real = path.canonicalize()?;
        let is_reached = [path, &real]
            .iter()
            .any(|way| reach.iter().any(|folder| way.starts_with(folder)));
        let class = match owner {
            FileOwner::Project => FileTrust::Project,
            // Agents can write it like the project's own files.
            FileOwner::User | FileOwner::Named if is_reached => FileTrust::Project,
            FileOwner::User | FileOwner::Named => {
                ownership_problem(path, &data).map_or(FileTrust::Owner, FileTrust::Untrusted)
            }
        };
        // A file that is given explicitly is intended.
        let danger = match owner {
            FileOwner::Project => foreign_file_reason(path, &data, self.sudo_user)?,
            FileOwner::User | FileOwner::Named => None,
        };
        Ok(SourceText {
            text,
            trust: class,
            danger,
        })
    }
}

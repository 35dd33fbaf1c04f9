//! Configuration sources and their precedence.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot;
use unstuck_files::{DirHandle, FileErrorKind, open_named};

use crate::problem::ConfigError;
use crate::project_settings_comparison::file_key;
use crate::prompt_files::{MAX_TEXT, read_error};
use crate::safe_directories::{SafeDirectories, foreign_file_reason};
use crate::trust_layering::{FileTrust, ownership_problem};
use crate::value_tree::source::FileFormat;

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
pub struct ConfigLayers {
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
    /// Policies that humans have set outside of files.
    pub stored_policies: Vec<StoredPolicy>,
    /// Overrides from the environment and from flags, in this order.
    pub overrides: Vec<SettingOverride>,
    /// The project settings accepted when the active run began; `None` if nothing is compared.
    pub accepted: Option<ProjectSettingsSnapshot>,
    /// True if files that agents can write are left out; they are not even opened.
    pub without_project: bool,
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

/// The layer that a configuration file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigFileLayer {
    User,
    Project,
    Named,
}

impl ConfigLayers {
    /// Returns the existing files, lowest precedence first.
    pub(crate) fn files(&self) -> Result<Vec<(ConfigFileLayer, PathBuf)>, ConfigError> {
        let mut files = Vec::new();
        if let Some(folder) = &self.user {
            files.extend(
                find_single(folder, &USER_FILES, Path::is_file)?
                    .map(|path| (ConfigFileLayer::User, path)),
            );
        }
        if !self.without_project
            && let Some(path) = self.project_file()?
        {
            files.push((ConfigFileLayer::Project, path));
        }
        // A file that was given explicitly but is the project file anyway is read once.
        if let Some(named) = &self.explicit_file {
            let same = |(_, path): &(ConfigFileLayer, PathBuf)| is_same_file(path, named);
            if !files.iter().any(same) {
                files.push((ConfigFileLayer::Named, named.clone()));
            }
        }
        Ok(files)
    }

    /// Returns the directories that agents can write.
    pub(crate) fn agent_writable_dirs(&self) -> Result<Vec<PathBuf>, ConfigError> {
        let Some(here) = &self.work_dir else {
            return Ok(Vec::new());
        };
        let configured = self.configured_dir();
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
            if let Some(found) = find_single(folder, &PROJECT_FILES, has_entry)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the directory of the project configuration.
    fn configured_dir(&self) -> Option<&Path> {
        let folders = project_dirs(self.work_dir.as_deref()?, self.home.as_deref());
        folders.into_iter().find(|folder| has_project_file(folder))
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

/// Returns whether a directory has a project configuration, readable or not.
pub fn has_project_file(folder: &Path) -> bool {
    PROJECT_FILES
        .iter()
        .any(|name| has_entry(&folder.join(name)))
}

/// Returns whether there is anything at a path: a link or FIFO in place of a project configuration is an error, and
/// does not count as a missing file.
fn has_entry(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn find_single(
    folder: &Path,
    names: &[&str],
    is_there: impl Fn(&Path) -> bool,
) -> Result<Option<PathBuf>, ConfigError> {
    let mut found = names
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| is_there(path));
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

/// The text of a configuration file and the trust in it.
pub(crate) struct ConfigTextWithTrust {
    pub(crate) text: String,
    pub(crate) format: FileFormat,
    pub(crate) trust: FileTrust,
    /// The reason why others may have written the project file, if they can.
    pub(crate) danger: Option<String>,
}

impl ConfigLayers {
    /// Reads the existing files; a file that disappears meanwhile is skipped unless it was given explicitly.
    pub(crate) fn read(
        &self,
    ) -> Result<Vec<(ConfigFileLayer, PathBuf, ConfigTextWithTrust)>, ConfigError> {
        self.read_matching(|_| true)
    }

    fn read_matching(
        &self,
        is_read: impl Fn(ConfigFileLayer) -> bool,
    ) -> Result<Vec<(ConfigFileLayer, PathBuf, ConfigTextWithTrust)>, ConfigError> {
        let reach = self.agent_writable_dirs()?;
        let mut texts = Vec::new();
        let mut safe = SafeDirectories::default();
        let files = self.files()?.into_iter();
        for (owner, path) in files.filter(|(owner, _)| is_read(*owner)) {
            let is_projects = match owner {
                // The user decides what is at this path, which may be a link.
                ConfigFileLayer::User => false,
                ConfigFileLayer::Project => true,
                ConfigFileLayer::Named => is_below(&path, &reach),
            };
            if is_projects && self.without_project {
                continue;
            }
            match self.read_one(owner, &path, is_projects, &reach) {
                Ok(text) => {
                    if owner == ConfigFileLayer::User && text.trust == FileTrust::Owner {
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
                Err(ConfigReadError::Unsafe(reason)) => {
                    return Err(ConfigError::UnsafeFile { path, reason });
                }
                Err(ConfigReadError::System(error))
                    if error.kind() == ErrorKind::NotFound && owner != ConfigFileLayer::Named => {}
                Err(ConfigReadError::System(error)) => {
                    return Err(ConfigError::unreadable(&path, error));
                }
            }
        }
        Ok(texts)
    }

    /// Reads the files, with a text in place of the project's file.
    pub(crate) fn read_with_project_text(
        &self,
        path: &Path,
        text: &str,
    ) -> Result<Vec<(ConfigFileLayer, PathBuf, ConfigTextWithTrust)>, ConfigError> {
        let mut texts = self.read_matching(|owner| owner != ConfigFileLayer::Project)?;
        let users = texts
            .iter()
            .filter(|(owner, _, _)| *owner == ConfigFileLayer::User);
        let given = ConfigTextWithTrust {
            text: text.to_owned(),
            format: FileFormat::from_path(path),
            trust: FileTrust::Project,
            danger: None,
        };
        texts.insert(
            users.count(),
            (ConfigFileLayer::Project, path.to_owned(), given),
        );
        Ok(texts)
    }

    /// Reads the owner's files, with stored settings in place of the project's files, which are not opened.
    pub(crate) fn read_with_settings(
        &self,
        settings: &ProjectSettingsSnapshot,
    ) -> Result<Vec<(ConfigFileLayer, PathBuf, ConfigTextWithTrust)>, ConfigError> {
        let owners = Self {
            without_project: true,
            ..self.clone()
        };
        let mut texts = owners.read()?;
        texts.retain(|(_, path, _)| !settings.files.contains_key(&file_key(path)));
        let users = texts
            .iter()
            .filter(|(owner, _, _)| *owner == ConfigFileLayer::User);
        let at = users.count();
        let stored = settings.files.iter().map(|(name, values)| {
            let given = ConfigTextWithTrust {
                text: values.to_string(),
                format: FileFormat::Json,
                trust: FileTrust::Project,
                danger: None,
            };
            (ConfigFileLayer::Project, PathBuf::from(name), given)
        });
        texts.splice(at..at, stored.collect::<Vec<_>>());
        Ok(texts)
    }

    fn read_one(
        &self,
        owner: ConfigFileLayer,
        path: &Path,
        is_projects: bool,
        reach: &[PathBuf],
    ) -> Result<ConfigTextWithTrust, ConfigReadError> {
        // The file may be replaced by a link, a FIFO or an endless file while it is opened.
        let mut file = if is_projects {
            open_in_project(owner, path)?
        } else {
            open_named(path).map_err(read_error)?
        };
        let data = file.metadata()?;
        let text = read_bounded(&mut file, data.len())?;
        let real = path.canonicalize()?;
        let is_reached = is_projects || [path, &real].iter().any(|way| is_inside(way, reach));
        let class = match owner {
            ConfigFileLayer::Project => FileTrust::Project,
            // Agents can write it like the project's own files.
            ConfigFileLayer::User | ConfigFileLayer::Named if is_reached => FileTrust::Project,
            ConfigFileLayer::User | ConfigFileLayer::Named => {
                ownership_problem(path, &data).map_or(FileTrust::Owner, FileTrust::Untrusted)
            }
        };
        // A file that is given explicitly is intended.
        let danger = match owner {
            ConfigFileLayer::Project => foreign_file_reason(path, &data, self.sudo_user)?,
            ConfigFileLayer::User | ConfigFileLayer::Named => None,
        };
        Ok(ConfigTextWithTrust {
            text,
            format: FileFormat::from_path(path),
            trust: class,
            danger,
        })
    }
}

/// A failure to read a configuration file.
enum ConfigReadError {
    /// It is not a regular file of limited size, with the reason.
    Unsafe(String),
    System(io::Error),
}

impl From<io::Error> for ConfigReadError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<FileErrorKind> for ConfigReadError {
    fn from(problem: FileErrorKind) -> Self {
        match problem {
            FileErrorKind::Symlink => Self::Unsafe("the file is a symbolic link".to_owned()),
            FileErrorKind::NotAFile(kind) => Self::Unsafe(format!("not a regular file ({kind})")),
            FileErrorKind::Missing => {
                Self::System(io::Error::new(ErrorKind::NotFound, problem.to_string()))
            }
            FileErrorKind::System(error) => Self::System(error),
            other => Self::System(io::Error::other(other.to_string())),
        }
    }
}

/// Opens a file that agents can write, below a handle of its directory.
fn open_in_project(owner: ConfigFileLayer, path: &Path) -> Result<File, ConfigReadError> {
    let folder = existing_parent(path);
    let name = path.file_name().map_or(path, Path::new);
    // The working directory has no links, so a link above the project's file was made since. A path that the user names
    // may contain some.
    let folder = match owner {
        ConfigFileLayer::Project => folder.to_owned(),
        ConfigFileLayer::User | ConfigFileLayer::Named => folder.canonicalize()?,
    };
    let folder = DirHandle::open_resolved(&folder).map_err(|error| match error.problem {
        // A link that is not followed is no directory either.
        FileErrorKind::Symlink | FileErrorKind::NotADirectory => {
            ConfigReadError::Unsafe("the path of its directory contains a symbolic link".to_owned())
        }
        problem => problem.into(),
    })?;
    Ok(folder.open_file(name).map_err(|error| error.problem)?)
}

/// Reads a text of limited size.
fn read_bounded(file: &mut File, size: u64) -> Result<String, ConfigReadError> {
    let too_large =
        || ConfigReadError::Unsafe(format!("the file is larger than {} MiB", MAX_TEXT >> 20));
    if size > MAX_TEXT {
        return Err(too_large());
    }
    let mut text = String::new();
    file.take(MAX_TEXT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TEXT {
        return Err(too_large());
    }
    Ok(text)
}

fn existing_parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|folder| *folder != Path::new(""));
    parent.unwrap_or(Path::new("."))
}

fn is_inside(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Returns whether the entry itself, not the target of a link, is in one of these directories.
fn is_below(path: &Path, folders: &[PathBuf]) -> bool {
    let real = existing_parent(path).canonicalize();
    is_inside(path, folders) || real.is_ok_and(|real| is_inside(&real, folders))
}

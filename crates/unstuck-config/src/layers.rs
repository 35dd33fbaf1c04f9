//! Which sources there are, and in which order they count.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use unstuck_core::project_settings::ProjectSettings;
use unstuck_files::open_named;

use crate::problem::ConfigError;
use crate::prompt_files::{MAX_TEXT, read_error};
use crate::safe_directories::{SafeDirectories, foreign_file_reason};
use crate::trust_layering::{FileTrust, ownership_problem};

/// The names that a project's configuration may have.
pub const PROJECT_FILES: [&str; 4] = [
    "unstuck.toml",
    "unstuck.json",
    "unstuck.yaml",
    "unstuck.yml",
];

/// The names that the user's configuration may have, in a folder of its own.
pub const USER_FILES: [&str; 4] = ["config.toml", "config.json", "config.yaml", "config.yml"];

/// The variables of the environment that count, and what they set.
pub const VARIABLES: [(&str, &str); 5] = [
    ("UNSTUCK_TASK", "run.task"),
    ("UNSTUCK_PARALLEL", "run.parallel"),
    ("UNSTUCK_MAX_ITERATIONS", "loop.max_iterations"),
    ("UNSTUCK_WEBHOOKS_ALLOW_PRIVATE", "webhooks.allow_private"),
    ("UNSTUCK_POLICY", POLICY),
];

/// What a [`SettingOverride`] of the policy's name sets.
pub const POLICY: &str = "policy";

/// Where a configuration comes from; later ones win.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layers {
    /// The folder of the user's own configuration.
    pub user: Option<PathBuf>,
    /// The folder that is worked in; the project's configuration is in it or above it, up to the root of the repository
    /// or to the person's home folder.
    pub work_dir: Option<PathBuf>,
    /// The person's home folder.
    pub home: Option<PathBuf>,
    /// The user who became root by `sudo`: root takes their projects for its own.
    pub sudo_user: Option<u32>,
    /// A file that was named.
    pub explicit_file: Option<PathBuf>,
    /// Policies that people have set elsewhere than in files.
    pub stored_policies: Vec<StoredPolicy>,
    /// What the environment and then flags set.
    pub overrides: Vec<SettingOverride>,
    /// What the project's files said when a run began that is under way; none where nothing is compared.
    pub accepted: Option<ProjectSettings>,
}

/// A policy that somebody has set elsewhere than in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPolicy {
    /// Whose it is.
    pub scope: PolicyScope,
    /// The policy, as JSON; it counts in the place of `[policy]`, as a whole.
    pub policy: serde_json::Value,
    /// Where it comes from, in words.
    pub origin: String,
}

/// Whose a policy is that somebody has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyScope {
    /// That of all projects whose files have none: it counts after the user's file, and before the project's.
    Everybody,
    /// That of the project which is worked in: it counts after all files.
    Project,
}

/// One value that the environment or a flag sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingOverride {
    /// The variable or the flag.
    pub name: String,
    /// What it sets, such as `run.task`, or [`POLICY`].
    pub key: String,
    /// The value, as text.
    pub value: String,
}

impl SettingOverride {
    /// What the environment sets.
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

/// Whose configuration a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileOwner {
    User,
    Project,
    Named,
}

impl Layers {
    /// The files that there are, the first one first.
    pub(crate) fn files(&self) -> Result<Vec<(FileOwner, PathBuf)>, ConfigError> {
        let mut files = Vec::new();
        if let Some(folder) = &self.user {
            files.extend(find_single(folder, &USER_FILES)?.map(|path| (FileOwner::User, path)));
        }
        if let Some(path) = self.project_file()? {
            files.push((FileOwner::Project, path));
        }
        // A file that was named and is the project's own anyway is read once.
        if let Some(named) = &self.explicit_file {
            let same = |(_, path): &(FileOwner, PathBuf)| is_same_file(path, named);
            if !files.iter().any(same) {
                files.push((FileOwner::Named, named.clone()));
            }
        }
        Ok(files)
    }

    /// The folders in which agents work, and so can write.
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

    /// The project's configuration.
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

/// The folders in which the configuration of a project may be, the nearest first: up to the root of the repository or
/// the person's home folder, whichever comes first.
pub fn project_dirs<'p>(here: &'p Path, home: Option<&Path>) -> Vec<&'p Path> {
    let is_last = |folder: &Path| {
        // A file of that name leads to the repository of a work tree or a submodule.
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

/// Whether a folder has a project's configuration.
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

/// What a file says, and whose word it is.
pub(crate) struct SourceText {
    pub(crate) text: String,
    pub(crate) trust: FileTrust,
    /// Why others can have put a project's file there, if they can.
    pub(crate) danger: Option<String>,
}

impl Layers {
    /// Reads the files that there are; one that went away meanwhile and that nobody named is left out.
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

    /// Does the same with a text in the place of the project's file, which is not read.
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
        // Somebody may swap it for a FIFO or something endless while it is opened.
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
            // Agents can write it like the project's own.
            FileOwner::User | FileOwner::Named if is_reached => FileTrust::Project,
            FileOwner::User | FileOwner::Named => {
                ownership_problem(path, &data).map_or(FileTrust::Owner, FileTrust::Untrusted)
            }
        };
        // A file that somebody names is one that they mean.
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

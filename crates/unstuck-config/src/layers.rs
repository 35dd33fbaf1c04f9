//! Which sources there are, and in which order they count.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use unstuck_core::settings::ProjectSettings;
use unstuck_files::open_named;

use crate::problem::ConfigError;
use crate::repairs::{Class, fault};
use crate::safe_directories::{SafeDirectories, danger};
use crate::texts::{LONGEST_TEXT, refused};

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

/// What a [`Setting`] of the policy's name sets.
pub const POLICY: &str = "policy";

/// Where a configuration comes from; later ones win.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layers {
    /// The folder of the user's own configuration.
    pub user: Option<PathBuf>,
    /// The folder that is worked in; the project's configuration is in it or above it, up to the root of the repository
    /// or to the person's home folder.
    pub here: Option<PathBuf>,
    /// The person's home folder.
    pub home: Option<PathBuf>,
    /// The user who became root by `sudo`: root takes their projects for its own.
    pub sudo_user: Option<u32>,
    /// A file that was named.
    pub named: Option<PathBuf>,
    /// Policies that people have set elsewhere than in files.
    pub set: Vec<SetPolicy>,
    /// What the environment and then flags set.
    pub settings: Vec<Setting>,
    /// What the project's files said when a run began that is under way; none where nothing is compared.
    pub accepted: Option<ProjectSettings>,
}

/// A policy that somebody has set elsewhere than in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetPolicy {
    /// Whose it is.
    pub of: SetFor,
    /// The policy, as JSON; it counts in the place of `[policy]`, as a whole.
    pub policy: serde_json::Value,
    /// Where it comes from, in words.
    pub origin: String,
}

/// Whose a policy is that somebody has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetFor {
    /// That of all projects whose files have none: it counts after the user's file, and before the project's.
    Everybody,
    /// That of the project which is worked in: it counts after all files.
    Project,
}

/// One value that the environment or a flag sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The variable or the flag.
    pub name: String,
    /// What it sets, such as `run.task`, or [`POLICY`].
    pub key: String,
    /// The value, as text.
    pub value: String,
}

impl Setting {
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
pub(crate) enum Owner {
    User,
    Project,
    Named,
}

impl Layers {
    /// The files that there are, the first one first.
    pub(crate) fn files(&self) -> Result<Vec<(Owner, PathBuf)>, ConfigError> {
        let mut files = Vec::new();
        if let Some(folder) = &self.user {
            files.extend(only_one(folder, &USER_FILES)?.map(|path| (Owner::User, path)));
        }
        if let Some(path) = self.project_file()? {
            files.push((Owner::Project, path));
        }
        // A file that was named and is the project's own anyway is read once.
        if let Some(named) = &self.named {
            let same = |(_, path): &(Owner, PathBuf)| is_same(path, named);
            if !files.iter().any(same) {
                files.push((Owner::Named, named.clone()));
            }
        }
        Ok(files)
    }

    /// The folders in which agents work, and so can write.
    pub(crate) fn reach(&self) -> Result<Vec<PathBuf>, ConfigError> {
        let Some(here) = &self.here else {
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
        let Some(here) = &self.here else {
            return Ok(None);
        };
        for folder in project_folders(here, self.home.as_deref()) {
            if let Some(found) = only_one(folder, &PROJECT_FILES)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// The folders in which the configuration of a project may be, the nearest first: up to the root of the repository or
/// the person's home folder, whichever comes first.
pub fn project_folders<'p>(here: &'p Path, home: Option<&Path>) -> Vec<&'p Path> {
    let is_last = |folder: &Path| {
        // A file of that name leads to the repository of a work tree or a submodule.
        folder.join(".git").symlink_metadata().is_ok()
            || home.is_some_and(|home| home == folder || is_same(home, folder))
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

fn only_one(folder: &Path, names: &[&str]) -> Result<Option<PathBuf>, ConfigError> {
    let mut found = names
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| path.is_file());
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => Err(ConfigError::Two { first, second }),
        (first, _) => Ok(first),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// What a file says, and whose word it is.
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) class: Class,
    /// Why others can have put a project's file there, if they can.
    pub(crate) danger: Option<String>,
}

impl Layers {
    /// Reads the files that there are; one that went away meanwhile and that nobody named is left out.
    pub(crate) fn read(&self) -> Result<Vec<(Owner, PathBuf, Text)>, ConfigError> {
        self.read_those(|_| true)
    }

    fn read_those(
        &self,
        is_read: impl Fn(Owner) -> bool,
    ) -> Result<Vec<(Owner, PathBuf, Text)>, ConfigError> {
        let reach = self.reach()?;
        let mut texts = Vec::new();
        let mut safe = SafeDirectories::default();
        let files = self.files()?.into_iter();
        for (owner, path) in files.filter(|(owner, _)| is_read(*owner)) {
            match self.read_one(owner, &path, &reach) {
                Ok(text) => {
                    if owner == Owner::User && text.class == Class::Owner {
                        safe = SafeDirectories::in_file(&path, &text.text);
                    }
                    if let Some(reason) = text.danger.as_ref().filter(|_| !safe.holds(&path)) {
                        return Err(ConfigError::Unsafe {
                            reason: reason.clone(),
                            path,
                        });
                    }
                    texts.push((owner, path, text));
                }
                Err(error) if error.kind() == ErrorKind::NotFound && owner != Owner::Named => {}
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
    ) -> Result<Vec<(Owner, PathBuf, Text)>, ConfigError> {
        let mut texts = self.read_those(|owner| owner != Owner::Project)?;
        let users = texts.iter().filter(|(owner, _, _)| *owner == Owner::User);
        let given = Text {
            text: text.to_owned(),
            class: Class::Project,
            danger: None,
        };
        texts.insert(users.count(), (Owner::Project, path.to_owned(), given));
        Ok(texts)
    }

    fn read_one(&self, owner: Owner, path: &Path, reach: &[PathBuf]) -> io::Result<Text> {
        // Somebody may swap it for a FIFO or something endless while it is opened.
        let mut file = open_named(path).map_err(refused)?;
        let data = file.metadata()?;
        if data.len() > LONGEST_TEXT {
            return Err(io::Error::other("it is too large to be a configuration"));
        }
        let mut text = String::new();
        file.by_ref().take(LONGEST_TEXT).read_to_string(&mut text)?;
        let real = path.canonicalize()?;
        let is_reached = [path, &real]
            .iter()
            .any(|way| reach.iter().any(|folder| way.starts_with(folder)));
        let class = match owner {
            Owner::Project => Class::Project,
            // Agents can write it like the project's own.
            Owner::User | Owner::Named if is_reached => Class::Project,
            Owner::User | Owner::Named => {
                fault(path, &data).map_or(Class::Owner, Class::Distrusted)
            }
        };
        // A file that somebody names is one that they mean.
        let danger = match owner {
            Owner::Project => danger(path, &data, self.sudo_user)?,
            Owner::User | Owner::Named => None,
        };
        Ok(Text {
            text,
            class,
            danger,
        })
    }
}

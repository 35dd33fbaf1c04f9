//! The environment of a repair, built from an allow-list (`data/environment.toml`): every other variable is removed,
//! however harmless it looks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

/// Search path if nothing usable is left of the owner's.
const DEFAULT_SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The variable that tells a command that it runs under unstuck, and in which run.
pub const RUN_VARIABLE: &str = "UNSTUCK_RUN";
/// Prefix of unstuck's own variables, which are never passed on.
const OWN_PREFIX: &str = "UNSTUCK_";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvAllowList {
    plain: BTreeSet<String>,
    prefixes: Vec<String>,
    paths: BTreeSet<String>,
    set: BTreeMap<String, String>,
}

impl EnvAllowList {
    fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<EnvAllowList> = LazyLock::new(|| {
            match toml::from_str(include_str!("../data/environment.toml")) {
                Ok(allowed) => allowed,
                // The embedded file is tested; only a build that skipped its tests can get here.
                Err(error) => unreachable!("environment.toml: {error}"),
            }
        });
        &BUILT_IN
    }

    fn allows(&self, name: &str, value: &OsStr, root: &Path) -> bool {
        self.plain.contains(name)
            || self.prefixes.iter().any(|begin| name.starts_with(begin))
            || self.paths.contains(name) && is_outside(Path::new(value), root)
    }
}

/// The environment of a repair.
///
/// ```
/// use std::path::Path;
/// use unstuck_repair::environment::RepairEnvironmentVariables;
///
/// let owner = [("PATH", "/repo/bin:.:/usr/bin"), ("LD_PRELOAD", "./x.so"), ("LANG", "C")];
/// let owner = owner.map(|(name, value)| (name.into(), value.into()));
/// let environment = RepairEnvironmentVariables::from_owner(owner, Path::new("/repo"), &[]);
/// assert_eq!(environment.get("PATH").unwrap(), "/usr/bin");
/// assert_eq!(environment.get("LANG").unwrap(), "C");
/// assert_eq!(environment.get("LD_PRELOAD"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairEnvironmentVariables(BTreeMap<OsString, OsString>);

impl RepairEnvironmentVariables {
    /// Builds the environment from the owner's for a project at `root`; variables that the owner lists are kept.
    pub fn from_owner(
        owner: impl IntoIterator<Item = (OsString, OsString)>,
        root: &Path,
        keep: &[String],
    ) -> Self {
        let allowed = EnvAllowList::built_in();
        let owner: BTreeMap<_, _> = owner.into_iter().collect();
        let passes = |name: &OsStr, value: &OsStr| {
            name.to_str().is_some_and(|name| {
                let is_kept = keep.iter().any(|kept| kept == name) && !name.starts_with(OWN_PREFIX);
                is_kept || allowed.allows(name, value, root)
            })
        };
        let search = owner.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let mut rebuilt: BTreeMap<_, _> = owner
            .into_iter()
            .filter(|(name, value)| passes(name, value))
            .collect();
        let set = allowed.set.iter();
        rebuilt.extend(set.map(|(name, value)| (name.into(), value.into())));
        rebuilt.insert("PATH".into(), search_path(&search, root));
        Self(rebuilt)
    }

    /// Returns the environment with one more variable.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Returns the environment without search path directories that lead into the project through a symlink.
    #[must_use]
    pub fn without_links_into(self, root: &Path) -> Self {
        let leads_outside = |folder: &PathBuf| {
            let real = folder.canonicalize();
            real.is_ok_and(|real| !real.starts_with(root))
        };
        let search = self.get("PATH").unwrap_or_default();
        let folders = std::env::split_paths(search).filter(leads_outside);
        let search = std::env::join_paths(folders).unwrap_or_default();
        self.with_variable("PATH", or_default(search))
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns all variables.
    pub fn pairs(&self) -> Vec<(OsString, OsString)> {
        self.0
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// Returns the absolute directories of a search path outside the project, without duplicates, in order.
fn search_path(search: &OsStr, root: &Path) -> OsString {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in std::env::split_paths(search) {
        if is_outside(&folder, root) && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    or_default(std::env::join_paths(folders).unwrap_or_default())
}

fn or_default(search: OsString) -> OsString {
    if search.is_empty() {
        DEFAULT_SEARCH_PATH.into()
    } else {
        search
    }
}

/// True if a path is absolute and outside the project, whatever `..` it contains.
fn is_outside(path: &Path, root: &Path) -> bool {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    path.is_absolute() && !plain.starts_with(root) && !path.as_os_str().as_bytes().contains(&0)
}

#[cfg(test)]
mod tests;

//! The one place that reads the environment.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// A variable, unless it is unset, empty or not text.
fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that reads the environment"
    )]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

/// The user's own configuration file, whether or not it exists.
pub(crate) fn user_config() -> Option<PathBuf> {
    let base = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    Some(base.or_else(home)?.join("unstuck").join("config.toml"))
}

/// The folder for what unstuck itself keeps, whether or not it exists.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let base = variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".local").join("state"));
    Some(base.or_else(home)?.join("unstuck"))
}

/// The names of all programs on the search path.
pub(crate) fn programs() -> BTreeSet<String> {
    let path = variable("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter_map(|folder| std::fs::read_dir(folder).ok());
    folders
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

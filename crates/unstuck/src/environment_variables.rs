//! Single place that reads environment variables.
#![expect(
    clippy::disallowed_methods,
    reason = "files of the system, which no agent can put there"
)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use unstuck_core::redact::{Redactor, secret_values};
use unstuck_network::NetworkProbe;
use unstuck_store::StoreLocation;

use crate::error_report::error_with_hint;

/// Returns a variable unless it is unset, empty or not UTF-8.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only module that reads the environment"
    )]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

/// Returns the directory of the user's configuration, even if it does not exist.
pub(crate) fn user_config() -> Option<PathBuf> {
    let base = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    Some(base.or_else(home)?.join("unstuck"))
}

/// True on a CI machine, where long waits for human input make no sense.
pub(crate) fn is_ci() -> bool {
    variable("CI").is_some_and(|ci| !matches!(ci.as_str(), "0" | "false"))
}

/// Returns the probe for network connectivity.
pub(crate) fn network_probe() -> NetworkProbe {
    NetworkProbe::System {
        has_proxy: has_proxy(),
    }
}

/// True if programs reach the network through a proxy.
fn has_proxy() -> bool {
    const NAMES: [&str; 3] = ["https_proxy", "http_proxy", "all_proxy"];
    let is_set = |name: &str| variable(name).is_some();
    NAMES
        .iter()
        .any(|name| is_set(name) || is_set(&name.to_uppercase()))
}

/// Returns the user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from)
}

/// Returns the user id that invoked `sudo`.
pub(crate) fn sudo_user() -> Option<u32> {
    variable("SUDO_UID")?.parse().ok()
}

/// Returns the state directory of unstuck.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let base = variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || home().map(|home| home.join(".local").join("state"));
    Some(base.or_else(home)?.join("unstuck"))
}

/// Returns the default store location, used without `--store`.
pub(crate) fn store_location() -> Result<StoreLocation> {
    match named_store() {
        Some(named) => StoreLocation::parse(&named).map_err(crate::store::with_hint),
        None => Ok(StoreLocation::file(store_dir()?.join("unstuck.db"))),
    }
}

/// Returns the store named by the environment.
pub(crate) fn named_store() -> Option<String> {
    variable("UNSTUCK_STORE")
}

/// Returns the store of the demo. It is separate, so that the demo leaves no trace in the user's own history.
pub(crate) fn demo_store() -> Result<StoreLocation> {
    Ok(StoreLocation::file(store_dir()?.join("demo.db")))
}

fn store_dir() -> Result<PathBuf> {
    state_dir().ok_or_else(|| {
        error_with_hint(
            "cannot locate the state directory: neither XDG_STATE_HOME nor HOME is set",
            "set HOME or XDG_STATE_HOME, or specify a database with --store FILE or UNSTUCK_STORE",
        )
    })
}

/// Returns all variables that are valid UTF-8.
pub(crate) fn all() -> impl Iterator<Item = (String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text)
}

/// Returns a redactor for secrets, including the values of secret variables.
pub(crate) fn redactor() -> Redactor {
    Redactor::new(secret_values(all()))
}

/// Returns all variables as OS strings.
pub(crate) fn all_os() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// Returns unstuck's own directories and files, which must be hidden from sandboxed processes.
pub(crate) fn own_paths(store: &StoreLocation) -> Vec<PathBuf> {
    let beside = [store.path().to_owned(), store.path().with_extension("d")];
    let folders = user_config().into_iter().chain(state_dir());
    folders.chain(beside).collect()
}

/// Returns the directories of `PATH`.
pub(crate) fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.into_iter()
}

/// Returns the names of all programs on `PATH`.
pub(crate) fn program_names() -> BTreeSet<String> {
    let folders = search_path().filter_map(|folder| std::fs::read_dir(folder).ok());
    folders
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

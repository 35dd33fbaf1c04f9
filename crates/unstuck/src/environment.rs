//! The one place that reads the environment.
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

/// A variable, unless it is unset, empty or not text.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that reads the environment"
    )]
    let value = std::env::var(name);
    value.ok().filter(|value| !value.is_empty())
}

/// The folder of the user's own configuration, whether or not it exists.
pub(crate) fn user_config() -> Option<PathBuf> {
    let base = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".config"));
    Some(base.or_else(home)?.join("unstuck"))
}

/// Whether this is a machine of continuous integration, where nobody waits for hours.
pub(crate) fn is_ci() -> bool {
    variable("CI").is_some_and(|ci| !matches!(ci.as_str(), "0" | "false"))
}

/// Tells whether there is a network at all.
pub(crate) fn network_probe() -> NetworkProbe {
    NetworkProbe::System {
        has_proxy: has_proxy(),
    }
}

/// Whether programs reach the network through a proxy.
fn has_proxy() -> bool {
    const NAMES: [&str; 3] = ["https_proxy", "http_proxy", "all_proxy"];
    let is_set = |name: &str| variable(name).is_some();
    NAMES
        .iter()
        .any(|name| is_set(name) || is_set(&name.to_uppercase()))
}

/// The user's own folder.
pub(crate) fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from)
}

/// The user who became root by `sudo`.
pub(crate) fn sudo_user() -> Option<u32> {
    variable("SUDO_UID")?.parse().ok()
}

/// Where unstuck keeps what it has to remember.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let base = variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || home().map(|home| home.join(".local").join("state"));
    Some(base.or_else(home)?.join("unstuck"))
}

/// The store that counts where none is named on the command line.
pub(crate) fn store_location() -> Result<StoreLocation> {
    match named_store() {
        Some(named) => StoreLocation::parse(&named).map_err(crate::store::with_hint),
        None => Ok(StoreLocation::file(store_dir()?.join("unstuck.db"))),
    }
}

/// The store that the environment names.
pub(crate) fn named_store() -> Option<String> {
    variable("UNSTUCK_STORE")
}

/// The store of the demo: beside the usual one, so that the demo leaves no trace in a person's own history.
pub(crate) fn demo_store() -> Result<StoreLocation> {
    Ok(StoreLocation::file(store_dir()?.join("demo.db")))
}

fn store_dir() -> Result<PathBuf> {
    state_dir().ok_or_else(|| {
        error_with_hint(
            "there is no place for the store: neither XDG_STATE_HOME nor HOME is set",
            "--store FILE or UNSTUCK_STORE names one",
        )
    })
}

/// All variables, as far as they are text.
pub(crate) fn all() -> impl Iterator<Item = (String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text)
}

/// Takes out what looks like a secret, and the values of the variables that hold one.
pub(crate) fn redactor() -> Redactor {
    Redactor::new(secret_values(all()))
}

/// All variables, as they are.
pub(crate) fn all_os() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// Unstuck's own folders and files, which nothing that it runs for others may see.
pub(crate) fn own_paths(store: &StoreLocation) -> Vec<PathBuf> {
    let beside = [store.path().to_owned(), store.path().with_extension("d")];
    let folders = user_config().into_iter().chain(state_dir());
    folders.chain(beside).collect()
}

/// The folders in which programs are looked for by their names.
pub(crate) fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.into_iter()
}

/// The names of all programs on the search path.
pub(crate) fn program_names() -> BTreeSet<String> {
    let folders = search_path().filter_map(|folder| std::fs::read_dir(folder).ok());
    folders
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

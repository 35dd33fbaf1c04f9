//! The servers of this user that run: each leaves a note in the state folder for as long as it listens.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unstuck_run::process::ProcessId;
use unstuck_store::StoreLocation;

use crate::environment;

/// A server that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunningServer {
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Its store.
    store: PathBuf,
    process: ProcessId,
}

/// A note that this process listens; it is taken away with this.
pub(crate) struct ServerRegistration(PathBuf);

impl Drop for ServerRegistration {
    fn drop(&mut self) {
        // A note of a process that is gone counts for nothing anyway.
        let _ = fs::remove_file(&self.0);
    }
}

/// Leaves a note that this process listens; none where there is no place for it.
pub(crate) fn register(listen: SocketAddr, store: &StoreLocation) -> Option<ServerRegistration> {
    let folder = registry_dir()?;
    fs::create_dir_all(&folder).ok()?;
    let process = ProcessId::own();
    let server = RunningServer {
        listen,
        store: absolute_store_path(store),
        process,
    };
    let path = folder.join(format!("{}.json", process.pid));
    fs::write(&path, serde_json::to_vec(&server).ok()?).ok()?;
    Some(ServerRegistration(path))
}

/// The servers of this store that run, by their addresses.
pub(crate) fn running_for_store(store: &StoreLocation) -> Vec<RunningServer> {
    let Some(entries) = registry_dir().and_then(|folder| fs::read_dir(folder).ok()) else {
        return Vec::new();
    };
    let notes = entries.filter_map(|entry| fs::read(entry.ok()?.path()).ok());
    let servers = notes.filter_map(|note| serde_json::from_slice::<RunningServer>(&note).ok());
    let store = absolute_store_path(store);
    let is_meant = |one: &RunningServer| one.store == store && one.process.is_alive();
    let mut servers: Vec<_> = servers.filter(is_meant).collect();
    servers.sort_by_key(|one| one.listen);
    servers
}

fn registry_dir() -> Option<PathBuf> {
    Some(environment::state_dir()?.join("servers"))
}

/// The store by a name that holds in every folder.
fn absolute_store_path(store: &StoreLocation) -> PathBuf {
    let path: &Path = store.path();
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

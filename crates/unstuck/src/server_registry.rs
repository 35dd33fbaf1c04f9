//! Registry of the user's running servers: each writes a file in the state directory while it listens.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unstuck_run::process::ProcessId;
use unstuck_store::StoreLocation;

use crate::environment_variables;

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunningServer {
    /// Listen address.
    pub(crate) listen: SocketAddr,
    /// Its store.
    store: PathBuf,
    process: ProcessId,
}

/// Registration of this process; removed on drop.
pub(crate) struct RunningServerFile(PathBuf);

impl Drop for RunningServerFile {
    fn drop(&mut self) {
        // A registration of a dead process is ignored anyway.
        let _ = fs::remove_file(&self.0);
    }
}

/// Registers this process as listening; none if there is no location for it.
pub(crate) fn register(listen: SocketAddr, store: &StoreLocation) -> Option<RunningServerFile> {
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
    Some(RunningServerFile(path))
}

/// Returns the running servers of this store, by address.
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
    Some(environment_variables::state_dir()?.join("servers"))
}

/// Returns the store as an absolute path.
fn absolute_store_path(store: &StoreLocation) -> PathBuf {
    let path: &Path = store.path();
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

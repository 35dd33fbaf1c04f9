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
use unstuck_store::Location;

use crate::environment;

/// A server that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Its store.
    store: PathBuf,
    process: ProcessId,
}

/// A note that this process listens; it is taken away with this.
pub(crate) struct Listening(PathBuf);

impl Drop for Listening {
    fn drop(&mut self) {
        // A note of a process that is gone counts for nothing anyway.
        let _ = fs::remove_file(&self.0);
    }
}

/// Leaves a note that this process listens; none where there is no place for it.
pub(crate) fn note(listen: SocketAddr, store: &Location) -> Option<Listening> {
    let folder = folder()?;
    fs::create_dir_all(&folder).ok()?;
    let process = ProcessId::own();
    let server = Server {
        listen,
        store: place(store),
        process,
    };
    let path = folder.join(format!("{}.json", process.pid));
    fs::write(&path, serde_json::to_vec(&server).ok()?).ok()?;
    Some(Listening(path))
}

/// The servers of this store that run, by their addresses.
pub(crate) fn of_store(store: &Location) -> Vec<Server> {
    let Some(entries) = folder().and_then(|folder| fs::read_dir(folder).ok()) else {
        return Vec::new();
    };
    let notes = entries.filter_map(|entry| fs::read(entry.ok()?.path()).ok());
    let servers = notes.filter_map(|note| serde_json::from_slice::<Server>(&note).ok());
    let store = place(store);
    let is_meant = |one: &Server| one.store == store && one.process.is_alive();
    let mut servers: Vec<_> = servers.filter(is_meant).collect();
    servers.sort_by_key(|one| one.listen);
    servers
}

fn folder() -> Option<PathBuf> {
    Some(environment::state_folder()?.join("servers"))
}

/// The store by a name that holds in every folder.
fn place(store: &Location) -> PathBuf {
    let path: &Path = store.path();
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

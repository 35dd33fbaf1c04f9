//! Facts about running processes, their ports and open files; read from `/proc`, so only on Linux.
#![expect(
    clippy::disallowed_methods,
    reason = "everything is read from /proc; PID files of the project are read by its handle"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, test_kill_process};
use unstuck_core::repair::{PortFact, ProjectPidFileFacts};

use super::project_listing::ProjectListing;

/// Maximum number of processes to check.
const MAX_PROCESSES: usize = 5_000;
/// Maximum number of open files to check per process.
const MAX_OPEN_FILES: usize = 2_000;
/// Maximum size of a PID file.
const MAX_PID_FILE_BYTES: u64 = 64;

/// Returns the project files that processes have open, or `None` if that cannot be determined here.
pub(super) fn open_files(root: &Path) -> Option<BTreeSet<PathBuf>> {
    let root = root.canonicalize().ok()?;
    let mut open = BTreeSet::new();
    for pid in list_pids()? {
        let inside = files_open_by(pid)
            .into_iter()
            .filter(|path| path.starts_with(&root));
        open.extend(inside);
    }
    open.extend(listening_unix_sockets(&root));
    Some(open)
}

/// Returns the PID files of the project.
pub(super) fn pid_files(
    tree: &ProjectListing,
    asked: &BTreeSet<String>,
) -> BTreeMap<String, ProjectPidFileFacts> {
    let named =
        |path: &&str| path.ends_with(".pid") || path.ends_with("pid") || path.ends_with(".pidfile");
    let listed = tree.files();
    let listed = listed.iter().copied().filter(named);
    let all: BTreeSet<&str> = listed.chain(asked.iter().map(String::as_str)).collect();
    let numbered = all.into_iter().filter_map(|path| {
        let text = tree.read_text(path, MAX_PID_FILE_BYTES)?;
        let pid: u32 = text.trim().parse().ok().filter(|pid| *pid > 0)?;
        let alive = is_alive(pid);
        let ours = if alive {
            is_working_in(pid, tree.root())
        } else {
            None
        };
        Some((
            path.to_owned(),
            ProjectPidFileFacts {
                pid,
                alive,
                in_project: ours,
            },
        ))
    });
    numbered.collect()
}

/// Returns facts about the requested ports, and the ports on which the project's processes listen. Ports whose state is
/// unknown are omitted.
pub(super) fn port_facts(
    root: &Path,
    asked: &BTreeSet<u16>,
    wanted: bool,
) -> BTreeMap<u16, PortFact> {
    let mut facts = BTreeMap::new();
    let (true, Some(listening)) = (wanted || !asked.is_empty(), listening_sockets_by_port()) else {
        return facts;
    };
    let holders = port_owners(&listening);
    for (port, pid) in &holders {
        let ours = is_working_in(*pid, root);
        if asked.contains(port) || ours == Some(true) {
            let command = command_of(*pid);
            let pid = Some(*pid);
            facts.insert(
                *port,
                PortFact {
                    pid,
                    in_project: ours,
                    command,
                },
            );
        }
    }
    // A port held by a process that is not visible from here stays unknown.
    let free = asked.iter().filter(|port| !listening.contains_key(port));
    facts.extend(free.map(|port| (*port, PortFact::default())));
    facts
}

fn list_pids() -> Option<Vec<u32>> {
    let entries = fs::read_dir("/proc").ok()?;
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let pids = names.filter_map(|name| name.parse().ok());
    Some(pids.take(MAX_PROCESSES).collect())
}

fn files_open_by(pid: u32) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let entries = entries.flatten().take(MAX_OPEN_FILES);
    entries
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .collect()
}

/// Returns the Unix sockets in the project with a listener.
fn listening_unix_sockets(root: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let paths = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7));
    let paths = paths.map(|path| root.join(path));
    paths.filter(|path| path.starts_with(root)).collect()
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process that we may not signal is alive, too.
    let lives = |pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH));
    pid.is_some_and(lives) && !is_zombie(pid)
}

/// True for a process that has ended but was not reaped.
fn is_zombie(pid: Option<Pid>) -> bool {
    let Some(pid) = pid else {
        return false;
    };
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let state = stat.ok().and_then(|stat| {
        let (_, rest) = stat.rsplit_once(')')?;
        rest.trim_start().chars().next()
    });
    state == Some('Z')
}

/// Returns true if a process works in the project, or `None` if that is not visible.
fn is_working_in(pid: u32, root: &Path) -> Option<bool> {
    let root = root.canonicalize().ok()?;
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    Some(folder.starts_with(root))
}

fn command_of(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0);
    let words: Vec<String> = words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    words.join(" ").trim().to_owned()
}

/// Returns the listening sockets by port.
fn listening_sockets_by_port() -> Option<BTreeMap<u16, BTreeSet<u64>>> {
    let mut all: BTreeMap<u16, BTreeSet<u64>> = BTreeMap::new();
    let four = fs::read_to_string("/proc/net/tcp").ok()?;
    let six = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    for line in four.lines().chain(six.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(local), Some(&"0A"), Some(inode)) = (words.get(1), words.get(3), words.get(9))
        else {
            continue;
        };
        let port = local
            .rsplit(':')
            .next()
            .and_then(|port| u16::from_str_radix(port, 16).ok());
        if let (Some(port), Ok(inode)) = (port, inode.parse()) {
            all.entry(port).or_default().insert(inode);
        }
    }
    Some(all)
}

/// Returns the processes that hold the sockets, by port.
fn port_owners(listening: &BTreeMap<u16, BTreeSet<u64>>) -> BTreeMap<u16, u32> {
    let sockets: BTreeMap<PathBuf, u16> = listening
        .iter()
        .flat_map(|(port, inodes)| inodes.iter().map(move |inode| (inode, port)))
        .map(|(inode, port)| (PathBuf::from(format!("socket:[{inode}]")), *port))
        .collect();
    let mut holders = BTreeMap::new();
    for pid in list_pids().unwrap_or_default() {
        for path in files_open_by(pid) {
            if let Some(port) = sockets.get(&path) {
                holders.entry(*port).or_insert(pid);
            }
        }
    }
    holders
}

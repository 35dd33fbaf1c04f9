//! Facts about a project that repairs depend on.
//!
//! Collected elsewhere and only read here. Facts that were not collected are unknown, and unknown facts neither support
//! nor rule out a command.

use std::collections::{BTreeMap, BTreeSet};

use super::path_strings;

/// Facts about a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFacts {
    /// The project directory, in every spelling that a message may use; the usual one first.
    pub roots: Vec<String>,
    /// The working directory of the failed command, relative to the root; empty for the root itself.
    pub working_dir: String,
    /// The files and directories of the project by relative path, deeply nested ones left out.
    pub listed: BTreeSet<String>,
    /// Facts about the probed paths, by relative path.
    pub paths: BTreeMap<String, ProjectPathFacts>,
    /// Scripts and targets of the project: for each runner, names and commands.
    pub scripts: BTreeMap<String, BTreeMap<String, String>>,
    /// The probed programs that exist outside the project; none if they were not probed.
    pub programs: Option<BTreeSet<String>>,
    /// For each probed name, the project files that contain it.
    pub named_in: BTreeMap<String, BTreeSet<String>>,
    /// The pid files of the project.
    pub pid_files: BTreeMap<String, ProjectPidFileFacts>,
    /// Listeners of the probed ports and of the ports of project processes; unknown ports are absent.
    pub ports: BTreeMap<u16, PortFact>,
    /// The paths of the submodules.
    pub submodules: BTreeSet<String>,
    /// The package manager that the project declares.
    pub package_manager: Option<String>,
}

/// Facts about a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectPathFacts {
    /// Type of the entry.
    pub entry: FsEntryKind,
    /// True if the file is executable for any user.
    pub executable: bool,
    /// True if this process may change it.
    pub writable: bool,
    /// True if a file or directory is empty.
    pub empty: bool,
    /// True if lines end with CR and LF.
    pub crlf: bool,
    /// True if it starts with a byte order mark.
    pub has_bom: bool,
    /// True if it is a git LFS pointer.
    pub lfs_pointer: bool,
    /// True if a process has it open; none if unknown.
    pub in_use: Option<bool>,
    /// Target of a link within the project, relative to the root.
    pub link: Option<String>,
    /// The start of a text file.
    pub text: Option<String>,
}

/// Type of the entry at a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FsEntryKind {
    /// Nothing exists there.
    #[default]
    Nothing,
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link without an existing target.
    DanglingLink,
    /// A socket, a pipe, a device.
    Other,
}

/// A file that contains a process id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProjectPidFileFacts {
    /// The process id.
    pub pid: u32,
    /// True if the process is alive.
    pub alive: bool,
    /// True if it runs in the project; none if unknown.
    pub in_project: Option<bool>,
}

/// The listener of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortFact {
    /// The process; none if the port is free.
    pub pid: Option<u32>,
    /// True if it runs in the project; none if unknown.
    pub in_project: Option<bool>,
    /// Its command line.
    pub command: String,
}

impl ProjectFacts {
    /// Returns the path relative to the root; none if it is outside.
    pub fn relative(&self, path: &str) -> Option<String> {
        path_strings::relative(&self.roots, &self.working_dir, path)
    }

    /// Returns the facts about a relative path; none if it was not probed.
    pub fn path_fact(&self, path: &str) -> Option<&ProjectPathFacts> {
        self.paths.get(path)
    }

    /// Copies the facts about each path to the targets of its links.
    pub fn copy_facts_to_link_targets(&mut self) {
        let links = self
            .paths
            .iter()
            .map(|(path, fact)| (self.resolve_links(path), fact));
        let targets = links.filter(|(path, _)| !self.paths.contains_key(path));
        let targets: Vec<_> = targets.map(|(path, fact)| (path, fact.clone())).collect();
        self.paths.extend(targets);
    }

    /// Resolves the links in a relative path.
    pub(super) fn resolve_links(&self, path: &str) -> String {
        let link = |folder: &str| self.path_fact(folder)?.link.clone();
        let found = path_strings::ancestors(path).find_map(|folder| Some((folder, link(folder)?)));
        match found {
            Some((folder, target)) => format!("{target}{}", &path[folder.len()..]),
            None => path.to_owned(),
        }
    }

    /// Returns the entry type at a relative path; none if it was not probed.
    pub(super) fn entry_at(&self, path: &str) -> Option<FsEntryKind> {
        match self.path_fact(path) {
            Some(fact) => Some(fact.entry),
            None if self.listed.contains(path) => Some(FsEntryKind::File),
            None => None,
        }
    }

    /// Returns true if a relative path is known to exist.
    pub(super) fn exists(&self, path: &str) -> bool {
        let there = |thing| !matches!(thing, FsEntryKind::Nothing | FsEntryKind::DanglingLink);
        path.is_empty() || self.entry_at(path).is_some_and(there)
    }

    /// Returns true if a relative path is known to be missing.
    pub(super) fn is_missing(&self, path: &str) -> bool {
        let gone = |thing| matches!(thing, FsEntryKind::Nothing | FsEntryKind::DanglingLink);
        self.entry_at(path).is_some_and(gone)
    }

    /// Returns true if a path or pattern matches something in the project.
    pub(super) fn has_matching(&self, pattern: &str) -> bool {
        if pattern.contains('*') {
            self.listed
                .iter()
                .any(|path| path_strings::covers(pattern, path))
        } else {
            self.exists(pattern)
        }
    }

    /// Returns true if one of the names is a file of the directory.
    pub(super) fn has_any(&self, folder: &str, names: &[String]) -> bool {
        names.iter().any(|name| self.has_file(folder, name))
    }

    /// Returns true if the directory has such a file; `*` matches any characters.
    pub(super) fn has_file(&self, folder: &str, name: &str) -> bool {
        let path = path_strings::join(folder, name);
        if !name.contains('*') {
            return self.exists(&path);
        }
        let mut all = self.listed.iter();
        all.any(|one| path_strings::parent(one) == folder && path_strings::matches_glob(&path, one))
    }

    /// Returns the command of a project script.
    pub(super) fn script(&self, runner: &str, name: &str) -> Option<&str> {
        Some(self.scripts.get(runner)?.get(name)?.as_str())
    }

    /// Returns the commands of a script in the other packages of the workspace, each with its package directory.
    pub(super) fn member_scripts(
        &self,
        runner: &str,
        name: &str,
    ) -> impl Iterator<Item = (&str, &str)> {
        let members = self.scripts.iter().filter_map(move |(key, scripts)| {
            let folder = key.strip_suffix(runner)?.strip_suffix('/')?;
            Some((folder, scripts))
        });
        members.filter_map(move |(folder, scripts)| Some((folder, scripts.get(name)?.as_str())))
    }

    /// Returns true if a program exists or was not probed.
    pub(super) fn has_program(&self, name: &str) -> bool {
        let all = self.programs.as_ref();
        all.is_none_or(|all| all.contains(name))
    }

    /// Returns the project files that contain a name.
    pub(super) fn files_naming(&self, name: &str) -> impl Iterator<Item = &str> {
        let files = self.named_in.get(name).into_iter().flatten();
        files.map(String::as_str)
    }
}

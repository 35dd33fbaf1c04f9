//! What a project really has, as far as a repair depends on it.
//!
//! Whoever can look at the machine fills this in; here it is only read. What nobody looked at counts as unknown, and
//! what is unknown speaks neither for nor against a command.

use std::collections::{BTreeMap, BTreeSet};

use super::paths;

/// What a project really has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFacts {
    /// The folder of the project, in every spelling that a message may use; the first is the usual one.
    pub roots: Vec<String>,
    /// The folder in which the failed command ran, relative to the root; empty for the root itself.
    pub working_dir: String,
    /// The files and folders of the project by their relative paths, the deep ones left out.
    pub listed: BTreeSet<String>,
    /// What is at the paths that were asked about, by relative path.
    pub paths: BTreeMap<String, PathFact>,
    /// Scripts and targets of the project: for each runner, the names and what they run.
    pub scripts: BTreeMap<String, BTreeMap<String, String>>,
    /// The programs that exist outside the project, of those asked about; none if nobody looked.
    pub programs: Option<BTreeSet<String>>,
    /// For each name that was asked about, the files of the project that contain it.
    pub named_in: BTreeMap<String, BTreeSet<String>>,
    /// The files of the project that hold the number of a process.
    pub pid_files: BTreeMap<String, PidFile>,
    /// Who listens on the ports that were asked about, and on which ports processes of the project do; a port that
    /// nobody could find out about is absent.
    pub ports: BTreeMap<u16, PortFact>,
    /// The paths of the submodules.
    pub submodules: BTreeSet<String>,
    /// The package manager that the project names itself.
    pub package_manager: Option<String>,
}

/// What is at a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathFact {
    /// What it is.
    pub entry: FsEntry,
    /// Whether somebody may execute it.
    pub executable: bool,
    /// Whether we may change it.
    pub writable: bool,
    /// Whether a file or folder is empty.
    pub empty: bool,
    /// Whether lines end with CR and LF.
    pub crlf: bool,
    /// Whether it starts with a byte order mark.
    pub has_bom: bool,
    /// Whether it stands for a file that git LFS keeps elsewhere.
    pub lfs_pointer: bool,
    /// Whether a process has it open; none if that could not be found out.
    pub in_use: Option<bool>,
    /// Where a link within the project leads, relative to the root.
    pub link: Option<String>,
    /// The start of a text file.
    pub text: Option<String>,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FsEntry {
    /// Nothing.
    #[default]
    Nothing,
    /// A file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link that leads nowhere.
    DanglingLink,
    /// A socket, a pipe, a device.
    Other,
}

/// A file that holds the number of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PidFile {
    /// The number.
    pub pid: u32,
    /// Whether such a process lives.
    pub alive: bool,
    /// Whether it works in the project; none if that could not be found out.
    pub in_project: Option<bool>,
}

/// Who listens on a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortFact {
    /// The process; none if nobody listens.
    pub pid: Option<u32>,
    /// Whether it works in the project; none if that could not be found out.
    pub in_project: Option<bool>,
    /// Its command line.
    pub command: String,
}

impl ProjectFacts {
    /// The path relative to the root; none if it leads elsewhere.
    pub fn relative(&self, path: &str) -> Option<String> {
        paths::relative(&self.roots, &self.working_dir, path)
    }

    /// What is at a relative path; none if nobody looked.
    pub fn path_fact(&self, path: &str) -> Option<&PathFact> {
        self.paths.get(path)
    }

    /// Notes what is known about each path also for the path that its links lead to.
    pub fn copy_facts_to_link_targets(&mut self) {
        let links = self
            .paths
            .iter()
            .map(|(path, fact)| (self.resolve_links(path), fact));
        let targets = links.filter(|(path, _)| !self.paths.contains_key(path));
        let targets: Vec<_> = targets.map(|(path, fact)| (path, fact.clone())).collect();
        self.paths.extend(targets);
    }

    /// The relative path with the links on its way replaced by where they lead.
    pub(super) fn resolve_links(&self, path: &str) -> String {
        let link = |folder: &str| self.path_fact(folder)?.link.clone();
        let found = paths::ancestors(path).find_map(|folder| Some((folder, link(folder)?)));
        match found {
            Some((folder, target)) => format!("{target}{}", &path[folder.len()..]),
            None => path.to_owned(),
        }
    }

    /// What a relative path leads to; none if nobody looked.
    pub(super) fn entry_at(&self, path: &str) -> Option<FsEntry> {
        match self.path_fact(path) {
            Some(fact) => Some(fact.entry),
            None if self.listed.contains(path) => Some(FsEntry::File),
            None => None,
        }
    }

    /// Whether there is something at a relative path, as far as anybody looked.
    pub(super) fn exists(&self, path: &str) -> bool {
        let there = |thing| !matches!(thing, FsEntry::Nothing | FsEntry::DanglingLink);
        path.is_empty() || self.entry_at(path).is_some_and(there)
    }

    /// Whether there is known to be nothing at a relative path.
    pub(super) fn is_missing(&self, path: &str) -> bool {
        let gone = |thing| matches!(thing, FsEntry::Nothing | FsEntry::DanglingLink);
        self.entry_at(path).is_some_and(gone)
    }

    /// Whether something of the project is at a path, or is like a pattern.
    pub(super) fn has_matching(&self, pattern: &str) -> bool {
        if pattern.contains('*') {
            self.listed.iter().any(|path| paths::covers(pattern, path))
        } else {
            self.exists(pattern)
        }
    }

    /// Whether one of the names is a file of the folder.
    pub(super) fn has_any(&self, folder: &str, names: &[String]) -> bool {
        names.iter().any(|name| self.has_file(folder, name))
    }

    /// Whether the folder has such a file; `*` stands for any characters.
    pub(super) fn has_file(&self, folder: &str, name: &str) -> bool {
        let path = paths::join(folder, name);
        if !name.contains('*') {
            return self.exists(&path);
        }
        let mut all = self.listed.iter();
        all.any(|one| paths::parent(one) == folder && paths::matches_glob(&path, one))
    }

    /// What a script of the project runs.
    pub(super) fn script(&self, runner: &str, name: &str) -> Option<&str> {
        Some(self.scripts.get(runner)?.get(name)?.as_str())
    }

    /// What a script runs in the other packages of the workspace, each with the folder of the package.
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

    /// Whether a program exists; also where nobody looked.
    pub(super) fn has_program(&self, name: &str) -> bool {
        let all = self.programs.as_ref();
        all.is_none_or(|all| all.contains(name))
    }

    /// The files of the project that contain a name.
    pub(super) fn files_naming(&self, name: &str) -> impl Iterator<Item = &str> {
        let files = self.named_in.get(name).into_iter().flatten();
        files.map(String::as_str)
    }
}

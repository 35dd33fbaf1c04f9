//! Finds the files that decide what a command executes.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use unstuck_core::watched_files::{
    ToolFileKnowledge, ToolWatchedFiles, directory_matches, path_matches, split_commands,
};

use super::project_file_list::ProjectFileList;
use super::read_entry::{PathContents, join_below_root, list_dir, read_path};
use crate::project_dir::ProjectRoot;

/// Maximum depth of scripts that call scripts.
const MAX_SCRIPT_DEPTH: usize = 4;
/// Maximum number of files for one command.
const MAX_FILES: usize = 4000;
/// Maximum number of working directories of one command.
const MAX_DIRS: usize = 64;

/// Pattern prefix for git's directories.
const GIT_PATTERN_PREFIX: &str = ".git/";

/// A file that decides what a command executes, as it was found.
#[derive(Debug)]
pub(super) struct FoundWatchedFile {
    /// Contents at the path.
    pub(super) contents: PathContents,
    /// If set, the whole file is compared because it is executed itself.
    pub(super) is_whole: bool,
    /// If set, the file is watched although it is in a directory of installed or built files.
    pub(super) is_member: bool,
}

/// The reason a file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FoundBy {
    /// A file of a tool.
    ToolFile,
    /// A file of a workspace member.
    WorkspaceMember,
    /// An executed file.
    Executed,
}

/// A search for the files of one or more commands.
pub(super) struct WatchedFileFinder<'r> {
    root: &'r ProjectRoot,
    known: &'static ToolFileKnowledge,
    git: &'r [PathBuf],
    tree: OnceCell<ProjectFileList>,
    /// Files found, by path.
    pub(super) found: BTreeMap<String, FoundWatchedFile>,
    /// Texts already visited, with their directories.
    visited_texts: BTreeSet<(String, String)>,
}

impl<'r> WatchedFileFinder<'r> {
    pub(super) fn new(root: &'r ProjectRoot, git: &'r [PathBuf]) -> Self {
        Self {
            root,
            known: ToolFileKnowledge::built_in(),
            git,
            tree: OnceCell::new(),
            found: BTreeMap::new(),
            visited_texts: BTreeSet::new(),
        }
    }

    /// Returns all files of the project.
    pub(super) fn tree(&self) -> &ProjectFileList {
        self.tree
            .get_or_init(|| ProjectFileList::walk(self.root.as_fd(), self.known))
    }

    /// Adds the files of a command that runs in a directory.
    pub(super) fn add_command(&mut self, text: &str, folder: &str) {
        self.add_text(text, folder, MAX_SCRIPT_DEPTH);
    }

    fn add_text(&mut self, text: &str, folder: &str, deepest: usize) {
        if deepest == 0
            || !self
                .visited_texts
                .insert((folder.to_owned(), text.to_owned()))
        {
            return;
        }
        let mut bases = vec![folder.to_owned()];
        for step in split_commands(text) {
            let uses = step.usage(self.known);
            if let Some(word) = &uses.next_directory {
                let there = self.dirs_of_word(&bases, word);
                append_unique(&mut bases, there);
            }
            for file in &uses.executes {
                self.add_executed_file(&bases, file, deepest);
            }
            if uses.tools.is_empty() {
                continue;
            }
            let mut places = bases.clone();
            for word in &uses.directories {
                let there = self.dirs_of_word(&bases, word);
                append_unique(&mut places, there);
            }
            for tool in &uses.tools {
                self.add_tool_files(tool, &places);
            }
            if uses.tools.iter().any(|tool| tool.scripts) {
                self.add_package_scripts(&places, &uses.scripts, deepest);
            }
        }
    }

    /// Returns the directories that a word may refer to: one that it names, or the parent of a file that it names.
    fn dirs_of_word(&self, bases: &[String], word: &str) -> Vec<String> {
        let mut found = Vec::new();
        for base in bases {
            let Some(path) = self.path_from_root(base, word) else {
                continue;
            };
            match self.read_path(&path) {
                PathContents::Directory => found.push(path),
                PathContents::File(_) => found.push(parent(&path).to_owned()),
                // A link to a directory leads to a directory.
                PathContents::Link(_)
                    if !list_dir(self.root.as_fd(), Path::new(&path)).is_empty() =>
                {
                    found.push(path);
                }
                _ => {}
            }
        }
        found
    }

    /// Returns a path relative to the root, or `None` if it leads out.
    fn path_from_root(&self, base: &str, word: &str) -> Option<String> {
        let path = Path::new(word);
        match path.strip_prefix(self.root.path()) {
            Ok(rest) => join_below_root("", rest),
            Err(_) => join_below_root(base, path),
        }
    }

    fn read_path(&self, path: &str) -> PathContents {
        read_path(self.root.as_fd(), Path::new(path))
    }

    /// Adds an executed file, and the files it calls.
    fn add_executed_file(&mut self, bases: &[String], file: &str, deepest: usize) {
        for base in bases {
            let Some(path) = self.path_from_root(base, file) else {
                continue;
            };
            let paths = if path.contains('*') {
                self.matching(parent(&path), name(&path))
            } else {
                vec![path]
            };
            for path in paths {
                match self.read_path(&path) {
                    PathContents::Absent | PathContents::Directory => {}
                    seen => self.add_file(path, seen, FoundBy::Executed, deepest),
                }
            }
        }
    }

    /// Adds the files of a tool: in each directory and its parents, and below if the tool searches there.
    fn add_tool_files(&mut self, tool: &ToolWatchedFiles, places: &[String]) {
        let mut folders: Vec<&str> = Vec::new();
        for place in places {
            let mut here = place.as_str();
            loop {
                if !folders.contains(&here) {
                    folders.push(here);
                }
                if here.is_empty() {
                    break;
                }
                here = parent(here);
            }
        }
        for folder in &folders {
            for pattern in tool.files.iter().chain(&self.known.always) {
                self.add_matching(folder, pattern);
            }
        }
        if !tool.files_below.is_empty() {
            self.add_member_files(tool, &folders);
        }
    }

    /// Adds the files of a tool in the members of a workspace, or everywhere.
    fn add_member_files(&mut self, tool: &ToolWatchedFiles, folders: &[&str]) {
        let members = self.member_patterns(tool, folders);
        let everywhere = tool.everywhere || tool.members.is_empty();
        if !everywhere && members.is_empty() {
            return;
        }
        let is_one = |path: &str| {
            members
                .iter()
                .any(|one| directory_matches(one, parent(path)))
        };
        let mut wanted = Vec::new();
        for path in &self.tree().files {
            if tool
                .files_below
                .iter()
                .any(|pattern| path_matches(pattern, path))
            {
                match is_one(path) {
                    true => wanted.push((path.clone(), FoundBy::WorkspaceMember)),
                    false if everywhere && !self.known.is_built(path) => {
                        wanted.push((path.clone(), FoundBy::ToolFile));
                    }
                    false => {}
                }
            }
        }
        if self.tree().is_truncated {
            self.mark_incomplete();
        }
        for (path, how) in wanted {
            let seen = self.read_path(&path);
            self.add_file(path, seen, how, 1);
        }
    }

    /// Returns the directories of members as patterns from the root; all directories if a list cannot be read.
    fn member_patterns(&self, tool: &ToolWatchedFiles, folders: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for source in &tool.members {
            let (file, key) = source.split_once('#').unwrap_or((source, ""));
            for folder in folders {
                let path = join(folder, file);
                let listed = match self.read_path(&path) {
                    PathContents::Absent | PathContents::Directory => None,
                    PathContents::File(bytes) => self.known.rule_for(&path).members(&bytes, key),
                    PathContents::Link(_) | PathContents::Unreadable(_) => Some(Vec::new()),
                };
                match listed {
                    Some(list) if list.is_empty() => found.push("**".to_owned()),
                    Some(list) => found.extend(list.iter().map(|one| join(folder, one))),
                    None => {}
                }
            }
        }
        found
    }

    fn add_matching(&mut self, folder: &str, pattern: &str) {
        if let Some(rest) = pattern.strip_prefix(GIT_PATTERN_PREFIX)
            && !self.git.is_empty()
        {
            if folder.is_empty() {
                self.add_git_files(rest);
            }
            return;
        }
        let path = join(folder, pattern);
        let paths = if let Some(below) = path.strip_suffix("/**") {
            let tree = ProjectFileList::walk_dir(self.root.as_fd(), below, |_| true);
            if tree.is_truncated {
                self.mark_incomplete();
            }
            tree.files
        } else if path.contains('*') {
            self.matching(parent(&path), name(&path))
        } else {
            vec![path]
        };
        for path in paths {
            if self.found.contains_key(&path) {
                continue;
            }
            match self.read_path(&path) {
                PathContents::Directory => {}
                seen => self.add_file(path, seen, FoundBy::ToolFile, 2),
            }
        }
    }

    /// Adds settings and hooks of git, wherever it keeps them.
    fn add_git_files(&mut self, pattern: &str) {
        for folder in self.git {
            // A path that is no longer a directory is skipped.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(handle) = rustix::fs::open(folder, flags, Mode::empty()) else {
                continue;
            };
            let names = match pattern.rsplit_once('/') {
                Some((inner, "*")) => {
                    let names = list_dir(handle.as_fd(), Path::new(inner)).into_iter();
                    names.map(|(name, _)| format!("{inner}/{name}")).collect()
                }
                _ => vec![pattern.to_owned()],
            };
            for name in names {
                let seen = read_path(handle.as_fd(), Path::new(&name));
                let path = format!("{GIT_PATTERN_PREFIX}{name}");
                let known = self.found.get(&path).map(|found| &found.contents);
                if !matches!(known, Some(PathContents::File(_))) && seen != PathContents::Directory
                {
                    self.add_file(path, seen, FoundBy::WorkspaceMember, 0);
                }
            }
        }
    }

    fn matching(&self, folder: &str, pattern: &str) -> Vec<String> {
        let names = list_dir(self.root.as_fd(), Path::new(folder)).into_iter();
        let files = names.filter(|(name, is_folder)| !is_folder && path_matches(pattern, name));
        files.map(|(name, _)| join(folder, &name)).collect()
    }

    /// Records a file, its link target, and the other files it names.
    fn add_file(&mut self, path: String, seen: PathContents, how: FoundBy, deepest: usize) {
        let rule = self.known.rule_for(&path);
        if rule.ignores(&path) && how != FoundBy::Executed {
            return;
        }
        if self.found.len() >= MAX_FILES && !self.found.contains_key(&path) {
            self.mark_incomplete();
            return;
        }
        if let PathContents::Link(target) = &seen {
            let target = target.clone();
            self.add_link(path, target, how, deepest);
            return;
        }
        let (mut lines, mut followed) = (String::new(), Vec::new());
        if let PathContents::File(bytes) = &seen {
            if rule.calls_files || is_shell(bytes) {
                lines = String::from_utf8_lossy(bytes).into_owned();
            }
            followed = rule.referenced_files(bytes);
        }
        let folder = parent(&path).to_owned();
        if !self.insert(path, seen, how) || deepest == 0 {
            return;
        }
        self.add_called_files(&lines, &folder, deepest - 1);
        for file in followed {
            if let Some(path) = self.path_from_root(&folder, &file) {
                match self.read_path(&path) {
                    PathContents::Absent | PathContents::Directory => {}
                    seen => self.add_file(path, seen, how, deepest - 1),
                }
            }
        }
    }

    /// Records that the search was incomplete, which is treated as a change.
    fn mark_incomplete(&mut self) {
        let why = "too many files to check".to_owned();
        let path = "(all files)".to_owned();
        self.insert(
            path,
            PathContents::Unreadable(why),
            FoundBy::WorkspaceMember,
        );
    }

    /// Records the contents of a path; returns true if the path is new.
    fn insert(&mut self, path: String, seen: PathContents, how: FoundBy) -> bool {
        let known = self.found.get(&path);
        let (was_whole, was_member) =
            known.map_or((false, false), |found| (found.is_whole, found.is_member));
        let is_new = known.is_none();
        let found = FoundWatchedFile {
            contents: seen,
            is_whole: was_whole || how == FoundBy::Executed,
            is_member: was_member || how == FoundBy::WorkspaceMember,
        };
        self.found.insert(path, found);
        is_new
    }

    /// Records a link and its target.
    fn add_link(&mut self, path: String, target: PathBuf, how: FoundBy, deepest: usize) {
        let Some(there) = join_below_root(parent(&path), &target) else {
            let why = "symlink to a path outside the project".to_owned();
            self.insert(path, PathContents::Unreadable(why), how);
            return;
        };
        if self.insert(path, PathContents::Link(target), how) {
            match self.read_path(&there) {
                PathContents::Directory => {}
                seen => self.add_file(there, seen, how, deepest),
            }
        }
    }

    /// Adds the files that the lines of a script call; the tools they use are not followed.
    fn add_called_files(&mut self, lines: &str, folder: &str, deepest: usize) {
        let bases = [folder.to_owned(), String::new()];
        for step in split_commands(lines) {
            for file in step.usage(self.known).executes {
                self.add_executed_file(&bases, &file, deepest);
            }
        }
    }

    /// Adds the commands of the `package.json` scripts that the command runs.
    fn add_package_scripts(&mut self, places: &[String], words: &[String], deepest: usize) {
        let mut holders = Vec::new();
        for (path, found) in &self.found {
            let is_near = places.iter().any(|place| is_ancestor(parent(path), place));
            if let PathContents::File(bytes) = &found.contents
                && is_near
            {
                let scripts = self.known.rule_for(path).scripts(bytes);
                holders.push((parent(path).to_owned(), scripts));
            }
        }
        for (folder, scripts) in holders {
            let runs = |name: &str| {
                let around = ["pre", "post", ""]
                    .iter()
                    .filter_map(|way| name.strip_prefix(way));
                let named = |name: &str| words.iter().any(|word| word == name);
                around.into_iter().any(named) || self.known.lifecycle.iter().any(|own| own == name)
            };
            let texts = scripts.iter().filter(|(name, _)| runs(name));
            let texts: Vec<_> = texts.map(|(_, text)| text.clone()).collect();
            for text in texts {
                self.add_text(&text, &folder, deepest - 1);
            }
        }
    }
}

fn is_shell(bytes: &[u8]) -> bool {
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    line.starts_with(b"#!") && String::from_utf8_lossy(line).contains("sh")
}

fn append_unique(list: &mut Vec<String>, more: Vec<String>) {
    for one in more {
        if !list.contains(&one) && list.len() < MAX_DIRS {
            list.push(one);
        }
    }
}

/// True if a directory is the same as another one, or its ancestor.
fn is_ancestor(folder: &str, other: &str) -> bool {
    Path::new(other).starts_with(folder)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

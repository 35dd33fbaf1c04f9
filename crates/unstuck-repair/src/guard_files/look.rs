//! Finds the files that decide what a command executes.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use unstuck_core::guard_files::{GuardKnowledge, Tool, fits, folder_fits, steps};

use super::read::{Seen, joined, list, see};
use super::tree::Tree;
use crate::place::Root;

/// How deep scripts that call scripts are followed.
const DEEPEST: usize = 4;
/// How many files are looked at for one command.
const MOST: usize = 4000;
/// How many folders one command can work in, as far as they are looked at.
const MOST_FOLDERS: usize = 64;

/// The name by which the folders of git are known in patterns.
const GIT: &str = ".git/";

/// A file that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// What is there.
    pub(super) seen: Seen,
    /// Whether the whole of it counts because it is executed itself.
    pub(super) is_whole: bool,
    /// Whether it counts although it is in a folder of what is installed or built.
    pub(super) is_member: bool,
}

/// How a file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It is one of a tool's.
    Tools,
    /// It is one of a member's of a workspace.
    Members,
    /// It is executed.
    Executed,
}

/// Looks for the files of a command, or of several.
pub(super) struct Look<'r> {
    root: &'r Root,
    known: &'static GuardKnowledge,
    git: &'r [PathBuf],
    tree: OnceCell<Tree>,
    /// What was found, by path.
    pub(super) found: BTreeMap<String, Found>,
    /// Texts that were looked at, with their folders.
    done: BTreeSet<(String, String)>,
}

impl<'r> Look<'r> {
    pub(super) fn new(root: &'r Root, git: &'r [PathBuf]) -> Self {
        Self {
            root,
            known: GuardKnowledge::built_in(),
            git,
            tree: OnceCell::new(),
            found: BTreeMap::new(),
            done: BTreeSet::new(),
        }
    }

    /// All files of the project.
    pub(super) fn tree(&self) -> &Tree {
        self.tree
            .get_or_init(|| Tree::walk(self.root.as_fd(), self.known))
    }

    /// Takes in the files of a command that runs in a folder.
    pub(super) fn command(&mut self, text: &str, folder: &str) {
        self.text(text, folder, DEEPEST);
    }

    fn text(&mut self, text: &str, folder: &str, deepest: usize) {
        if deepest == 0 || !self.done.insert((folder.to_owned(), text.to_owned())) {
            return;
        }
        let mut bases = vec![folder.to_owned()];
        for step in steps(text) {
            let uses = step.look(self.known);
            if let Some(word) = &uses.goes_to {
                let there = self.folders(&bases, word);
                add(&mut bases, there);
            }
            for file in &uses.executes {
                self.executed(&bases, file, deepest);
            }
            if uses.tools.is_empty() {
                continue;
            }
            let mut places = bases.clone();
            for word in &uses.folders {
                let there = self.folders(&bases, word);
                add(&mut places, there);
            }
            for tool in &uses.tools {
                self.tool(tool, &places);
            }
            if uses.tools.iter().any(|tool| tool.scripts) {
                self.scripts(&places, &uses.scripts, deepest);
            }
        }
    }

    /// The folders that a word may mean: one that it names, or the one of a file that it names.
    fn folders(&self, bases: &[String], word: &str) -> Vec<String> {
        let mut found = Vec::new();
        for base in bases {
            let Some(path) = self.below(base, word) else {
                continue;
            };
            match self.see(&path) {
                Seen::Folder => found.push(path),
                Seen::File(_) => found.push(parent(&path).to_owned()),
                // A link to a folder leads to one.
                Seen::Link(_) if !list(self.root.as_fd(), Path::new(&path)).is_empty() => {
                    found.push(path);
                }
                _ => {}
            }
        }
        found
    }

    /// A path from the root; none if it leads out.
    fn below(&self, base: &str, word: &str) -> Option<String> {
        let path = Path::new(word);
        match path.strip_prefix(self.root.path()) {
            Ok(rest) => joined("", rest),
            Err(_) => joined(base, path),
        }
    }

    fn see(&self, path: &str) -> Seen {
        see(self.root.as_fd(), Path::new(path))
    }

    /// A file that is executed, and those that it calls.
    fn executed(&mut self, bases: &[String], file: &str, deepest: usize) {
        for base in bases {
            let Some(path) = self.below(base, file) else {
                continue;
            };
            let paths = match path.contains('*') {
                true => self.matching(parent(&path), name(&path)),
                false => vec![path],
            };
            for path in paths {
                match self.see(&path) {
                    Seen::Absent | Seen::Folder => {}
                    seen => self.take(path, seen, How::Executed, deepest),
                }
            }
        }
    }

    /// The files of a tool: in each folder and above, and where it looks there, everywhere below.
    fn tool(&mut self, tool: &Tool, places: &[String]) {
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
                self.pattern(folder, pattern);
            }
        }
        if !tool.below.is_empty() {
            self.below_root(tool, &folders);
        }
    }

    /// The files of a tool in the members of a workspace, or everywhere.
    fn below_root(&mut self, tool: &Tool, folders: &[&str]) {
        let members = self.members(tool, folders);
        let everywhere = tool.everywhere || tool.members.is_empty();
        if !everywhere && members.is_empty() {
            return;
        }
        let is_one = |path: &str| members.iter().any(|one| folder_fits(one, parent(path)));
        let mut wanted = Vec::new();
        for path in &self.tree().files {
            if tool.below.iter().any(|pattern| fits(pattern, path)) {
                match is_one(path) {
                    true => wanted.push((path.clone(), How::Members)),
                    false if everywhere && !self.known.is_built(path) => {
                        wanted.push((path.clone(), How::Tools));
                    }
                    false => {}
                }
            }
        }
        if self.tree().is_cut {
            self.too_many();
        }
        for (path, how) in wanted {
            let seen = self.see(&path);
            self.take(path, seen, how, 1);
        }
    }

    /// The folders of members, as patterns from the root; all folders where a list cannot be read.
    fn members(&self, tool: &Tool, folders: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for source in &tool.members {
            let (file, key) = source.split_once('#').unwrap_or((source, ""));
            for folder in folders {
                let path = join(folder, file);
                let listed = match self.see(&path) {
                    Seen::Absent | Seen::Folder => None,
                    Seen::File(bytes) => self.known.rule(&path).members(&bytes, key),
                    Seen::Link(_) | Seen::Unreadable(_) => Some(Vec::new()),
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

    fn pattern(&mut self, folder: &str, pattern: &str) {
        if let Some(rest) = pattern.strip_prefix(GIT)
            && !self.git.is_empty()
        {
            if folder.is_empty() {
                self.of_git(rest);
            }
            return;
        }
        let path = join(folder, pattern);
        let paths = if let Some(below) = path.strip_suffix("/**") {
            let tree = Tree::below(self.root.as_fd(), below, |_| true);
            if tree.is_cut {
                self.too_many();
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
            match self.see(&path) {
                Seen::Folder => {}
                seen => self.take(path, seen, How::Tools, 2),
            }
        }
    }

    /// Settings and hooks of git, wherever it keeps them.
    fn of_git(&mut self, pattern: &str) {
        for folder in self.git {
            // Whatever else than a folder is there by now holds nobody up.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let Ok(handle) = rustix::fs::open(folder, flags, Mode::empty()) else {
                continue;
            };
            let names = match pattern.rsplit_once('/') {
                Some((inner, "*")) => {
                    let names = list(handle.as_fd(), Path::new(inner)).into_iter();
                    names.map(|(name, _)| format!("{inner}/{name}")).collect()
                }
                _ => vec![pattern.to_owned()],
            };
            for name in names {
                let seen = see(handle.as_fd(), Path::new(&name));
                let path = format!("{GIT}{name}");
                let known = self.found.get(&path).map(|found| &found.seen);
                if !matches!(known, Some(Seen::File(_))) && seen != Seen::Folder {
                    self.take(path, seen, How::Members, 0);
                }
            }
        }
    }

    fn matching(&self, folder: &str, pattern: &str) -> Vec<String> {
        let names = list(self.root.as_fd(), Path::new(folder)).into_iter();
        let files = names.filter(|(name, is_folder)| !is_folder && fits(pattern, name));
        files.map(|(name, _)| join(folder, &name)).collect()
    }

    /// Notes a file, where a link leads to, and which others it names.
    fn take(&mut self, path: String, seen: Seen, how: How, deepest: usize) {
        let rule = self.known.rule(&path);
        if rule.ignores(&path) && how != How::Executed {
            return;
        }
        if self.found.len() >= MOST && !self.found.contains_key(&path) {
            self.too_many();
            return;
        }
        if let Seen::Link(target) = &seen {
            let target = target.clone();
            self.linked(path, target, how, deepest);
            return;
        }
        let (mut lines, mut followed) = (String::new(), Vec::new());
        if let Seen::File(bytes) = &seen {
            if rule.calls || is_shell(bytes) {
                lines = String::from_utf8_lossy(bytes).into_owned();
            }
            followed = rule.followed(bytes);
        }
        let folder = parent(&path).to_owned();
        if !self.note(path, seen, how) || deepest == 0 {
            return;
        }
        self.calls(&lines, &folder, deepest - 1);
        for file in followed {
            if let Some(path) = self.below(&folder, &file) {
                match self.see(&path) {
                    Seen::Absent | Seen::Folder => {}
                    seen => self.take(path, seen, how, deepest - 1),
                }
            }
        }
    }

    /// Not to have looked at everything is as bad as a change.
    fn too_many(&mut self) {
        let why = "there are more files than are looked at".to_owned();
        let path = "(all files)".to_owned();
        self.note(path, Seen::Unreadable(why), How::Members);
    }

    /// Notes what is at a path; whether that is new.
    fn note(&mut self, path: String, seen: Seen, how: How) -> bool {
        let known = self.found.get(&path);
        let (was_whole, was_member) =
            known.map_or((false, false), |found| (found.is_whole, found.is_member));
        let is_new = known.is_none();
        let found = Found {
            seen,
            is_whole: was_whole || how == How::Executed,
            is_member: was_member || how == How::Members,
        };
        self.found.insert(path, found);
        is_new
    }

    /// A link counts, and so does what it leads to.
    fn linked(&mut self, path: String, target: PathBuf, how: How, deepest: usize) {
        let Some(there) = joined(parent(&path), &target) else {
            let why = "it is a link that leads out of the project".to_owned();
            self.note(path, Seen::Unreadable(why), how);
            return;
        };
        if self.note(path, Seen::Link(target), how) {
            match self.see(&there) {
                Seen::Folder => {}
                seen => self.take(there, seen, how, deepest),
            }
        }
    }

    /// The files that the lines of a script call; what tools they use is not looked at.
    fn calls(&mut self, lines: &str, folder: &str, deepest: usize) {
        let bases = [folder.to_owned(), String::new()];
        for step in steps(lines) {
            for file in step.look(self.known).executes {
                self.executed(&bases, &file, deepest);
            }
        }
    }

    /// What the scripts of `package.json` run that the command runs.
    fn scripts(&mut self, places: &[String], words: &[String], deepest: usize) {
        let mut holders = Vec::new();
        for (path, found) in &self.found {
            let is_near = places.iter().any(|place| is_above(parent(path), place));
            if let Seen::File(bytes) = &found.seen
                && is_near
            {
                let scripts = self.known.rule(path).scripts(bytes);
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
                self.text(&text, &folder, deepest - 1);
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

fn add(list: &mut Vec<String>, more: Vec<String>) {
    for one in more {
        if !list.contains(&one) && list.len() < MOST_FOLDERS {
            list.push(one);
        }
    }
}

/// Whether a folder is another one, or above it.
fn is_above(folder: &str, other: &str) -> bool {
    Path::new(other).starts_with(folder)
}

fn join(folder: &str, name: &str) -> String {
    match folder.is_empty() {
        true => name.to_owned(),
        false => format!("{folder}/{name}"),
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

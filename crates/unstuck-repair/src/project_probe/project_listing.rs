//! A bounded listing of a project's files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use unstuck_files::{DirHandle, EntryKind, safe_open};

/// Maximum depth of listed directories.
const MAX_DEPTH: usize = 5;
/// Maximum number of listed entries.
const MAX_ENTRIES: usize = 6_000;
/// Maximum number of listed entries per directory.
const MAX_ENTRIES_PER_DIR: usize = 600;

/// Directories of installed, built or recorded files: listed without their contents.
const UNLISTED_DIRS: [&str; 22] = [
    ".git",
    ".hg",
    ".svn",
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    "target",
    ".next",
    ".nuxt",
    ".gradle",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    "site-packages",
    "bower_components",
    ".terraform",
    ".yarn",
    ".pnpm-store",
    ".unstuck",
    "Pods",
];

/// The files and directories of a project, relative to its root.
pub(super) struct ProjectListing {
    root: PathBuf,
    /// Handle of the root, or `None` if it cannot be opened.
    handle: Option<DirHandle>,
    /// Entries with a flag for plain files.
    entries: BTreeMap<String, bool>,
}

impl ProjectListing {
    pub(super) fn list(root: &Path) -> Self {
        let mut tree = Self {
            root: root.to_owned(),
            handle: DirHandle::open(root).ok(),
            entries: BTreeMap::new(),
        };
        let mut waiting = VecDeque::from([(String::new(), 0)]);
        while let Some((folder, depth)) = waiting.pop_front() {
            for (path, is_folder) in tree.list_dir(&folder) {
                let name = path.rsplit('/').next().unwrap_or(&path);
                if is_folder && depth < MAX_DEPTH && !UNLISTED_DIRS.contains(&name) {
                    waiting.push_back((path, depth + 1));
                }
            }
            if tree.entries.len() >= MAX_ENTRIES {
                break;
            }
        }
        tree
    }

    /// Lists one directory; links are listed and not followed.
    fn list_dir(&mut self, folder: &str) -> Vec<(String, bool)> {
        let mut folders = Vec::new();
        // A directory that was replaced with a link is refused.
        let entries = self
            .handle
            .as_ref()
            .map(|root| root.first_entries(Path::new(folder), MAX_ENTRIES_PER_DIR));
        let Some(Ok(entries)) = entries else {
            return folders;
        };
        for entry in entries {
            let Ok(name) = entry.name.into_string() else {
                continue;
            };
            let path = match folder {
                "" => name,
                folder => format!("{folder}/{name}"),
            };
            // Some file systems do not report the type with the name.
            let kind = match entry.kind {
                EntryKind::Other => self.kind(&path).unwrap_or(EntryKind::Other),
                known => known,
            };
            self.entries.insert(path.clone(), kind == EntryKind::File);
            folders.push((path, kind == EntryKind::Directory));
        }
        folders
    }

    fn kind(&self, path: &str) -> Option<EntryKind> {
        self.handle.as_ref()?.kind(Path::new(path))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn names(&self) -> BTreeSet<String> {
        let there = self
            .entries
            .iter()
            .filter(|(path, _)| self.root.join(path).exists());
        there.map(|(path, _)| path.clone()).collect()
    }

    /// Returns the plain files, the least deep first.
    pub(super) fn files(&self) -> Vec<&str> {
        let files = self.entries.iter().filter(|(_, is_file)| **is_file);
        let mut files: Vec<&str> = files.map(|(path, _)| path.as_str()).collect();
        files.sort_by_key(|path| path.matches('/').count());
        files
    }

    /// Returns the start of a project file, or `None` if it is not a file or lies elsewhere.
    pub(super) fn read(&self, path: &str, most: u64) -> Option<Vec<u8>> {
        let file = self.open(path)?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Returns the start of a project's text file.
    pub(super) fn read_text(&self, path: &str, most: u64) -> Option<String> {
        let bytes = self.read(path, most)?;
        let is_text = !bytes.contains(&0);
        is_text.then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// True for an empty directory of the project; links are followed as long as they stay in the project.
    pub(super) fn is_empty_dir(&self, path: &str) -> bool {
        let open = || {
            let root = self.handle.as_ref()?;
            let (_, way) = safe_open::open_dir(root.as_fd(), Path::new(path)).ok()?;
            root.first_entries(&way, 1).ok()
        };
        open().is_some_and(|entries| entries.is_empty())
    }

    fn open(&self, path: &str) -> Option<File> {
        let root = self.handle.as_ref()?;
        root.open_file_within(Path::new(path)).ok()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// An agent swaps a directory for a link between two checks: no name outside of the project is listed.
    #[test]
    fn a_directory_replaced_with_a_link_is_not_listed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("project");
        fs::create_dir_all(root.join("src/inner")).unwrap();
        fs::create_dir_all(place.path().join("private/plans")).unwrap();
        let mut tree = ProjectListing::list(&root);
        assert!(tree.entries.contains_key("src/inner"));
        fs::remove_dir_all(root.join("src")).unwrap();
        symlink(place.path().join("private"), root.join("src")).unwrap();
        assert_eq!(tree.list_dir("src"), []);
        assert!(!tree.entries.contains_key("src/plans"));
        fs::remove_file(root.join("src")).unwrap();
        assert!(ProjectListing::list(&root).entries.is_empty());
    }
}

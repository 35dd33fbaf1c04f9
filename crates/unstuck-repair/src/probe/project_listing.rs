//! The files of a project, listed and read within bounds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use unstuck_files::{DirHandle, EntryKind};

/// So deep folders are listed.
const MAX_DEPTH: usize = 5;
/// So many files and folders are listed.
const MAX_ENTRIES: usize = 6_000;
/// So many files of one folder are listed.
const MAX_ENTRIES_PER_DIR: usize = 600;

/// Folders that hold what was installed, built or recorded: they are listed, what is in them is not.
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

/// The files and folders of a project, relative to its root.
pub(super) struct ProjectListing {
    root: PathBuf,
    /// The root as it is opened once; none if it cannot be.
    handle: Option<DirHandle>,
    /// Each with whether it is a plain file.
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

    /// Lists one folder; links are listed and not followed.
    fn list_dir(&mut self, folder: &str) -> Vec<(String, bool)> {
        let mut folders = Vec::new();
        // A folder that has become a link is refused.
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
            // Not every file system reports the type with the name.
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

    /// The plain files, the least deep first.
    pub(super) fn files(&self) -> Vec<&str> {
        let files = self.entries.iter().filter(|(_, is_file)| **is_file);
        let mut files: Vec<&str> = files.map(|(path, _)| path.as_str()).collect();
        files.sort_by_key(|path| path.matches('/').count());
        files
    }

    /// The start of a file of the project; none if it is none, or lies elsewhere.
    pub(super) fn read(&self, path: &str, most: u64) -> Option<Vec<u8>> {
        let file = self.open(path)?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The start of a text file of the project.
    pub(super) fn read_text(&self, path: &str, most: u64) -> Option<String> {
        let bytes = self.read(path, most)?;
        let is_text = !bytes.contains(&0);
        is_text.then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn open(&self, path: &str) -> Option<File> {
        let root = self.handle.as_ref()?;
        root.open_file_within(Path::new(path)).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// An agent swaps a folder for a link between two looks: no name outside of the project is listed.
    #[test]
    fn a_folder_that_became_a_link_is_not_listed() {
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

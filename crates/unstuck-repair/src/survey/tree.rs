//! The files of a project, listed and read within bounds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// So deep folders are listed.
const DEEPEST: usize = 5;
/// So many files and folders are listed.
const MOST: usize = 6_000;
/// So many files of one folder are listed.
const MOST_OF_ONE: usize = 600;

/// Folders that hold what was installed, built or recorded: they are listed, what is in them is not.
const CLOSED: [&str; 22] = [
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
pub(super) struct Tree {
    root: PathBuf,
    /// Each with whether it is a plain file.
    entries: BTreeMap<String, bool>,
}

impl Tree {
    pub(super) fn list(root: &Path) -> Self {
        let mut tree = Self {
            root: root.to_owned(),
            entries: BTreeMap::new(),
        };
        let mut waiting = VecDeque::from([(String::new(), 0)]);
        while let Some((folder, depth)) = waiting.pop_front() {
            for (path, is_folder) in tree.list_folder(&folder) {
                let name = path.rsplit('/').next().unwrap_or(&path);
                if is_folder && depth < DEEPEST && !CLOSED.contains(&name) {
                    waiting.push_back((path, depth + 1));
                }
            }
            if tree.entries.len() >= MOST {
                break;
            }
        }
        tree
    }

    /// Lists one folder; links are listed and not followed.
    fn list_folder(&mut self, folder: &str) -> Vec<(String, bool)> {
        let Ok(entries) = fs::read_dir(self.root.join(folder)) else {
            return Vec::new();
        };
        let mut folders = Vec::new();
        for entry in entries.flatten().take(MOST_OF_ONE) {
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
                continue;
            };
            let path = match folder {
                "" => name,
                folder => format!("{folder}/{name}"),
            };
            self.entries.insert(path.clone(), kind.is_file());
            folders.push((path, kind.is_dir()));
        }
        folders
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

    #[cfg(target_os = "linux")]
    fn open(&self, path: &str) -> Option<File> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(&self.root, folder, Mode::empty()).ok()?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let file = File::from(openat2(&root, path, flags, Mode::empty(), inside).ok()?);
        file.metadata().ok()?.is_file().then_some(file)
    }

    #[cfg(not(target_os = "linux"))]
    fn open(&self, path: &str) -> Option<File> {
        let real = self.root.join(path).canonicalize().ok()?;
        let inside = real.starts_with(self.root.canonicalize().ok()?);
        let is_file = real.metadata().ok()?.is_file();
        if inside && is_file {
            File::open(real).ok()
        } else {
            None
        }
    }
}

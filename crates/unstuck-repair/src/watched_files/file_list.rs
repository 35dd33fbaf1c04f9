//! All files of a project, as far as they are nobody's installed packages.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::Path;

use unstuck_core::watched_files::WatchedFileKnowledge;

use super::read_entry::list_dir;

/// So many names are looked at, and no more.
const MAX_NAMES: usize = 200_000;

/// The names of all files below a folder.
#[derive(Debug, Default)]
pub(super) struct ProjectFileList {
    /// The files, by path.
    pub(super) files: Vec<String>,
    /// Whether there are more than are looked at.
    pub(super) is_truncated: bool,
}

impl ProjectFileList {
    /// Walks a project; folders of installed packages are left out.
    pub(super) fn walk(root: BorrowedFd<'_>, known: &WatchedFileKnowledge) -> Self {
        Self::walk_dir(root, "", |name| !known.is_installed(name))
    }

    /// Walks a folder and everything in it.
    pub(super) fn walk_dir(
        root: BorrowedFd<'_>,
        folder: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Self {
        let mut tree = Self::default();
        let mut waiting = VecDeque::from([folder.to_owned()]);
        let mut seen = 0;
        while let Some(folder) = waiting.pop_front() {
            for (name, is_folder) in list_dir(root, Path::new(&folder)) {
                seen += 1;
                if seen > MAX_NAMES {
                    tree.is_truncated = true;
                    return tree;
                }
                let path = if folder.is_empty() {
                    name.clone()
                } else {
                    format!("{folder}/{name}")
                };
                match is_folder {
                    true if wanted(&name) => waiting.push_back(path),
                    true => {}
                    false => tree.files.push(path),
                }
            }
        }
        tree
    }
}

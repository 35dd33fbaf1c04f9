//! Lists all files of a project, except installed packages.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::path::Path;

use unstuck_core::watched_files::ToolFileKnowledge;

use super::read_entry::list_dir;

/// Maximum number of names to list.
const MAX_NAMES: usize = 200_000;

/// The paths of all files below a directory.
#[derive(Debug, Default)]
pub(super) struct ProjectFileList {
    /// Paths of the files.
    pub(super) files: Vec<String>,
    /// If set, the list stopped at its limit.
    pub(super) is_truncated: bool,
}

impl ProjectFileList {
    /// Lists a project, without directories of installed packages.
    pub(super) fn walk(root: BorrowedFd<'_>, known: &ToolFileKnowledge) -> Self {
        Self::walk_dir(root, "", |name| !known.is_installed(name))
    }

    /// Lists a directory recursively.
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

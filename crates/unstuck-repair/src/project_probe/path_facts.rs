//! Facts about paths.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use unstuck_core::repair::{FsEntryKind, ProjectPathFacts};

use super::project_listing::ProjectListing;

/// Maximum number of paths to check.
const MAX_PATHS: usize = 1_500;
/// Maximum bytes read of a file.
const MAX_FILE_BYTES: u64 = 32 << 10;
/// Maximum bytes read in total.
const MAX_TOTAL_BYTES: usize = 2 << 20;

/// Returns the facts about each path.
pub(super) fn path_facts(
    tree: &ProjectListing,
    asked: &BTreeSet<String>,
    open: &Option<BTreeSet<PathBuf>>,
) -> BTreeMap<String, ProjectPathFacts> {
    let mut left = MAX_TOTAL_BYTES;
    let plain = asked
        .iter()
        .filter(|path| !path.contains(['*', '\0', '$', '\n']));
    let mut facts = BTreeMap::new();
    for path in plain.take(MAX_PATHS) {
        let Some(mut fact) = path_fact(tree, path) else {
            continue;
        };
        if fact.entry == FsEntryKind::File {
            read_file_into(&mut fact, tree, path, &mut left);
        }
        let real = tree.root().join(path);
        let is_open = |open: &BTreeSet<PathBuf>| open.contains(&real);
        fact.in_use = open.as_ref().map(is_open);
        facts.insert(path.clone(), fact);
    }
    facts
}

/// Returns the file system facts about a path, or `None` if it is unreadable.
fn path_fact(tree: &ProjectListing, relative: &str) -> Option<ProjectPathFacts> {
    let root = tree.root();
    let path = root.join(relative);
    let own = match fs::symlink_metadata(&path) {
        Ok(own) => own,
        Err(error) => {
            let gone = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
            return gone.then(ProjectPathFacts::default);
        }
    };
    let Ok(target) = fs::metadata(&path) else {
        let what = if own.is_symlink() {
            FsEntryKind::DanglingLink
        } else {
            FsEntryKind::Other
        };
        return Some(ProjectPathFacts {
            entry: what,
            ..ProjectPathFacts::default()
        });
    };
    let what = match () {
        () if target.is_file() => FsEntryKind::File,
        () if target.is_dir() => FsEntryKind::Directory,
        () => FsEntryKind::Other,
    };
    let empty = match what {
        FsEntryKind::File => target.len() == 0,
        FsEntryKind::Directory => tree.is_empty_dir(relative),
        _ => false,
    };
    Some(ProjectPathFacts {
        entry: what,
        link: own
            .is_symlink()
            .then(|| resolve_inside(root, &path))
            .flatten(),
        executable: target.permissions().mode() & 0o111 != 0,
        writable: !target.permissions().readonly(),
        empty,
        ..ProjectPathFacts::default()
    })
}

/// Returns the final target of a path relative to the root, or `None` if it is outside.
fn resolve_inside(root: &Path, path: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    let relative = real.strip_prefix(root.canonicalize().ok()?).ok()?;
    relative.to_str().map(str::to_owned)
}

fn read_file_into(
    fact: &mut ProjectPathFacts,
    tree: &ProjectListing,
    path: &str,
    left: &mut usize,
) {
    let name = path.rsplit('/').next().unwrap_or(path);
    // Files with secrets are never read, and nothing here depends on them.
    let is_secret =
        name.starts_with(".env") && !name.contains("example") && !name.contains("sample");
    if *left == 0 || is_secret {
        return;
    }
    let Some(text) = tree.read_text(path, MAX_FILE_BYTES) else {
        return;
    };
    *left = left.saturating_sub(text.len());
    fact.crlf = text.contains("\r\n");
    fact.has_bom = text.starts_with('\u{feff}');
    fact.lfs_pointer = text.starts_with("version https://git-lfs.github.com/spec/");
    fact.text = Some(text);
}

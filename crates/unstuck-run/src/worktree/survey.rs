//! A look at a folder without git, within bounds.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::error::{While, WorktreeError};
use crate::clock::Clock;
use crate::folder::PROJECT_FOLDER;

/// How many files and folders are looked at.
const MOST_FILES: usize = 20_000;
/// How long that may take.
const LONGEST: Duration = Duration::from_millis(200);
/// Up to which size the contents of a file count, in bytes; of larger ones size and time.
const SMALL: u64 = 16 * 1024;
/// Folders that tools fill; what is in there is no progress.
const SKIPPED: &[&str] = &[
    PROJECT_FOLDER,
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".turbo",
    ".cache",
];

/// A fingerprint of the files below a folder.
pub(super) fn survey(project: &Path) -> Result<String, WorktreeError> {
    let start = Clock::System.at();
    let in_time = || Clock::System.at().since(start) <= LONGEST;
    let mut survey = Survey {
        hash: DefaultHasher::new(),
        left: MOST_FILES,
        in_time: &in_time,
    };
    match survey.folder(project).to("look at", project)? {
        Seen::All => Ok(format!("files-{:016x}", survey.hash.finish())),
        Seen::NotAll => Err(WorktreeError::TooMany {
            project: project.to_owned(),
        }),
    }
}

struct Survey<'a> {
    hash: DefaultHasher,
    left: usize,
    in_time: &'a dyn Fn() -> bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    All,
    NotAll,
}

impl Survey<'_> {
    fn folder(&mut self, folder: &Path) -> io::Result<Seen> {
        let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            if SKIPPED.iter().any(|skipped| name == *skipped) {
                continue;
            }
            if self.left == 0 || !(self.in_time)() {
                return Ok(Seen::NotAll);
            }
            self.left -= 1;
            name.as_bytes().hash(&mut self.hash);
            // What has gone meanwhile or may not be looked at is part of the picture as well.
            match self.entry(&entry) {
                Ok(Seen::NotAll) => return Ok(Seen::NotAll),
                Ok(Seen::All) => {}
                Err(error) => error.raw_os_error().hash(&mut self.hash),
            }
        }
        "end".hash(&mut self.hash);
        Ok(Seen::All)
    }

    fn entry(&mut self, entry: &fs::DirEntry) -> io::Result<Seen> {
        let (path, data) = (entry.path(), entry.metadata()?);
        data.mode().hash(&mut self.hash);
        if data.is_dir() {
            return self.folder(&path);
        }
        if data.is_symlink() {
            fs::read_link(&path)?
                .as_os_str()
                .as_bytes()
                .hash(&mut self.hash);
        } else if data.is_file() && data.len() <= SMALL {
            fs::read(&path)?.hash(&mut self.hash);
        } else {
            (data.len(), data.mtime(), data.mtime_nsec()).hash(&mut self.hash);
        }
        Ok(Seen::All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_seen_and_what_tools_make_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let look = || survey(folder.path()).unwrap();
        write("src/a", "1");
        let first = look();
        write("src/a", "1");
        write("node_modules/x/index.js", "made");
        write(".unstuck/runs/x", "ours");
        assert_eq!(look(), first);
        write("src/a", "2");
        let second = look();
        assert_ne!(second, first);
        write("src/b", "");
        assert_ne!(look(), second);
        fs::remove_file(folder.path().join("src/b")).unwrap();
        assert_eq!(look(), second);
    }

    #[test]
    fn a_look_that_takes_too_long_ends() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let survey = |left, in_time: &dyn Fn() -> bool| {
            let hash = DefaultHasher::new();
            let mut survey = Survey {
                hash,
                left,
                in_time,
            };
            survey.folder(folder.path()).unwrap()
        };
        assert_eq!(survey(3, &|| true), Seen::All);
        assert_eq!(survey(2, &|| true), Seen::NotAll);
        assert_eq!(survey(3, &|| false), Seen::NotAll);
    }
}

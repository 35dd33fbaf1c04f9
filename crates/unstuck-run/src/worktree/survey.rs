//! A look at a folder without git, within bounds.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::FileType;
use unstuck_files::DirHandle;

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
    let folder = DirHandle::open(project).to("open", project)?;
    match survey.folder(&folder).to("look at", project)? {
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
    fn folder(&mut self, folder: &DirHandle) -> io::Result<Seen> {
        let mut entries = folder.entries(Path::new("."))?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in entries {
            let name = entry.name;
            if SKIPPED.iter().any(|skipped| name == *skipped) {
                continue;
            }
            if self.left == 0 || !(self.in_time)() {
                return Ok(Seen::NotAll);
            }
            self.left -= 1;
            name.as_bytes().hash(&mut self.hash);
            // What has gone meanwhile or may not be looked at is part of the picture as well.
            match self.entry(folder, Path::new(&name)) {
                Ok(Seen::NotAll) => return Ok(Seen::NotAll),
                Ok(Seen::All) => {}
                Err(error) => error.to_string().hash(&mut self.hash),
            }
        }
        "end".hash(&mut self.hash);
        Ok(Seen::All)
    }

    fn entry(&mut self, folder: &DirHandle, name: &Path) -> io::Result<Seen> {
        let data = folder.metadata(name)?;
        data.st_mode.hash(&mut self.hash);
        match FileType::from_raw_mode(data.st_mode) {
            FileType::Directory => return self.folder(&folder.open_dir(name)?),
            FileType::Symlink => folder.read_link(name)?.hash(&mut self.hash),
            FileType::RegularFile if data.st_size.unsigned_abs() <= SMALL => {
                folder.read(name, SMALL)?.hash(&mut self.hash);
            }
            _ => (data.st_size, data.st_mtime, data.st_mtime_nsec).hash(&mut self.hash),
        }
        Ok(Seen::All)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
mod tests {
    use std::fs;

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
            survey
                .folder(&DirHandle::open(folder.path()).unwrap())
                .unwrap()
        };
        assert_eq!(survey(3, &|| true), Seen::All);
        assert_eq!(survey(2, &|| true), Seen::NotAll);
        assert_eq!(survey(3, &|| false), Seen::NotAll);
    }
}

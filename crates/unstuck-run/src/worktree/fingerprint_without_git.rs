//! Computes the fingerprint of a directory without git, within limits of time and number of files.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::FileType;
use unstuck_files::DirHandle;

use super::error::{WorktreeError, WorktreeIoContext};
use crate::clock::Clock;
use crate::run_dir::PROJECT_DIR;

/// Largest number of files and directories.
const MAX_FILES: usize = 20_000;
/// Longest duration.
const TIME_LIMIT: Duration = Duration::from_millis(200);
/// Largest file whose contents are hashed, in bytes; of larger ones, size and time are used.
const MAX_HASHED_BYTES: u64 = 16 * 1024;
/// Directories that tools generate; changes in them are not progress.
const SKIPPED_DIRS: &[&str] = &[
    PROJECT_DIR,
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

/// Returns the fingerprint of the files below a directory.
pub(super) fn scan_fingerprint(project: &Path) -> Result<String, WorktreeError> {
    let start = Clock::System.timestamp();
    let in_time = || Clock::System.timestamp().since(start) <= TIME_LIMIT;
    let mut survey = DirScan {
        hash: DefaultHasher::new(),
        left: MAX_FILES,
        in_time: &in_time,
    };
    let folder = DirHandle::open(project).context("open", project)?;
    match survey.scan_dir(&folder).context("inspect", project)? {
        ScanCompleteness::Complete => Ok(format!("files-{:016x}", survey.hash.finish())),
        ScanCompleteness::Partial => Err(WorktreeError::TooManyFiles {
            project: project.to_owned(),
        }),
    }
}

struct DirScan<'a> {
    hash: DefaultHasher,
    left: usize,
    in_time: &'a dyn Fn() -> bool,
}

#[derive(Debug, PartialEq, Eq)]
enum ScanCompleteness {
    Complete,
    Partial,
}

impl DirScan<'_> {
    fn scan_dir(&mut self, folder: &DirHandle) -> io::Result<ScanCompleteness> {
        let mut entries = folder.entries(Path::new("."))?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in entries {
            let name = entry.name;
            if SKIPPED_DIRS.iter().any(|skipped| name == *skipped) {
                continue;
            }
            if self.left == 0 || !(self.in_time)() {
                return Ok(ScanCompleteness::Partial);
            }
            self.left -= 1;
            name.as_bytes().hash(&mut self.hash);
            // Entries that are gone or inaccessible are part of the fingerprint as well.
            match self.scan_entry(folder, Path::new(&name)) {
                Ok(ScanCompleteness::Partial) => return Ok(ScanCompleteness::Partial),
                Ok(ScanCompleteness::Complete) => {}
                Err(error) => error.to_string().hash(&mut self.hash),
            }
        }
        "end".hash(&mut self.hash);
        Ok(ScanCompleteness::Complete)
    }

    fn scan_entry(&mut self, folder: &DirHandle, name: &Path) -> io::Result<ScanCompleteness> {
        let data = folder.metadata(name)?;
        data.st_mode.hash(&mut self.hash);
        match FileType::from_raw_mode(data.st_mode) {
            FileType::Directory => return self.scan_dir(&folder.open_dir(name)?),
            FileType::Symlink => folder.read_link(name)?.hash(&mut self.hash),
            FileType::RegularFile if data.st_size.unsigned_abs() <= MAX_HASHED_BYTES => {
                folder.read(name, MAX_HASHED_BYTES)?.hash(&mut self.hash);
            }
            _ => (data.st_size, data.st_mtime, data.st_mtime_nsec).hash(&mut self.hash),
        }
        Ok(ScanCompleteness::Complete)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn work_changes_the_fingerprint_and_tool_output_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let look = || scan_fingerprint(folder.path()).unwrap();
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
    fn slow_scan_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let survey = |left, in_time: &dyn Fn() -> bool| {
            let hash = DefaultHasher::new();
            let mut survey = DirScan {
                hash,
                left,
                in_time,
            };
            survey
                .scan_dir(&DirHandle::open(folder.path()).unwrap())
                .unwrap()
        };
        assert_eq!(survey(3, &|| true), ScanCompleteness::Complete);
        assert_eq!(survey(2, &|| true), ScanCompleteness::Partial);
        assert_eq!(survey(3, &|| false), ScanCompleteness::Partial);
    }
}

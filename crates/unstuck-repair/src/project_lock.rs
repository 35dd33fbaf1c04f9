//! A lock that allows one repair at a time per project, across processes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The exclusive right to repair a project; released on drop and whenever the process ends.
#[derive(Debug)]
pub struct ProjectRepairLock {
    _file: File,
}

impl ProjectRepairLock {
    /// Acquires the lock, or returns `None` if another repair of this project runs. `state` is unstuck's own directory,
    /// `root` the resolved path of the project.
    #[expect(
        clippy::disallowed_methods,
        reason = "the lock is in the state directory; the project only gives it its name"
    )]
    pub fn try_acquire(state: &Path, root: &Path) -> io::Result<Option<Self>> {
        let folder = state.join("repairs");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let digest = Sha256::digest(root.as_os_str().as_bytes());
        let name: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join(name).with_extension("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_lock_is_exclusive_per_project() {
        let state = tempfile::tempdir().unwrap();
        let take =
            |root: &str| ProjectRepairLock::try_acquire(state.path(), Path::new(root)).unwrap();
        let first = take("/a");
        assert!(first.is_some());
        assert!(take("/a").is_none());
        assert!(take("/b").is_some());
        drop(first);
        assert!(take("/a").is_some());
    }
}

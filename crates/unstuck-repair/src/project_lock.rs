//! One repair at a time in a project, whoever starts it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The right to repair a project; given back when it is dropped, and when the process ends in whatever way.
#[derive(Debug)]
pub struct ProjectLock {
    _file: File,
}

impl ProjectLock {
    /// Takes the right, unless another repair of this project runs. `state` is unstuck's own folder, `root` the real
    /// path of the project.
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
    fn a_project_is_repaired_once_at_a_time_and_others_do_not_mind() {
        let state = tempfile::tempdir().unwrap();
        let take = |root: &str| ProjectLock::try_acquire(state.path(), Path::new(root)).unwrap();
        let first = take("/a");
        assert!(first.is_some());
        assert!(take("/a").is_none());
        assert!(take("/b").is_some());
        drop(first);
        assert!(take("/a").is_some());
    }
}

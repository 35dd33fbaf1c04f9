//! Content-addressed storage of texts, out of the agents' reach.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};
use unstuck_core::Timestamp;

/// An error of storing or reading a text, including content that no longer matches its hash.
#[derive(Debug, thiserror::Error)]
#[error("cannot store or read {}", path.display())]
pub struct BlobError {
    /// Path of the blob file.
    pub path: PathBuf,
    /// Cause of the error.
    pub source: std::io::Error,
}

/// A directory of texts named by the hash of their content.
#[derive(Debug, Clone)]
pub struct BlobStore {
    folder: PathBuf,
}

impl BlobStore {
    /// Returns the blob store in a state directory.
    pub fn in_state_dir(state: &Path) -> Self {
        Self {
            folder: state.join("blobs"),
        }
    }

    /// Stores a text durably and returns its name.
    pub fn put(&self, bytes: &[u8]) -> Result<String, BlobError> {
        let name = content_hash(bytes);
        let path = self.path(&name);
        if !path.exists() {
            let written = self.write(&path, bytes);
            written.map_err(|source| BlobError { path, source })?;
        }
        Ok(name)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let beside = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        File::open(&self.folder)?.sync_all()
    }

    /// Returns the text of that name; an error if it is missing or its content has changed.
    pub fn get(&self, name: &str) -> Result<Vec<u8>, BlobError> {
        let path = self.path(name);
        let lost = |source| BlobError {
            path: path.clone(),
            source,
        };
        let bytes = fs::read(&path).map_err(lost)?;
        if content_hash(&bytes) == name {
            Ok(bytes)
        } else {
            Err(lost(std::io::Error::other(
                "content has changed since it was stored",
            )))
        }
    }

    /// Removes unused texts that were stored before a timestamp.
    pub fn remove_unused(&self, used: &BTreeSet<String>, before: Timestamp) {
        let is_old = |entry: &fs::DirEntry| {
            let changed = entry.metadata().and_then(|data| data.modified()).ok()?;
            let since = changed.duration_since(UNIX_EPOCH).ok()?;
            Some(Timestamp::from_seconds(0).after(since) < before)
        };
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = format!("sha256:{}", entry.file_name().to_string_lossy());
            if !used.contains(&name) && is_old(&entry) == Some(true) {
                // A file that cannot be removed is retried at the next cleanup.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name.trim_start_matches("sha256:"))
    }
}

/// Returns the name of a text: the hash of its content.
pub fn content_hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_content_is_detected_on_read() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = BlobStore::in_state_dir(folder.path());
        let name = blobs.put(b"the plan").unwrap();
        assert_eq!(blobs.put(b"the plan").unwrap(), name);
        assert_eq!(blobs.get(&name).unwrap(), b"the plan");
        fs::write(blobs.path(&name), "another plan").unwrap();
        assert!(blobs.get(&name).is_err());
        assert!(blobs.get("sha256:00").is_err());
    }

    #[test]
    fn old_unused_texts_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = BlobStore::in_state_dir(folder.path());
        let (used, unused) = (blobs.put(b"used").unwrap(), blobs.put(b"unused").unwrap());
        let keep = BTreeSet::from([used.clone()]);
        blobs.remove_unused(&keep, Timestamp::from_seconds(0));
        assert!(blobs.get(&unused).is_ok(), "it may be of a run under way");
        blobs.remove_unused(&keep, Timestamp::from_seconds(32_503_680_000));
        assert!(blobs.get(&unused).is_err() && blobs.get(&used).is_ok());
    }
}

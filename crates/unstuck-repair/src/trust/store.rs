//! Stores and reads trust records.
#![expect(
    clippy::disallowed_methods,
    reason = "the records are in the state directory, out of the agents' reach; nothing in a project is opened"
)]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use unstuck_core::Timestamp;
use unstuck_core::watched_files::WatchedFileBaseline;

use super::error::TrustError;
use super::record::{ProjectTrustRecord, RECORD_VERSION, TrustedRepairPolicy};

/// Maximum record size.
const MAX_RECORD_BYTES: u64 = 32 << 20;

/// The trust status of the content of a project's `[recovery]` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustStatus {
    /// The content is trusted.
    Trusted,
    /// No trust decision exists for this project, or its record is damaged.
    NeverTrusted,
    /// The owner declined to trust it.
    Declined,
    /// Another content was trusted.
    Changed {
        /// Timestamp of that decision.
        since: Timestamp,
        /// The trusted content.
        content: String,
    },
}

/// The trust records of all projects.
#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: PathBuf,
}

/// A project path with the identity of its current directory.
struct ProjectIdentity {
    path: PathBuf,
    inode: u64,
}

impl ProjectIdentity {
    fn read(path: &Path) -> Result<Self, TrustError> {
        let failed = |source| TrustError::Project {
            path: path.to_owned(),
            source,
        };
        let real = path.canonicalize().map_err(failed)?;
        let data = fs::metadata(&real).map_err(failed)?;
        Ok(Self {
            inode: data.ino(),
            path: real,
        })
    }

    fn empty_record(&self) -> ProjectTrustRecord {
        ProjectTrustRecord {
            version: RECORD_VERSION,
            project: self.path.display().to_string(),
            inode: self.inode,
            trusted_content: None,
            declined_hash: None,
            settings_hash: None,
            watched_files: WatchedFileBaseline::default(),
        }
    }
}

impl TrustStore {
    /// Opens the records in unstuck's state directory, which need not exist.
    pub fn open(state: &Path) -> Self {
        Self {
            folder: state.join("trust"),
        }
    }

    /// Returns the trust status of a content by its hash.
    pub fn status(&self, project: &Path, hash: &str) -> TrustStatus {
        let Some(record) = self.record(project) else {
            return TrustStatus::NeverTrusted;
        };
        match record.trusted_content {
            Some(trusted) if trusted.hash == hash => TrustStatus::Trusted,
            _ if record.declined_hash.as_deref() == Some(hash) => TrustStatus::Declined,
            Some(trusted) => TrustStatus::Changed {
                since: trusted.trusted_at,
                content: trusted.content,
            },
            None => TrustStatus::NeverTrusted,
        }
    }

    /// Returns the record of a project, or `None` if it is missing or damaged.
    pub fn record(&self, project: &Path) -> Option<ProjectTrustRecord> {
        let project = ProjectIdentity::read(project).ok()?;
        self.read_record(&project)
    }

    /// Returns the accepted watched files of a project.
    pub fn accepted_files(&self, project: &Path) -> WatchedFileBaseline {
        let record = self.record(project);
        record
            .map(|record| record.watched_files)
            .unwrap_or_default()
    }

    /// Records that a content is trusted, together with the watched files.
    pub fn accept(
        &self,
        project: &Path,
        trusted: Option<TrustedRepairPolicy>,
        files: WatchedFileBaseline,
    ) -> Result<(), TrustError> {
        let project = ProjectIdentity::read(project)?;
        let record = ProjectTrustRecord {
            trusted_content: trusted,
            watched_files: files,
            settings_hash: self
                .read_record(&project)
                .and_then(|known| known.settings_hash),
            ..project.empty_record()
        };
        self.write_record(&project, &record)
    }

    /// Records the hash of the project's other settings as trusted.
    pub fn accept_settings(&self, project: &Path, settings: &str) -> Result<(), TrustError> {
        let project = ProjectIdentity::read(project)?;
        let known = self.read_record(&project);
        let record = ProjectTrustRecord {
            settings_hash: Some(settings.to_owned()),
            ..known.unwrap_or_else(|| project.empty_record())
        };
        self.write_record(&project, &record)
    }

    /// True if the owner trusts the project's other settings with this hash.
    pub fn trusts_settings(&self, project: &Path, settings: &str) -> bool {
        let record = self.record(project);
        record.is_some_and(|record| record.settings_hash.as_deref() == Some(settings))
    }

    /// Adds accepted watched files to the known ones; the trusted content is unchanged.
    pub fn accept_files(
        &self,
        project: &Path,
        files: WatchedFileBaseline,
    ) -> Result<(), TrustError> {
        let project = ProjectIdentity::read(project)?;
        let known = self.read_record(&project);
        let mut record = known.unwrap_or_else(|| project.empty_record());
        record.watched_files.extend(files);
        self.write_record(&project, &record)
    }

    /// Records that a content was declined, so that unstuck does not ask again.
    pub fn decline(&self, project: &Path, hash: &str) -> Result<(), TrustError> {
        let project = ProjectIdentity::read(project)?;
        let known = self.read_record(&project);
        let record = ProjectTrustRecord {
            declined_hash: Some(hash.to_owned()),
            ..known.unwrap_or_else(|| project.empty_record())
        };
        self.write_record(&project, &record)
    }

    /// Removes a project's record; returns true if there was one. Works for deleted projects, too.
    pub fn forget(&self, project: &Path) -> Result<bool, TrustError> {
        let path = project.canonicalize().unwrap_or(project.to_owned());
        let file = self.record_path(&path);
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(TrustError::Write { path: file, source }),
        }
    }

    fn record_path(&self, project: &Path) -> PathBuf {
        let digest = Sha256::digest(project.as_os_str().as_bytes());
        let name: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
        self.folder.join(format!("{name}.json"))
    }

    fn read_record(&self, project: &ProjectIdentity) -> Option<ProjectTrustRecord> {
        if !is_only_owner_writable(&fs::symlink_metadata(&self.folder).ok()?) {
            return None;
        }
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(self.record_path(&project.path)).ok()?;
        let data = file.metadata().ok()?;
        if !data.is_file() || !is_only_owner_writable(&data) {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MAX_RECORD_BYTES).read_to_end(&mut bytes).ok()?;
        let record: ProjectTrustRecord = serde_json::from_slice(&bytes).ok()?;
        let is_it = record.version == RECORD_VERSION
            && record.inode == project.inode
            && record.project == project.path.display().to_string();
        is_it.then_some(record)
    }

    /// Writes a record atomically and durably.
    fn write_record(
        &self,
        project: &ProjectIdentity,
        record: &ProjectTrustRecord,
    ) -> Result<(), TrustError> {
        self.create_dir()?;
        let path = self.record_path(&project.path);
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let written = write_durably(&beside, record).and_then(|()| {
            fs::rename(&beside, &path)?;
            File::open(&self.folder)?.sync_all()
        });
        written.map_err(|source| {
            // The temporary file is no longer needed.
            let _ = fs::remove_file(&beside);
            TrustError::Write { path, source }
        })
    }

    fn create_dir(&self) -> Result<(), TrustError> {
        let path = self.folder.clone();
        let failed = |source| TrustError::Write {
            path: path.clone(),
            source,
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.folder).map_err(failed)?;
        let data = fs::symlink_metadata(&self.folder).map_err(failed)?;
        if data.is_dir() && is_only_owner_writable(&data) {
            Ok(())
        } else {
            Err(TrustError::NotPrivate { path })
        }
    }
}

/// True if only this user or root can have written the file.
fn is_only_owner_writable(data: &fs::Metadata) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_ours = data.uid() == own || data.uid() == 0;
    is_ours && data.permissions().mode() & 0o022 == 0
}

fn write_durably(path: &Path, record: &ProjectTrustRecord) -> io::Result<()> {
    // A leftover of a killed process with the same pid.
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    serde_json::to_writer_pretty(&mut file, record)?;
    file.write_all(b"\n")?;
    file.sync_all()
}

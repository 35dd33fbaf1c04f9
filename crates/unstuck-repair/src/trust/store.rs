//! Where records are kept, and how they are written and read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use unstuck_core::Timestamp;
use unstuck_core::guard_files::Baseline;

use super::error::TrustError;
use super::record::{Record, Trusted, VERSION};

/// The largest record that is read.
const LARGEST: u64 = 32 << 20;

/// Whether a content is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Trusted,
    /// Nobody has trusted anything in this project, or what was remembered is damaged.
    Unknown,
    /// Its owner was asked and did not want to.
    Declined,
    /// Another content was trusted.
    Changed {
        /// When.
        since: Timestamp,
        /// What that content was.
        content: String,
    },
}

/// The records of all projects.
#[derive(Debug, Clone)]
pub struct Trust {
    folder: PathBuf,
}

/// Which project is meant, and which folder that is at the moment.
struct Project {
    path: PathBuf,
    inode: u64,
}

impl Project {
    fn of(path: &Path) -> Result<Self, TrustError> {
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

    fn empty_record(&self) -> Record {
        Record {
            version: VERSION,
            project: self.path.display().to_string(),
            inode: self.inode,
            trusted: None,
            declined: None,
            settings: None,
            files: Baseline::default(),
        }
    }
}

impl Trust {
    /// The records in unstuck's state folder, which need not exist.
    pub fn open(state: &Path) -> Self {
        Self {
            folder: state.join("trust"),
        }
    }

    /// Whether the content of that hash is trusted in a project.
    pub fn standing(&self, project: &Path, hash: &str) -> Standing {
        let Some(record) = self.record(project) else {
            return Standing::Unknown;
        };
        match record.trusted {
            Some(trusted) if trusted.hash == hash => Standing::Trusted,
            _ if record.declined.as_deref() == Some(hash) => Standing::Declined,
            Some(trusted) => Standing::Changed {
                since: trusted.at,
                content: trusted.content,
            },
            None => Standing::Unknown,
        }
    }

    /// What is remembered about a project; none if that is nothing, or damaged.
    pub fn record(&self, project: &Path) -> Option<Record> {
        let project = Project::of(project).ok()?;
        self.read(&project)
    }

    /// The guard files of a project as they were accepted.
    pub fn files(&self, project: &Path) -> Baseline {
        let record = self.record(project);
        record.map(|record| record.files).unwrap_or_default()
    }

    /// Remembers that a content is trusted, and the guard files with it.
    pub fn accept(
        &self,
        project: &Path,
        trusted: Option<Trusted>,
        files: Baseline,
    ) -> Result<(), TrustError> {
        let project = Project::of(project)?;
        let record = Record {
            trusted,
            files,
            settings: self.read(&project).and_then(|known| known.settings),
            ..project.empty_record()
        };
        self.write(&project, &record)
    }

    /// Remembers the hash of what else the project's files say, as its owner trusts it.
    pub fn accept_settings(&self, project: &Path, settings: &str) -> Result<(), TrustError> {
        let project = Project::of(project)?;
        let known = self.read(&project);
        let record = Record {
            settings: Some(settings.to_owned()),
            ..known.unwrap_or_else(|| project.empty_record())
        };
        self.write(&project, &record)
    }

    /// Whether the owner of a project trusts what else its files say, by its hash.
    pub fn trusts_settings(&self, project: &Path, settings: &str) -> bool {
        let record = self.record(project);
        record.is_some_and(|record| record.settings.as_deref() == Some(settings))
    }

    /// Remembers guard files that were accepted beside those that are known; the trusted content stays as it is.
    pub fn accept_files(&self, project: &Path, files: Baseline) -> Result<(), TrustError> {
        let project = Project::of(project)?;
        let known = self.read(&project);
        let mut record = known.unwrap_or_else(|| project.empty_record());
        record.files.extend(files);
        self.write(&project, &record)
    }

    /// Remembers that a content is not wanted, so that nobody is asked about it again.
    pub fn decline(&self, project: &Path, hash: &str) -> Result<(), TrustError> {
        let project = Project::of(project)?;
        let known = self.read(&project);
        let record = Record {
            declined: Some(hash.to_owned()),
            ..known.unwrap_or_else(|| project.empty_record())
        };
        self.write(&project, &record)
    }

    /// Forgets a project; whether there was something to forget. A project that is gone can be forgotten, too.
    pub fn forget(&self, project: &Path) -> Result<bool, TrustError> {
        let path = project.canonicalize().unwrap_or(project.to_owned());
        let file = self.file(&path);
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(TrustError::Write { path: file, source }),
        }
    }

    fn file(&self, project: &Path) -> PathBuf {
        let digest = Sha256::digest(project.as_os_str().as_bytes());
        let name: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
        self.folder.join(format!("{name}.json"))
    }

    fn read(&self, project: &Project) -> Option<Record> {
        if !is_private(&fs::symlink_metadata(&self.folder).ok()?) {
            return None;
        }
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(self.file(&project.path)).ok()?;
        let data = file.metadata().ok()?;
        if !data.is_file() || !is_private(&data) {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        let record: Record = serde_json::from_slice(&bytes).ok()?;
        let is_it = record.version == VERSION
            && record.inode == project.inode
            && record.project == project.path.display().to_string();
        is_it.then_some(record)
    }

    /// Writes a record so that it is there as a whole or not at all, also after a power loss.
    fn write(&self, project: &Project, record: &Record) -> Result<(), TrustError> {
        self.prepare()?;
        let path = self.file(&project.path);
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let written = write(&beside, record).and_then(|()| {
            fs::rename(&beside, &path)?;
            File::open(&self.folder)?.sync_all()
        });
        written.map_err(|source| {
            // It is of no use to anybody.
            let _ = fs::remove_file(&beside);
            TrustError::Write { path, source }
        })
    }

    fn prepare(&self) -> Result<(), TrustError> {
        let path = self.folder.clone();
        let failed = |source| TrustError::Write {
            path: path.clone(),
            source,
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.folder).map_err(failed)?;
        let data = fs::symlink_metadata(&self.folder).map_err(failed)?;
        match data.is_dir() && is_private(&data) {
            true => Ok(()),
            false => Err(TrustError::Open { path }),
        }
    }
}

/// Whether only we, or root, can have written it.
fn is_private(data: &fs::Metadata) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_ours = data.uid() == own || data.uid() == 0;
    is_ours && data.permissions().mode() & 0o022 == 0
}

fn write(path: &Path, record: &Record) -> io::Result<()> {
    // One that a killed process of the same number left behind.
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

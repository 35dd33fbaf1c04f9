//! Tests of work trees in real git repositories: snapshots, differences and restores.

mod fingerprints;
mod places;
mod restoring;
mod taking;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use unstuck_core::RunId;
use unstuck_run::worktree::{Snapshot, SnapshotStore, WorktreeError};

/// A repository with a first commit, and a state directory.
pub(crate) struct Repo {
    folder: TempDir,
}

/// A file as it is on disk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OnDisk {
    File(Vec<u8>),
    Executable(Vec<u8>),
    Link(PathBuf),
}

impl Repo {
    pub(crate) fn new() -> Self {
        let repo = Self::without_commits();
        repo.write("tracked.txt", "one\n");
        repo.write("src/deep/main.rs", "fn main() {}\n");
        repo.write(".gitignore", "*.log\n/ignored/\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "first"]);
        repo
    }

    pub(crate) fn without_commits() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repo = Self { folder };
        fs::create_dir(repo.root()).unwrap();
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("repo")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.root(), args)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), text).unwrap();
    }

    pub(crate) fn link(&self, name: &str, target: &str) {
        symlink(target, self.at(name)).unwrap();
    }

    pub(crate) fn executable(&self, name: &str) {
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    pub(crate) fn open(&self, run: &str) -> Result<SnapshotStore, WorktreeError> {
        SnapshotStore::open(&self.root(), &RunId::new(run), &self.state())
    }

    pub(crate) fn snapshots(&self) -> SnapshotStore {
        self.open("k3v9x0m2qa").unwrap()
    }

    pub(crate) fn take(&self, label: &str) -> Snapshot {
        self.snapshots().create(label).unwrap()
    }

    /// Returns all files on disk except those of git.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, OnDisk> {
        let mut files = BTreeMap::new();
        gather(&self.root(), &mut files);
        files
    }

    /// Returns the state of the repository that the user's own commands see.
    pub(crate) fn as_the_user_sees_it(&self) -> [String; 7] {
        [
            self.git(&["status", "--porcelain=v2", "--branch"]),
            self.git(&["log", "--all", "--oneline"]),
            self.git(&["branch", "--all"]),
            self.git(&["tag"]),
            self.git(&["stash", "list"]),
            self.git(&["diff", "--cached"]),
            self.git(&["ls-files", "--stage", "-v"]),
        ]
    }
}

fn gather(folder: &Path, files: &mut BTreeMap<PathBuf, OnDisk>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let data = path.symlink_metadata().unwrap();
        if data.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            files.insert(path, OnDisk::Link(target));
        } else if data.is_dir() {
            if path.file_name().unwrap().as_bytes() != b".git" {
                gather(&path, files);
            }
        } else {
            let contents = fs::read(&path).unwrap();
            let found = match data.permissions().mode() & 0o100 {
                0 => OnDisk::File(contents),
                _ => OnDisk::Executable(contents),
            };
            files.insert(path, found);
        }
    }
}

/// Runs git like a user without any configuration.
#[expect(clippy::disallowed_methods, reason = "git as the user runs it")]
pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=u", "-c", "user.email=u@localhost"])
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    let (out, error) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "git {args:?}: {error}");
    String::from_utf8_lossy(out).trim_end().to_owned()
}

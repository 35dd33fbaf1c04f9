//! Restores a snapshot: only different files are changed, and the current state is stored as a snapshot first.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_files::{DirHandle, EntryKind, FileError};

use super::error::{WorktreeError, WorktreeIoContext};
use super::file_index::GitFileMode;
use super::path_quoting::{display_path, path_from_bytes};
use super::snapshot::Snapshot;
use super::snapshot_store::SnapshotStore;
use super::tree_diff::{FileChangeKind, RawDiffEntry, raw_diff};

/// Size of files that are held in memory at once.
const MAX_BATCH_BYTES: u64 = 32 * 1024 * 1024;
/// Largest number of commits that are listed.
const MAX_COUNT_ARGUMENT: &str = "--max-count=100";
/// The ignore rules; they are restored first, since they decide which other files may be removed.
const GITIGNORE: &[u8] = b".gitignore";

const CURRENT_DIR_PREFIX: &[u8] = b"./";

/// The result of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// The work tree before the restore; nothing of it is lost.
    #[serde(alias = "undone")]
    pub previous_state: Snapshot,
    /// The files that were written.
    pub written: Vec<String>,
    /// The files that were removed, since the snapshot does not contain them.
    pub removed: Vec<String>,
    /// The files that differ but were not restored, each with the reason.
    #[serde(alias = "kept")]
    pub unrestored: Vec<UnrestoredFile>,
    /// The commits on HEAD since the snapshot, newest first, at most 100. They are kept.
    pub commits: Vec<CommitSummary>,
    /// True if HEAD is at another commit than at the snapshot.
    pub head_moved: bool,
}

/// A file that was not restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnrestoredFile {
    /// Its path.
    pub path: String,
    /// The reason, for humans.
    #[serde(alias = "because")]
    pub reason: &'static str,
}

/// A commit since the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitSummary {
    /// Its id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

impl SnapshotStore {
    /// Restores the work tree to a snapshot, byte for byte.
    ///
    /// HEAD, branches, the user's index and ignored files are not changed; commits since then are reported.
    pub fn restore(&self, to: &Snapshot) -> Result<RestoreReport, WorktreeError> {
        self.expect_trees(&[&to.tree])?;
        let now = self.current()?;
        let undone = Snapshot {
            // Named after its contents, so that no later snapshot replaces it.
            label: format!("undone-{}", now.tree.get(..12).unwrap_or(&now.tree)),
            ..now
        };
        self.save(&undone)?;
        let root = DirHandle::open(self.root()).context("open", self.root())?;
        let mut back = RestoreOperation {
            snapshots: self,
            root,
            to,
            restored: RestoreReport {
                head_moved: undone.head != to.head,
                commits: self.commits(to.head.as_deref(), undone.head.as_deref())?,
                previous_state: undone,
                written: Vec::new(),
                removed: Vec::new(),
                unrestored: Vec::new(),
            },
        };
        back.run()?;
        Ok(back.restored)
    }

    /// Returns the commits that are reachable from one commit and not from the other.
    fn commits(
        &self,
        since: Option<&str>,
        head: Option<&str>,
    ) -> Result<Vec<CommitSummary>, WorktreeError> {
        let Some(head) = head.filter(|head| Some(*head) != since) else {
            return Ok(Vec::new());
        };
        let hidden = since.map(|since| format!("^{since}"));
        let args = [
            "log",
            "--no-show-signature",
            "--format=%H %s",
            MAX_COUNT_ARGUMENT,
            head,
        ];
        let args = args.into_iter().chain(hidden.as_deref()).chain(["--"]);
        let output = self
            .repository
            .git_command("list the new commits")
            .args(args)
            .output()?;
        let commit = |line: &str| {
            let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
            CommitSummary {
                id: id.to_owned(),
                subject: subject.to_owned(),
            }
        };
        let text = String::from_utf8_lossy(&output);
        Ok(text.lines().map(commit).collect())
    }
}

/// A running restore.
struct RestoreOperation<'a> {
    snapshots: &'a SnapshotStore,
    /// The work tree: files are written and removed only below this handle.
    root: DirHandle,
    to: &'a Snapshot,
    restored: RestoreReport,
}

/// A file to write.
struct FileToWrite {
    path: Vec<u8>,
    mode: GitFileMode,
    blob: String,
}

impl RestoreOperation<'_> {
    fn run(&mut self) -> Result<(), WorktreeError> {
        let from = self.restored.previous_state.tree.clone();
        let differing = raw_diff(&self.snapshots.repository, &from, &self.to.tree)?;
        let above = dirs_of(&differing);
        let is_above =
            |raw: &RawDiffEntry| raw.change == FileChangeKind::Deleted && above.contains(&raw.path);
        let (blocking, differing) = differing.into_iter().partition::<Vec<_>, _>(is_above);
        for file in blocking {
            // The snapshot has a directory there, so this file is new even if it is ignored.
            self.remove(&file.path)?;
        }
        let is_rule =
            |raw: &RawDiffEntry| raw.path.rsplit(|byte| *byte == b'/').next() == Some(GITIGNORE);
        let (rules, others) = differing.into_iter().partition::<Vec<_>, _>(is_rule);
        self.restore_files(rules)?;
        self.restore_files(others)
    }

    fn restore_files(&mut self, differing: Vec<RawDiffEntry>) -> Result<(), WorktreeError> {
        let (gone, wanted) = differing
            .into_iter()
            .partition::<Vec<_>, _>(|raw| raw.change == FileChangeKind::Deleted);
        let gone = gone.into_iter().map(|raw| raw.path).collect();
        for path in self.removable(gone)? {
            self.remove(&path)?;
        }
        let wanted = wanted.into_iter().filter_map(|raw| {
            let mode = GitFileMode::parse(raw.mode.as_deref()?)?;
            Some(FileToWrite {
                path: raw.path,
                mode,
                blob: raw.blob,
            })
        });
        self.write_all(wanted.collect())
    }

    /// Returns the files that may be removed: not those excluded or ignored by the snapshot, which may have existed
    /// before.
    fn removable(&mut self, paths: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, WorktreeError> {
        let (left_out, paths): (Vec<_>, Vec<_>) = paths
            .into_iter()
            .partition(|path| self.to.is_excluded(&display_path(path)));
        for path in left_out {
            self.note_unrestored(&path, "not in the snapshot; may have existed before");
        }
        let ignored = self.ignored_paths(&paths)?;
        let (ignored, paths): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|path| ignored.contains(path));
        for path in ignored {
            self.note_unrestored(&path, "ignored; may have existed before");
        }
        Ok(paths)
    }

    fn ignored_paths(&self, paths: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, WorktreeError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let mut input = Vec::new();
        for path in paths {
            // Prevents names from being parsed as git patterns.
            input.extend_from_slice(CURRENT_DIR_PREFIX);
            input.extend_from_slice(path);
            input.push(0);
        }
        let args = ["check-ignore", "--no-index", "-z", "--stdin"];
        let call = self
            .snapshots
            .repository
            .git_command("list the ignored files");
        let answer = call.args(args).input(input).run()?;
        match answer.status.code() {
            Some(0 | 1) => {}
            _ => {
                return Err(WorktreeError::from_git_stderr(
                    "list the ignored files",
                    &answer.stderr,
                ));
            }
        }
        let ignored = answer
            .stdout
            .split(|byte| *byte == 0)
            .filter_map(|line| line.strip_prefix(CURRENT_DIR_PREFIX));
        let ignored = ignored.map(<[u8]>::to_vec);
        Ok(ignored.collect())
    }

    fn note_unrestored(&mut self, path: &[u8], because: &'static str) {
        let path = display_path(path);
        self.restored.unrestored.push(UnrestoredFile {
            path,
            reason: because,
        });
    }

    fn path_in_worktree(&self, name: &[u8]) -> PathBuf {
        self.snapshots.root().join(path_from_bytes(name))
    }

    fn remove(&mut self, name: &[u8]) -> Result<(), WorktreeError> {
        let removed = self.root.remove_file(path_from_bytes(name));
        removed.context("remove", &self.path_in_worktree(name))?;
        self.restored.removed.push(display_path(name));
        // Like git, it also removes directories that become empty.
        for folder in parent_dirs(path_from_bytes(name)) {
            if self.root.remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Writes files in batches of some megabytes.
    fn write_all(&mut self, wanted: Vec<FileToWrite>) -> Result<(), WorktreeError> {
        let sizes = self.sizes(&wanted)?;
        let (mut group, mut bytes) = (Vec::new(), 0);
        for (file, size) in wanted.into_iter().zip(sizes) {
            if bytes + size > MAX_BATCH_BYTES && !group.is_empty() {
                self.write_group(std::mem::take(&mut group))?;
                bytes = 0;
            }
            bytes += size;
            group.push(file);
        }
        self.write_group(group)
    }

    fn sizes(&self, wanted: &[FileToWrite]) -> Result<Vec<u64>, WorktreeError> {
        let output = self.blobs(wanted, "--batch-check=%(objectsize)")?;
        let text = String::from_utf8_lossy(&output);
        let sizes: Result<Vec<u64>, _> = text.lines().map(str::parse).collect();
        sizes.map_err(|_| self.snapshot_pruned_error())
    }

    fn blobs(&self, wanted: &[FileToWrite], how: &str) -> Result<Vec<u8>, WorktreeError> {
        let ids: Vec<&str> = wanted.iter().map(|file| file.blob.as_str()).collect();
        let call = self.snapshots.repository.git_command("read the snapshot");
        let call = call.args(["cat-file", how]);
        call.input(ids.join("\n").into_bytes()).output()
    }

    fn snapshot_pruned_error(&self) -> WorktreeError {
        WorktreeError::Pruned {
            tree: self.to.tree.clone(),
        }
    }

    fn write_group(&mut self, group: Vec<FileToWrite>) -> Result<(), WorktreeError> {
        if group.is_empty() {
            return Ok(());
        }
        let output = self.blobs(&group, "--batch=%(objectsize)")?;
        let mut rest = output.as_slice();
        for file in group {
            let (contents, more) =
                split_first_blob(rest).ok_or_else(|| self.snapshot_pruned_error())?;
            rest = more;
            self.write(&file, contents)?;
        }
        Ok(())
    }

    fn write(&mut self, file: &FileToWrite, contents: &[u8]) -> Result<(), WorktreeError> {
        let name = path_from_bytes(&file.path);
        if let Some(because) = self.blocked_reason(name) {
            self.note_unrestored(&file.path, because);
            return Ok(());
        }
        let place = self.path_in_worktree(&file.path);
        let folder = name.parent().unwrap_or(Path::new(""));
        self.root
            .create_dirs(folder)
            .context("create the directory of", &place)?;
        let written = self.replace_file(name, file.mode, contents);
        written.context("write", &place)?;
        self.restored.written.push(display_path(&file.path));
        Ok(())
    }

    /// Replaces a file atomically.
    fn replace_file(
        &self,
        name: &Path,
        mode: GitFileMode,
        contents: &[u8],
    ) -> Result<(), FileError> {
        if mode == GitFileMode::Link {
            return self.root.symlink(OsStr::from_bytes(contents), name);
        }
        // The permissions of an existing file are kept.
        let before = self.root.permission_bits(name);
        self.root
            .replace_with_permissions(name, contents, &|usual| {
                let bits = before.unwrap_or(usual);
                let readers = (bits & 0o444) >> 2;
                match mode {
                    GitFileMode::Executable => bits | readers,
                    _ => bits & !0o111,
                }
            })
    }

    /// Removes empty directories in place of a file, or returns why the file cannot be written.
    fn blocked_reason(&self, name: &Path) -> Option<&'static str> {
        // A link would redirect the write.
        let is_other = |folder: &Path| {
            let kind = self.root.kind(folder);
            kind.is_some_and(|kind| kind != EntryKind::Directory)
        };
        if parent_dirs(name).any(is_other) {
            return Some("an ignored file is in place of its directory");
        }
        let is_folder = self.root.kind(name) == Some(EntryKind::Directory);
        (is_folder && remove_empty(&self.root, name).is_err())
            .then_some("a directory with ignored files is in its place")
    }
}

/// Returns the directories above a file, from the nearest to that below the root.
fn parent_dirs(name: &Path) -> impl Iterator<Item = &Path> {
    let above = name.ancestors().skip(1);
    above.filter(|folder| !folder.as_os_str().is_empty())
}

/// Returns all directories above the snapshot's files.
fn dirs_of(differing: &[RawDiffEntry]) -> BTreeSet<Vec<u8>> {
    let mut folders = BTreeSet::new();
    for file in differing
        .iter()
        .filter(|raw| raw.change != FileChangeKind::Deleted)
    {
        let ends = file.path.iter().enumerate();
        let ends = ends.filter(|(_, byte)| **byte == b'/');
        folders.extend(ends.map(|(end, _)| file.path[..end].to_vec()));
    }
    folders
}

/// Removes a directory that contains only directories.
fn remove_empty(root: &DirHandle, folder: &Path) -> Result<(), FileError> {
    for entry in root.entries(folder)? {
        if entry.kind == EntryKind::Directory {
            remove_empty(root, &folder.join(entry.name))?;
        }
    }
    root.remove_dir(folder)
}

/// Splits off the first blob of a batch.
fn split_first_blob(batch: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = batch.iter().position(|byte| *byte == b'\n')?;
    let size: usize = std::str::from_utf8(&batch[..end]).ok()?.parse().ok()?;
    let (contents, rest) = batch.get(end + 1..)?.split_at_checked(size)?;
    Some((contents, rest.strip_prefix(b"\n")?))
}

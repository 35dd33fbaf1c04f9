//! The way back to a snapshot: only files that differ are touched, and what is undone is kept as a snapshot first.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_files::{DirHandle, EntryKind, FileError};

use super::difference::{Change, Raw, raw};
use super::error::{While, WorktreeError};
use super::paths::{path, shown};
use super::record::Mode;
use super::snapshot::Snapshot;
use super::snapshots::Snapshots;

/// How many bytes of files are held at once.
const AT_ONCE: u64 = 32 * 1024 * 1024;
/// How many commits are named.
const NAMED_COMMITS: &str = "--max-count=100";
/// The rules for what is ignored; they go back first, since they say what else may be removed.
const RULES: &[u8] = b".gitignore";

const HERE: &[u8] = b"./";

/// What was done to go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// The work tree as it was before; nothing of it is lost.
    #[serde(rename = "undone")]
    pub undone: Snapshot,
    /// The files that were written again.
    pub written: Vec<String>,
    /// The files that were removed, since the snapshot does not have them.
    pub removed: Vec<String>,
    /// What differs but was left as it is, each with the reason.
    #[serde(rename = "kept")]
    pub kept: Vec<Kept>,
    /// The commits on HEAD that were not there at the snapshot, newest first, at most 100. They stay.
    pub commits: Vec<Commit>,
    /// Whether HEAD is at another commit than at the snapshot.
    pub head_moved: bool,
}

/// Something that was not brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Its path.
    pub path: String,
    /// Why, in words for people.
    #[serde(rename = "because")]
    pub because: &'static str,
}

/// A commit that was made since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
}

impl Snapshots {
    /// Brings the work tree back to a snapshot, byte for byte.
    ///
    /// HEAD, branches, the user's index and ignored files stay as they are; commits made since are told.
    pub fn restore(&self, to: &Snapshot) -> Result<Restored, WorktreeError> {
        self.expect_trees(&[&to.tree])?;
        let now = self.now()?;
        let undone = Snapshot {
            // Named after what it holds, so that no later one takes its place.
            label: format!("undone-{}", now.tree.get(..12).unwrap_or(&now.tree)),
            ..now
        };
        self.keep(&undone)?;
        let root = DirHandle::open(self.root()).to("open", self.root())?;
        let mut back = Back {
            snapshots: self,
            root,
            to,
            restored: Restored {
                head_moved: undone.head != to.head,
                commits: self.commits(to.head.as_deref(), undone.head.as_deref())?,
                undone,
                written: Vec::new(),
                removed: Vec::new(),
                kept: Vec::new(),
            },
        };
        back.go()?;
        Ok(back.restored)
    }

    /// The commits that can be reached from one commit and not from the other.
    fn commits(
        &self,
        since: Option<&str>,
        head: Option<&str>,
    ) -> Result<Vec<Commit>, WorktreeError> {
        let Some(head) = head.filter(|head| Some(*head) != since) else {
            return Ok(Vec::new());
        };
        let hidden = since.map(|since| format!("^{since}"));
        let args = [
            "log",
            "--no-show-signature",
            "--format=%H %s",
            NAMED_COMMITS,
            head,
        ];
        let args = args.into_iter().chain(hidden.as_deref()).chain(["--"]);
        let output = self
            .repository
            .git("list the new commits")
            .args(args)
            .output()?;
        let commit = |line: &str| {
            let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
            Commit {
                id: id.to_owned(),
                subject: subject.to_owned(),
            }
        };
        let text = String::from_utf8_lossy(&output);
        Ok(text.lines().map(commit).collect())
    }
}

/// A way back that is under way.
struct Back<'a> {
    snapshots: &'a Snapshots,
    /// The work tree: nothing is written or removed but below this handle.
    root: DirHandle,
    to: &'a Snapshot,
    restored: Restored,
}

/// A file that has to be written.
struct Wanted {
    path: Vec<u8>,
    mode: Mode,
    blob: String,
}

impl Back<'_> {
    fn go(&mut self) -> Result<(), WorktreeError> {
        let from = self.restored.undone.tree.clone();
        let differing = raw(&self.snapshots.repository, &from, &self.to.tree)?;
        let above = folders_of(&differing);
        let is_above = |raw: &Raw| raw.change == Change::Deleted && above.contains(&raw.path);
        let (blocking, differing) = differing.into_iter().partition::<Vec<_>, _>(is_above);
        for file in blocking {
            // The snapshot has a folder there, so this file is new whatever is ignored.
            self.remove(&file.path)?;
        }
        let is_rule = |raw: &Raw| raw.path.rsplit(|byte| *byte == b'/').next() == Some(RULES);
        let (rules, others) = differing.into_iter().partition::<Vec<_>, _>(is_rule);
        self.bring_back(rules)?;
        self.bring_back(others)
    }

    fn bring_back(&mut self, differing: Vec<Raw>) -> Result<(), WorktreeError> {
        let (gone, wanted) = differing
            .into_iter()
            .partition::<Vec<_>, _>(|raw| raw.change == Change::Deleted);
        let gone = gone.into_iter().map(|raw| raw.path).collect();
        for path in self.removable(gone)? {
            self.remove(&path)?;
        }
        let wanted = wanted.into_iter().filter_map(|raw| {
            let mode = Mode::read(raw.mode.as_deref()?)?;
            Some(Wanted {
                path: raw.path,
                mode,
                blob: raw.blob,
            })
        });
        self.write_all(wanted.collect())
    }

    /// What may be removed: not what the snapshot left out or ignored, since that may have been there before.
    fn removable(&mut self, paths: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, WorktreeError> {
        let (left_out, paths): (Vec<_>, Vec<_>) = paths
            .into_iter()
            .partition(|path| self.to.left_out(&shown(path)));
        for path in left_out {
            self.keep(
                &path,
                "the snapshot does not hold it, so it may have been there before",
            );
        }
        let ignored = self.ignored(&paths)?;
        let (ignored, paths): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|path| ignored.contains(path));
        for path in ignored {
            self.keep(&path, "it is ignored, so it may have been there before");
        }
        Ok(paths)
    }

    fn ignored(&self, paths: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, WorktreeError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let mut input = Vec::new();
        for path in paths {
            // So that no name looks like a pattern of git.
            input.extend_from_slice(HERE);
            input.extend_from_slice(path);
            input.push(0);
        }
        let args = ["check-ignore", "--no-index", "-z", "--stdin"];
        let call = self.snapshots.repository.git("see what is ignored");
        let answer = call.args(args).input(input).answer()?;
        match answer.status.code() {
            Some(0 | 1) => {}
            _ => return Err(WorktreeError::said("see what is ignored", &answer.stderr)),
        }
        let ignored = answer
            .stdout
            .split(|byte| *byte == 0)
            .filter_map(|line| line.strip_prefix(HERE));
        let ignored = ignored.map(<[u8]>::to_vec);
        Ok(ignored.collect())
    }

    fn keep(&mut self, path: &[u8], because: &'static str) {
        let path = shown(path);
        self.restored.kept.push(Kept { path, because });
    }

    fn place(&self, name: &[u8]) -> PathBuf {
        self.snapshots.root().join(path(name))
    }

    fn remove(&mut self, name: &[u8]) -> Result<(), WorktreeError> {
        let removed = self.root.remove_file(path(name));
        removed.to("remove", &self.place(name))?;
        self.restored.removed.push(shown(name));
        // Like git: folders that hold nothing any more go too.
        for folder in above(path(name)) {
            if self.root.remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Writes files, some megabytes at a time.
    fn write_all(&mut self, wanted: Vec<Wanted>) -> Result<(), WorktreeError> {
        let sizes = self.sizes(&wanted)?;
        let (mut group, mut bytes) = (Vec::new(), 0);
        for (file, size) in wanted.into_iter().zip(sizes) {
            if bytes + size > AT_ONCE && !group.is_empty() {
                self.write_group(std::mem::take(&mut group))?;
                bytes = 0;
            }
            bytes += size;
            group.push(file);
        }
        self.write_group(group)
    }

    fn sizes(&self, wanted: &[Wanted]) -> Result<Vec<u64>, WorktreeError> {
        let output = self.blobs(wanted, "--batch-check=%(objectsize)")?;
        let text = String::from_utf8_lossy(&output);
        let sizes: Result<Vec<u64>, _> = text.lines().map(str::parse).collect();
        sizes.map_err(|_| self.lost())
    }

    fn blobs(&self, wanted: &[Wanted], how: &str) -> Result<Vec<u8>, WorktreeError> {
        let ids: Vec<&str> = wanted.iter().map(|file| file.blob.as_str()).collect();
        let call = self.snapshots.repository.git("read the snapshot");
        let call = call.args(["cat-file", how]);
        call.input(ids.join("\n").into_bytes()).output()
    }

    fn lost(&self) -> WorktreeError {
        WorktreeError::Pruned {
            tree: self.to.tree.clone(),
        }
    }

    fn write_group(&mut self, group: Vec<Wanted>) -> Result<(), WorktreeError> {
        if group.is_empty() {
            return Ok(());
        }
        let output = self.blobs(&group, "--batch=%(objectsize)")?;
        let mut rest = output.as_slice();
        for file in group {
            let (contents, more) = one_blob(rest).ok_or_else(|| self.lost())?;
            rest = more;
            self.write(&file, contents)?;
        }
        Ok(())
    }

    fn write(&mut self, file: &Wanted, contents: &[u8]) -> Result<(), WorktreeError> {
        let name = path(&file.path);
        if let Some(because) = self.blocked(name) {
            self.keep(&file.path, because);
            return Ok(());
        }
        let place = self.place(&file.path);
        let folder = name.parent().unwrap_or(Path::new(""));
        self.root
            .create_dirs(folder)
            .to("make the folder", &place)?;
        let written = self.put(name, file.mode, contents);
        written.to("write", &place)?;
        self.restored.written.push(shown(&file.path));
        Ok(())
    }

    /// Puts a file in its place at once, so that nobody ever sees half of it.
    fn put(&self, name: &Path, mode: Mode, contents: &[u8]) -> Result<(), FileError> {
        if mode == Mode::Link {
            return self.root.symlink(OsStr::from_bytes(contents), name);
        }
        // Who may read a file that is there stays as it is.
        let before = self.root.permission_bits(name);
        self.root
            .replace_with_permissions(name, contents, &|usual| {
                let bits = before.unwrap_or(usual);
                let readers = (bits & 0o444) >> 2;
                match mode {
                    Mode::Executable => bits | readers,
                    _ => bits & !0o111,
                }
            })
    }

    /// Clears a place of empty folders, or says why a file cannot be written there.
    fn blocked(&self, name: &Path) -> Option<&'static str> {
        // Through a link one would write somewhere else.
        let is_other = |folder: &Path| {
            let kind = self.root.kind(folder);
            kind.is_some_and(|kind| kind != EntryKind::Folder)
        };
        if above(name).any(is_other) {
            return Some("an ignored file is where its folder was");
        }
        let is_folder = self.root.kind(name) == Some(EntryKind::Folder);
        (is_folder && remove_empty(&self.root, name).is_err())
            .then_some("a folder with ignored files is in its place")
    }
}

/// The folders above a file, from the nearest to that below the root.
fn above(name: &Path) -> impl Iterator<Item = &Path> {
    let above = name.ancestors().skip(1);
    above.filter(|folder| !folder.as_os_str().is_empty())
}

/// All folders above the files that the snapshot has.
fn folders_of(differing: &[Raw]) -> BTreeSet<Vec<u8>> {
    let mut folders = BTreeSet::new();
    for file in differing.iter().filter(|raw| raw.change != Change::Deleted) {
        let ends = file.path.iter().enumerate();
        let ends = ends.filter(|(_, byte)| **byte == b'/');
        folders.extend(ends.map(|(end, _)| file.path[..end].to_vec()));
    }
    folders
}

/// Removes a folder that holds nothing but folders.
fn remove_empty(root: &DirHandle, folder: &Path) -> Result<(), FileError> {
    for entry in root.entries(folder)? {
        if entry.kind == EntryKind::Folder {
            remove_empty(root, &folder.join(entry.name))?;
        }
    }
    root.remove_dir(folder)
}

/// The first blob of a batch, and what comes after it.
fn one_blob(batch: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = batch.iter().position(|byte| *byte == b'\n')?;
    let size: usize = std::str::from_utf8(&batch[..end]).ok()?.parse().ok()?;
    let (contents, rest) = batch.get(end + 1..)?.split_at_checked(size)?;
    Some((contents, rest.strip_prefix(b"\n")?))
}

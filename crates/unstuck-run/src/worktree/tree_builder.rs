//! Builds a git tree of the work tree, byte for byte and without the conversions that a repository configures.
//!
//! Only files that changed since the last time are read. The cache is in a directory outside of the project: a record
//! of the tree and its files, which is replaced as a whole. One run of `git fast-import` imports new files and builds
//! the next tree from the previous one.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{FlockOperation, flock};
use unstuck_files::DirHandle;

use super::error::{WorktreeError, WorktreeIoContext};
use super::file_index::{
    FileIndex, FileIndexEntries, FileIndexEntry, GitFileMode, StatFingerprint,
};
use super::listing::{ListedFile, MAX_UNTRACKED_BYTES, WorktreeListing, list};
use super::own_files::OwnFiles;
use super::path_quoting::{path_from_bytes, quote_path};
use super::repository::Repository;
use super::snapshot::{SnapshotExcludedFile, ref_part};

/// Total size of files up to which they are imported without checking if the repository has them already.
const MAX_IMPORT_BYTES: u64 = 8 << 20;

/// A ref that never exists.
const NO_REF: &str = "refs/unstuck/none";

/// The author of the commit that no ref points to.
const NOBODY: &str = "unstuck <unstuck@localhost>";

/// The git tree object of a work tree, with the commit of HEAD and the excluded files.
pub(super) struct WorktreeGitTree {
    pub(super) id: String,
    pub(super) head: Option<String>,
    pub(super) left_out: Vec<SnapshotExcludedFile>,
}

/// The cache of one work tree.
#[derive(Debug, Clone)]
pub(super) struct TreeCache {
    state: PathBuf,
    folder: PathBuf,
}

impl TreeCache {
    /// Returns the cache of a work tree, in a directory of its own below the state directory.
    pub(super) fn new(state: &Path, repository: &Repository) -> Self {
        Self {
            state: state.to_owned(),
            folder: state
                .join("worktrees")
                .join(cache_dir_name(&repository.root)),
        }
    }

    /// Builds the tree of the current files.
    pub(super) fn build_tree(
        &self,
        repository: &Repository,
    ) -> Result<WorktreeGitTree, WorktreeError> {
        fs::create_dir_all(&self.folder).context("create the directory", &self.folder)?;
        let _alone = self.lock()?;
        let known = self.load_index();
        match self.write_current_tree(repository, known) {
            Err(WorktreeError::Git { .. }) => {
                // The cache may be damaged or name objects that were pruned: rebuild it from scratch.
                self.write_current_tree(repository, FileIndex::default())
            }
            made => made,
        }
    }

    /// Takes the lock, which one process can hold; the system releases it when that process ends.
    fn lock(&self) -> Result<File, WorktreeError> {
        let path = self.folder.join("lock");
        let file = File::create(&path).context("write", &path)?;
        flock(&file, FlockOperation::LockExclusive).context("lock", &path)?;
        Ok(file)
    }

    fn load_index(&self) -> FileIndex {
        let record = fs::read(self.folder.join("files")).ok();
        let record = record.and_then(|bytes| FileIndex::parse(&bytes));
        record.unwrap_or_default()
    }

    fn write_current_tree(
        &self,
        repository: &Repository,
        known: FileIndex,
    ) -> Result<WorktreeGitTree, WorktreeError> {
        let looked = self.filesystem_now()?;
        let own = OwnFiles::new(&repository.root, &self.state);
        let (listing, head) = thread::scope(|scope| {
            let head = scope.spawn(|| head_and_tree(repository, &known.tree));
            (list(repository, &own), head.join())
        });
        let gone = |_| io::Error::other("a worker thread panicked");
        let (head, is_kept) = head.map_err(gone).context("inspect", &repository.root)??;
        let mut listing = listing?;
        let root = DirHandle::open(&repository.root).context("open", &repository.root)?;
        let names = unknown(&mut listing, &known, &root);
        let blobs = blobs(repository, &listing, &names)?;
        let (mut entries, new) = entries(&listing, &known, looked, &names, blobs);
        let mut id = known.tree.clone();
        if !is_kept || !new.is_empty() || !is_same_tree(&entries, &known.entries) {
            let before = if is_kept {
                &known
            } else {
                &FileIndex::default()
            };
            let changes = changes(before, &entries);
            let imported = import(repository, &listing, &root, &new, &changes)?;
            for (name, blob) in new.iter().zip(imported.blobs) {
                if let Some(entry) = entries.get_mut(*name) {
                    entry.blob = blob;
                }
            }
            id = imported.tree;
        }
        let record = FileIndex {
            tree: id.clone(),
            entries,
        };
        if record != known {
            self.save_index(&record)?;
        }
        Ok(WorktreeGitTree {
            id,
            head,
            left_out: listing.left_out,
        })
    }

    /// Returns the current time of the file system.
    fn filesystem_now(&self) -> Result<StatFingerprint, WorktreeError> {
        let path = self.folder.join("moment");
        File::create(&path)
            .and_then(|mut file| file.write_all(b"\n"))
            .context("write", &path)?;
        let data = rustix::fs::lstat(&path).context("inspect", &path)?;
        Ok(StatFingerprint::from_stat(&data))
    }

    fn save_index(&self, record: &FileIndex) -> Result<(), WorktreeError> {
        let (new, path) = (self.folder.join("files.new"), self.folder.join("files"));
        fs::write(&new, record.to_bytes()).context("write", &new)?;
        fs::rename(&new, &path).context("rename", &new)
    }
}

/// Returns the unique directory name for the cache of a work tree.
fn cache_dir_name(root: &Path) -> String {
    // FNV-1a: stable across compiler versions, unlike the hashes of the standard library.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let bytes = root.as_os_str().as_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    format!("{}-{hash:016x}", ref_part(&name))
}

/// Returns the commit of HEAD, and true if a tree exists.
fn head_and_tree(
    repository: &Repository,
    tree: &str,
) -> Result<(Option<String>, bool), WorktreeError> {
    let input = format!("HEAD\n{tree}\n").into_bytes();
    let args = ["cat-file", "--batch-check=%(objectname) %(objecttype)"];
    let call = repository.git_outside("read HEAD").args(args).input(input);
    let output = String::from_utf8_lossy(&call.output()?).into_owned();
    let mut lines = output.lines();
    let head = lines.next().and_then(|line| line.strip_suffix(" commit"));
    let is_kept = lines.next().is_some_and(|line| line.ends_with(" tree"));
    Ok((head.map(str::to_owned), is_kept))
}

/// Returns true if two sets of files have the same tree.
fn is_same_tree(one: &FileIndexEntries, other: &FileIndexEntries) -> bool {
    let mut pairs = one.iter().zip(other);
    one.len() == other.len()
        && pairs.all(|((path, entry), (other_path, other))| {
            path == other_path && (entry.mode, &entry.blob) == (other.mode, &other.blob)
        })
}

/// Returns the files that may have changed since they were read; unreadable ones are excluded.
fn unknown(listing: &mut WorktreeListing, known: &FileIndex, root: &DirHandle) -> Vec<Vec<u8>> {
    let unknown = |(name, found): (&Vec<u8>, &ListedFile)| {
        let before = known.entries.get(name);
        let same = before.is_some_and(|before| before.fingerprint == found.fingerprint);
        (!same).then(|| name.clone())
    };
    let mut names: Vec<Vec<u8>> = listing.files.iter().filter_map(unknown).collect();
    listing.exclude_unreadable(root, &mut names);
    names
}

/// Returns the blobs of files that are in the repository already, if the lookup pays off.
fn blobs(
    repository: &Repository,
    listing: &WorktreeListing,
    names: &[Vec<u8>],
) -> Result<Vec<Option<String>>, WorktreeError> {
    let size = |name: &Vec<u8>| {
        listing
            .files
            .get(name)
            .map_or(0, |found| found.fingerprint.size())
    };
    // Files that are in the repository already need not be imported; to find them takes a command or two.
    if names.iter().map(size).sum::<u64>() > MAX_IMPORT_BYTES {
        known_blobs(repository, listing, names)
    } else {
        Ok(vec![None; names.len()])
    }
}

/// Returns all files with their blobs, and those that still have to be imported: these have a mark instead of a blob.
fn entries<'n>(
    listing: &WorktreeListing,
    known: &FileIndex,
    looked: StatFingerprint,
    names: &'n [Vec<u8>],
    blobs: Vec<Option<String>>,
) -> (FileIndexEntries, Vec<&'n Vec<u8>>) {
    let mut read = names.iter().zip(blobs).peekable();
    let (mut entries, mut new) = (FileIndexEntries::new(), Vec::new());
    for (name, found) in &listing.files {
        let blob = match read.next_if(|(read, _)| *read == name) {
            Some((_, Some(blob))) => Some(blob),
            Some((name, None)) => {
                new.push(name);
                Some(format!(":{}", new.len()))
            }
            None => known.entries.get(name).map(|entry| entry.blob.clone()),
        };
        let Some(blob) = blob else {
            continue;
        };
        let entry = FileIndexEntry {
            mode: found.mode,
            blob,
            fingerprint: found.fingerprint.unless_racy(looked),
        };
        entries.insert(name.clone(), entry);
    }
    (entries, new)
}

/// The blobs and the tree created by git.
struct Imported {
    blobs: Vec<String>,
    tree: String,
}

/// Imports files, read below a handle, and the tree with these changes: git itself opens none of the files.
fn import(
    repository: &Repository,
    listing: &WorktreeListing,
    root: &DirHandle,
    names: &[&Vec<u8>],
    changes: &[u8],
) -> Result<Imported, WorktreeError> {
    let call = repository.git_outside("read the files");
    // Names are case-sensitive, whatever the repository configures. An input without its last line has no effect.
    let args = [
        "-c",
        "core.ignoreCase=false",
        "fast-import",
        "--quiet",
        "--done",
    ];
    let call = call.args(args).input_from(|to| {
        for (mark, name) in (1_usize..).zip(names) {
            if let Some(found) = listing.files.get(*name) {
                write_blob(to, mark, root, path_from_bytes(name), found)?;
            }
        }
        to.write_all(changes)
    });
    let output = call.output()?;
    let output = String::from_utf8_lossy(&output);
    let mut lines = output.lines();
    let blobs: Vec<_> = lines
        .by_ref()
        .take(names.len())
        .map(str::to_owned)
        .collect();
    // `040000 tree 7ree…<TAB>`
    let tree = lines
        .next()
        .and_then(|line| line.split_ascii_whitespace().nth(2));
    match tree {
        Some(tree) => Ok(Imported {
            blobs,
            tree: tree.to_owned(),
        }),
        None => Err(WorktreeError::Git {
            doing: "read the files",
            message: "a file changed while it was read".to_owned(),
        }),
    }
}

/// Returns the input of `fast-import` that changes the previous tree to that of these files; deletions come first, so
/// that a directory can become a file. The tree is printed, and the commit made for it is discarded.
fn changes(before: &FileIndex, entries: &FileIndexEntries) -> Vec<u8> {
    let mut lines = format!("commit {NO_REF}\ncommitter {NOBODY} 0 +0000\ndata 0\n").into_bytes();
    if !before.tree.is_empty() {
        lines.extend(format!("M 040000 {} \"\"\n", before.tree).bytes());
    }
    let mut add = |what: &str, path: &[u8]| {
        lines.extend_from_slice(what.as_bytes());
        lines.extend(quote_path(path));
        lines.push(b'\n');
    };
    for path in before.entries.keys() {
        if !entries.contains_key(path) {
            add("D ", path);
        }
    }
    for (path, entry) in entries {
        let known = before.entries.get(path);
        if known.is_none_or(|known| (known.mode, &known.blob) != (entry.mode, &entry.blob)) {
            add(&format!("M {} {} ", entry.mode.octal(), entry.blob), path);
        }
    }
    lines.extend(format!("ls \"\"\nreset {NO_REF}\n\ndone\n").bytes());
    lines
}

/// Writes one file as `fast-import` reads it.
fn write_blob(
    to: &mut dyn Write,
    mark: usize,
    root: &DirHandle,
    name: &Path,
    found: &ListedFile,
) -> io::Result<()> {
    let head = |to: &mut dyn Write, size: u64| write!(to, "blob\nmark :{mark}\ndata {size}\n");
    if found.mode == GitFileMode::Link {
        let target = root.read_link(name)?;
        head(to, target.len() as u64)?;
        to.write_all(target.as_bytes())?;
    } else {
        let file = root.open_file(name)?;
        let size = file.metadata()?.len();
        // The file may have been replaced since it was listed.
        if size > found.fingerprint.size().max(MAX_UNTRACKED_BYTES) {
            return Err(io::Error::other(
                "a file grew too much since it was scanned",
            ));
        }
        head(to, size)?;
        let written = io::copy(&mut file.take(size), to)?;
        if written < size {
            return Err(io::Error::other("a file shrank while it was read"));
        }
    }
    write!(to, "\nget-mark :{mark}\n")
}

/// Returns the blobs of files that are in the repository already; `None` for the others, and for links.
fn known_blobs(
    repository: &Repository,
    listing: &WorktreeListing,
    names: &[Vec<u8>],
) -> Result<Vec<Option<String>>, WorktreeError> {
    let is_file = |name: &&Vec<u8>| {
        let found = listing.files.get(*name);
        found.is_some_and(|found| found.mode != GitFileMode::Link)
    };
    let files: Vec<&Vec<u8>> = names.iter().filter(is_file).collect();
    let mut input = Vec::new();
    for name in &files {
        input.extend(quote_path(name));
        input.push(b'\n');
    }
    // This only computes a hash: a file that is replaced meanwhile does not get into the repository.
    let args = ["hash-object", "--no-filters", "--stdin-paths"];
    let hashed = repository
        .git_command("read the files")
        .args(args)
        .input(input);
    let hashed = hashed.output()?;
    let args = ["cat-file", "--batch-check=%(objecttype)"];
    let call = repository.git_outside("read the files").args(args);
    let kinds = call.input(hashed.clone()).output()?;
    let (hashed, kinds) = (
        String::from_utf8_lossy(&hashed),
        String::from_utf8_lossy(&kinds),
    );
    let mut found = hashed.lines().zip(kinds.lines());
    let known = names.iter().map(|name| {
        let (id, kind) = is_file(&name).then(|| found.next()).flatten()?;
        (kind == "blob").then(|| id.to_owned())
    });
    Ok(known.collect())
}

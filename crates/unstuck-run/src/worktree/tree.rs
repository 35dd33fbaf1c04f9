//! Makes a git tree of the work tree, byte for byte and without the conversions that a repository asks for.
//!
//! Only files that changed since the last time are read. What is remembered lies in a folder outside the project: a
//! record of the files, and a private index named after the tree that it makes. Both are replaced as a pair, so
//! that a crash leaves the old pair or the new one.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{FlockOperation, flock};
use unstuck_files::DirHandle;

use super::error::{While, WorktreeError};
use super::listing::{Found, LARGEST_UNTRACKED, Listing, list};
use super::own::Own;
use super::paths::{path, quoted};
use super::record::{Entries, Entry, Mode, Record, Seen};
use super::repository::Repository;
use super::snapshot::{LeftOut, ref_part};

/// Up to so many bytes of files are written without a look at what the repository has already.
const IMPORTED_AT_ONCE: u64 = 8 << 20;

/// The work tree as a tree object.
pub(super) struct Tree {
    pub(super) id: String,
    pub(super) head: Option<String>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Where what is remembered of one work tree is kept.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    state: PathBuf,
    folder: PathBuf,
}

impl Memory {
    /// The memory of a work tree, in a folder of its own below the state folder.
    pub(super) fn new(state: &Path, repository: &Repository) -> Self {
        Self {
            state: state.to_owned(),
            folder: state.join("worktrees").join(folder_name(&repository.root)),
        }
    }

    /// The tree of what is there now.
    pub(super) fn tree(&self, repository: &Repository) -> Result<Tree, WorktreeError> {
        fs::create_dir_all(&self.folder).to("make the folder", &self.folder)?;
        let _alone = self.lock()?;
        let known = self.recall();
        match self.make(repository, known) {
            Err(WorktreeError::Git { .. }) => {
                // What is remembered may name objects that were pruned, or be damaged: once more from the beginning.
                self.make(repository, Record::default())
            }
            made => made,
        }
    }

    /// Held by one process at a time; the system lets it go if that process ends.
    fn lock(&self) -> Result<File, WorktreeError> {
        let path = self.folder.join("lock");
        let file = File::create(&path).to("write", &path)?;
        flock(&file, FlockOperation::LockExclusive).to("lock", &path)?;
        Ok(file)
    }

    fn recall(&self) -> Record {
        let record = fs::read(self.folder.join("files")).ok();
        let record = record.and_then(|bytes| Record::read(&bytes));
        let whole = |record: &Record| self.index(&record.tree).is_file();
        record.filter(whole).unwrap_or_default()
    }

    fn index(&self, tree: &str) -> PathBuf {
        self.folder.join(format!("index-{tree}"))
    }

    fn make(&self, repository: &Repository, known: Record) -> Result<Tree, WorktreeError> {
        let looked = self.moment()?;
        let own = Own::new(&repository.root, &self.state);
        let (listing, head) = thread::scope(|scope| {
            let head = scope.spawn(|| head_and_tree(repository, &known.tree));
            (list(repository, &own), head.join())
        });
        let gone = |_| io::Error::other("a thread of ours ended");
        let (head, is_kept) = head.map_err(gone).to("look at", &repository.root)??;
        let mut listing = listing?;
        let entries = self.read(repository, &mut listing, &known, looked)?;
        let mut id = known.tree.clone();
        if !is_kept || !same(&entries, &known.entries) {
            id = self.write_tree(repository, &known, &entries)?;
        }
        let record = Record {
            tree: id.clone(),
            entries,
        };
        if record != known {
            self.remember(&record)?;
        }
        Ok(Tree {
            id,
            head,
            left_out: listing.left_out,
        })
    }

    /// The present moment as file systems see it.
    fn moment(&self) -> Result<Seen, WorktreeError> {
        let path = self.folder.join("moment");
        File::create(&path)
            .and_then(|mut file| file.write_all(b"\n"))
            .to("write", &path)?;
        let data = rustix::fs::lstat(&path).to("look at", &path)?;
        Ok(Seen::of(&data))
    }

    /// All files with their blobs; those that may have changed are read.
    fn read(
        &self,
        repository: &Repository,
        listing: &mut Listing,
        known: &Record,
        looked: Seen,
    ) -> Result<Entries, WorktreeError> {
        let unknown = |(name, found): (&Vec<u8>, &Found)| {
            let before = known.entries.get(name);
            let same = before.is_some_and(|before| before.seen == found.seen);
            (!same).then(|| name.clone())
        };
        let mut names: Vec<Vec<u8>> = listing.files.iter().filter_map(unknown).collect();
        let root = DirHandle::open(&repository.root).to("open", &repository.root)?;
        listing.leave_out_unreadable(&root, &mut names);
        let mut blobs = self.hash(repository, listing, &names)?.into_iter();
        let mut names = names.into_iter().peekable();
        let mut entries = Entries::new();
        for (name, found) in &listing.files {
            let blob = match names.next_if_eq(name) {
                Some(_) => blobs.next(),
                None => known.entries.get(name).map(|entry| entry.blob.clone()),
            };
            let Some(blob) = blob else {
                continue;
            };
            let entry = Entry {
                mode: found.mode,
                blob,
                seen: found.seen.settled_at(looked),
            };
            entries.insert(name.clone(), entry);
        }
        Ok(entries)
    }

    /// Puts files into the repository as they are, and gives the ids of their blobs in the same order.
    fn hash(
        &self,
        repository: &Repository,
        listing: &Listing,
        names: &[Vec<u8>],
    ) -> Result<Vec<String>, WorktreeError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let root = DirHandle::open(&repository.root).to("open", &repository.root)?;
        let size = |name: &Vec<u8>| listing.files.get(name).map_or(0, |found| found.seen.size());
        let is_large = names.iter().map(size).sum::<u64>() > IMPORTED_AT_ONCE;
        // What is in the repository already need not be written; to find out costs a call or two.
        let known = match is_large {
            true => known_blobs(repository, listing, names)?,
            false => vec![None; names.len()],
        };
        let new: Vec<_> = names.iter().zip(&known).collect();
        let new = new.into_iter().filter(|(_, known)| known.is_none());
        let new: Vec<&Vec<u8>> = new.map(|(name, _)| name).collect();
        let mut imported = self.import(repository, listing, &root, &new)?.into_iter();
        let ids = known
            .into_iter()
            .map(|known| known.or_else(|| imported.next()));
        ids.collect::<Option<Vec<_>>>().ok_or(WorktreeError::Git {
            doing: "read the files",
            said: "it told of fewer files than it was given".to_owned(),
        })
    }

    /// Writes files into the repository, as they are read below a handle: git itself opens none of them.
    fn import(
        &self,
        repository: &Repository,
        listing: &Listing,
        root: &DirHandle,
        names: &[&Vec<u8>],
    ) -> Result<Vec<String>, WorktreeError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let marks = self.folder.join("marks");
        let export = format!("--export-marks={}", marks.display());
        let call = repository.git("read the files");
        let call = call.args(["fast-import", "--quiet", &export]);
        let call = call.input_from(|to| {
            for (mark, name) in (1_usize..).zip(names) {
                if let Some(found) = listing.files.get(*name) {
                    write_blob(to, mark, root, path(name), found)?;
                }
            }
            Ok(())
        });
        let imported = call.output();
        let text = fs::read_to_string(&marks);
        // The next import writes it anew.
        let _ = fs::remove_file(&marks);
        imported?;
        let text = text.to("read", &marks)?;
        let marked = text.lines().filter_map(|line| {
            let (mark, id) = line.strip_prefix(':')?.split_once(' ')?;
            Some((mark.parse::<usize>().ok()?, id.to_owned()))
        });
        let ids: BTreeMap<usize, String> = marked.collect();
        // One that could not be read is missing.
        match ids.len() == names.len() {
            true => Ok(ids.into_values().collect()),
            false => Err(WorktreeError::Git {
                doing: "read the files",
                said: "a file was changed while it was read".to_owned(),
            }),
        }
    }

    /// Writes the tree of these files; the private index already holds those that are known.
    fn write_tree(
        &self,
        repository: &Repository,
        known: &Record,
        entries: &Entries,
    ) -> Result<String, WorktreeError> {
        let index = self.folder.join("index");
        for leftover in [&index, &self.folder.join("index.lock")] {
            if leftover.exists() {
                fs::remove_file(leftover).to("remove", leftover)?;
            }
        }
        if !known.entries.is_empty() {
            let before = self.index(&known.tree);
            fs::copy(&before, &index).to("copy", &before)?;
        }
        let git = |doing| repository.git(doing).env("GIT_INDEX_FILE", &index);
        git("note the files")
            .args(["update-index", "-z", "--index-info"])
            .input(index_lines(&known.entries, entries))
            .output()?;
        let id = git("write the tree").args(["write-tree"]).line()?;
        let kept = self.index(&id);
        match index.exists() {
            true => fs::rename(&index, &kept).to("rename", &index)?,
            // Without files git writes no index.
            false => drop(File::create(&kept).to("write", &kept)?),
        }
        Ok(id)
    }

    fn remember(&self, record: &Record) -> Result<(), WorktreeError> {
        let (new, path) = (self.folder.join("files.new"), self.folder.join("files"));
        fs::write(&new, record.write()).to("write", &new)?;
        fs::rename(&new, &path).to("rename", &new)?;
        let kept = self.index(&record.tree);
        let found = fs::read_dir(&self.folder).to("list", &self.folder)?;
        for old in found.flatten().map(|entry| entry.path()) {
            let name = old.file_name().unwrap_or_default().as_bytes();
            if name.starts_with(b"index-") && old != kept {
                fs::remove_file(&old).to("remove", &old)?;
            }
        }
        Ok(())
    }
}

/// The name of the folder for what is remembered of a work tree: no two share one.
fn folder_name(root: &Path) -> String {
    // FNV-1a: stable over versions of the compiler, which the hashes of the standard library are not.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let bytes = root.as_os_str().as_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    format!("{}-{hash:016x}", ref_part(&name))
}

/// Where HEAD is, and whether a tree is there.
fn head_and_tree(
    repository: &Repository,
    tree: &str,
) -> Result<(Option<String>, bool), WorktreeError> {
    let input = format!("HEAD\n{tree}\n").into_bytes();
    let args = ["cat-file", "--batch-check=%(objectname) %(objecttype)"];
    let call = repository.git("look at HEAD").args(args).input(input);
    let output = String::from_utf8_lossy(&call.output()?).into_owned();
    let mut lines = output.lines();
    let head = lines.next().and_then(|line| line.strip_suffix(" commit"));
    let is_kept = lines.next().is_some_and(|line| line.ends_with(" tree"));
    Ok((head.map(str::to_owned), is_kept))
}

/// Whether two sets of files make the same tree.
fn same(one: &Entries, other: &Entries) -> bool {
    let mut pairs = one.iter().zip(other);
    one.len() == other.len()
        && pairs.all(|((path, entry), (other_path, other))| {
            path == other_path && (entry.mode, &entry.blob) == (other.mode, &other.blob)
        })
}

/// What has to change in the index; what goes comes first, so that a folder can become a file.
fn index_lines(known: &Entries, entries: &Entries) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut add = |mode: &str, blob: &str, path: &[u8]| {
        lines.extend_from_slice(format!("{mode} {blob}\t").as_bytes());
        lines.extend_from_slice(path);
        lines.push(0);
    };
    for (path, entry) in known {
        if !entries.contains_key(path) {
            add("0", &"0".repeat(entry.blob.len()), path);
        }
    }
    for (path, entry) in entries {
        let before = known.get(path);
        if before.is_none_or(|before| (before.mode, &before.blob) != (entry.mode, &entry.blob)) {
            add(entry.mode.octal(), &entry.blob, path);
        }
    }
    lines
}

/// Writes one file as `fast-import` reads it.
fn write_blob(
    to: &mut dyn Write,
    mark: usize,
    root: &DirHandle,
    name: &Path,
    found: &Found,
) -> io::Result<()> {
    let head = |to: &mut dyn Write, size: u64| write!(to, "blob\nmark :{mark}\ndata {size}\n");
    if found.mode == Mode::Link {
        let target = root.read_link(name)?;
        head(to, target.len() as u64)?;
        to.write_all(target.as_bytes())?;
    } else {
        let file = root.open_file(name)?;
        let size = file.metadata()?.len();
        // Something else may be in its place since it was looked at.
        if size > found.seen.size().max(LARGEST_UNTRACKED) {
            return Err(io::Error::other(
                "a file became much larger since it was looked at",
            ));
        }
        head(to, size)?;
        let written = io::copy(&mut file.take(size), to)?;
        if written < size {
            return Err(io::Error::other("a file became shorter while it was read"));
        }
    }
    to.write_all(b"\n")
}

/// The blobs of files that are in the repository already; none for the others, and for links.
fn known_blobs(
    repository: &Repository,
    listing: &Listing,
    names: &[Vec<u8>],
) -> Result<Vec<Option<String>>, WorktreeError> {
    let is_file = |name: &&Vec<u8>| {
        let found = listing.files.get(*name);
        found.is_some_and(|found| found.mode != Mode::Link)
    };
    let files: Vec<&Vec<u8>> = names.iter().filter(is_file).collect();
    let mut input = Vec::new();
    for name in &files {
        input.extend(quoted(name));
        input.push(b'\n');
    }
    // Only a hash comes of it: whatever is put in the place of a file meanwhile does not get into the repository.
    let args = ["hash-object", "--no-filters", "--stdin-paths"];
    let hashed = repository.git("read the files").args(args).input(input);
    let hashed = hashed.output()?;
    let args = ["cat-file", "--batch-check=%(objecttype)"];
    let call = repository.git("read the files").args(args);
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

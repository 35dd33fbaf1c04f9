//! Detects and reverts injected configuration: new or changed files that unstuck or git would obey.
//!
//! Where mounts are available, existing files are read-only for a repair and git's directory is a private copy. Missing
//! files cannot be protected without creating them, so they are looked for afterwards and removed. Without mounts,
//! existing files are restored as well.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};
use sha2::{Digest, Sha256};

use super::git_dirs::{
    self, AllowedGitDirChanges, GitRepositoryMarker, GitRepositoryMarkerKind, MODULES_DIR,
    ProjectRepositories, has_repository_layout, hook_is_harmless, is_writable_git_name,
    settings_are_harmless,
};
use super::path_lists::SandboxPathLists;
use super::scratch_dir;

/// Larger files are not kept for restoring; if one changes, it is removed.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Maximum number of protected entries.
const MAX_ENTRIES: usize = 200_000;
/// Maximum size of all files kept for restoring.
const MAX_KEPT_BYTES: u64 = 64 << 20;
/// Maximum size of all files read.
const MAX_READ_BYTES: u64 = 1 << 30;
/// Size of the parts in which a file is hashed.
const HASH_BUFFER_BYTES: usize = 64 << 10;
/// Maximum depth inside a repository.
const MAX_DEPTH: usize = 12;
/// Directories of git-annex and git-svn in a repository: possibly large, and nothing in them is executed.
const DATA_DIRS: [&str; 2] = ["annex", "svn"];
/// Depth to which a referenced directory of hooks is protected.
const REFERENCED_DEPTH: usize = 2;

/// The reason to refuse a command in a project with too many protected files.
const TOO_MUCH_TO_PROTECT: &str = "there are too many or too large files to protect in this project: look for unusual files in \
     `.git` directories, and in the directories that `core.hooksPath` names";

/// The files of a project that influence later commands, as they were before the repair.
#[derive(Debug)]
pub struct ProtectedFilesRecord {
    /// Paths that did not exist.
    absent: Vec<PathBuf>,
    /// Existing repositories.
    git: ProjectRepositories,
    /// Protected entries in repositories, by path.
    protected: BTreeMap<PathBuf, ProtectedEntry>,
    /// If set, there are more protected entries than can be recorded.
    is_over_limit: bool,
}

/// An entry that no repair may change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProtectedEntry {
    Directory,
    File {
        bytes: Vec<u8>,
        mode: RawMode,
    },
    Link(PathBuf),
    /// A file that is too large to be kept.
    Large {
        sha256: [u8; 32],
        mode: RawMode,
    },
    /// An entry of a type that cannot be restored.
    Other,
    /// A file that was not read, because of the limits. It counts as changed.
    Unread,
}

impl ProtectedFilesRecord {
    /// Records the state of a project. If the command gets a private copy of git's directory, nothing in it needs
    /// recording.
    pub fn record<'k>(
        project: &impl AsFd,
        kept: impl Iterator<Item = &'k PathBuf>,
        git: ProjectRepositories,
        is_private: bool,
    ) -> Self {
        let absent = kept.filter(|path| {
            open_parent_dir(project, path).is_ok_and(|folder| !exists(&folder, file_name(path)))
        });
        let collected = collect_protected(project, &git, is_private, None);
        let (protected, is_over_limit) = (collected.all, collected.is_over_limit);
        Self {
            absent: absent.cloned().collect(),
            git,
            protected,
            is_over_limit,
        }
    }

    /// Returns the reason to refuse a command if there is more to protect than can be recorded.
    pub fn refusal(&self) -> Option<&'static str> {
        let too_much = self.is_over_limit.then_some(TOO_MUCH_TO_PROTECT);
        too_much.or(self.git.refusal())
    }

    /// Removes new entries and restores changed ones, except those the command is known to make and those that cannot
    /// start a program; returns all affected paths.
    pub fn restore(
        &self,
        project: &impl AsFd,
        effects: AllowedGitDirChanges,
        is_private: bool,
    ) -> Vec<PathBuf> {
        let mut told = self.remove_new(project);
        told.extend(self.remove_links_to_references(project));
        let now = ProjectRepositories::find(project);
        for one in &now.found {
            if !self.git.found.contains(one)
                && !is_expected_repository(project, one, effects, &self.git)
            {
                remove_path(project, &one.path);
                told.push(one.path.clone());
            }
        }
        let known = ProjectRepositories {
            found: now.found.intersection(&self.git.found).cloned().collect(),
            referenced: self.git.referenced.clone(),
            rebuilt: self.git.rebuilt.clone(),
            ..ProjectRepositories::default()
        };
        let after = collect_protected(project, &known, is_private, Some(&self.protected)).all;
        for (path, item) in &after {
            match self.protected.get(path) {
                Some(before) if before == item && *item != ProtectedEntry::Unread => {}
                before => {
                    let is_rebuilt = known.rebuilt.iter().any(|one| path.starts_with(one));
                    let is_harmless = is_harmless(path, before, item, effects)
                        || is_rebuilt && is_harmless_rebuilt(&known, path, item);
                    if !is_harmless {
                        restore_entry(project, path, before);
                        add_report_path(&mut told, path);
                    }
                }
            }
        }
        for (path, item) in &self.protected {
            // A repository that is gone cannot execute anything.
            let is_left = known.found.iter().any(|one| path.starts_with(&one.path))
                || known.referenced.iter().any(|one| path.starts_with(one));
            // Generated files can be generated again.
            let is_rebuilt = known.rebuilt.iter().any(|one| path.starts_with(one));
            if is_left && !is_rebuilt && !after.contains_key(path) {
                restore_entry(project, path, Some(item));
                add_report_path(&mut told, path);
            }
        }
        told
    }

    /// Removes links that have taken the place of directories on the way to references, the outermost first: git would
    /// follow them.
    fn remove_links_to_references(&self, project: &impl AsFd) -> Vec<PathBuf> {
        let above = |path: &PathBuf| path.ancestors().skip(1).map(Path::to_owned).collect();
        let ancestors: Vec<Vec<PathBuf>> = self.git.referenced.iter().map(above).collect();
        let ancestors: BTreeSet<PathBuf> = ancestors.into_iter().flatten().collect();
        let mut removed = Vec::new();
        for path in ancestors.iter().filter(|path| !path.as_os_str().is_empty()) {
            let Ok(folder) = open_parent_dir(project, path) else {
                continue;
            };
            if kind_of(&folder, file_name(path)) == Some(FileType::Symlink) {
                remove_path(project, path);
                removed.push(path.clone());
            }
        }
        removed
    }

    /// Removes entries at paths that did not exist before.
    fn remove_new(&self, project: &impl AsFd) -> Vec<PathBuf> {
        let appeared = self.absent.iter().filter(|path| {
            let Ok(folder) = open_parent_dir(project, path) else {
                return false;
            };
            exists(&folder, file_name(path))
        });
        let appeared: Vec<_> = appeared.cloned().collect();
        for path in &appeared {
            remove_path(project, path);
        }
        appeared
    }
}

/// Adds a path to the report; of a new directory, only the directory itself is reported.
fn add_report_path(told: &mut Vec<PathBuf>, path: &Path) {
    if !told.iter().any(|known| path.starts_with(known)) {
        told.push(path.to_owned());
    }
}

/// Collects the protected entries in these repositories, and those that their configuration names.
fn collect_protected<'b>(
    project: &impl AsFd,
    git: &'b ProjectRepositories,
    is_private: bool,
    before: Option<&'b BTreeMap<PathBuf, ProtectedEntry>>,
) -> EntryCollector<'b> {
    let mut collector = EntryCollector {
        all: BTreeMap::new(),
        before,
        rebuilt: &git.rebuilt,
        kept_bytes: 0,
        read_bytes: 0,
        is_over_limit: false,
    };
    for GitRepositoryMarker { path, kind } in &git.found {
        match kind {
            GitRepositoryMarkerKind::Pointer => {
                if let Ok(folder) = open_parent_dir(project, path) {
                    collector.add_entry(&folder, path);
                }
            }
            GitRepositoryMarkerKind::Directory
                if is_private && path == Path::new(git_dirs::GIT_DIR) => {}
            GitRepositoryMarkerKind::Directory => {
                if let Some(folder) = git_dirs::open_dir_below(project, path) {
                    collector.add_repository(&folder, path, 0);
                }
            }
        }
    }
    for path in &git.referenced {
        if let Ok(folder) = open_parent_dir(project, path) {
            collector.add_tree(&folder, file_name(path), path, REFERENCED_DEPTH);
        }
    }
    collector
}

/// Collects protected entries, up to limits.
struct EntryCollector<'b> {
    all: BTreeMap<PathBuf, ProtectedEntry>,
    /// The entries before the repair, if this is the check after it.
    before: Option<&'b BTreeMap<PathBuf, ProtectedEntry>>,
    rebuilt: &'b BTreeSet<PathBuf>,
    kept_bytes: u64,
    read_bytes: u64,
    is_over_limit: bool,
}

impl EntryCollector<'_> {
    /// Collects the protected entries of a repository, and the links in the rest of it.
    fn add_repository(&mut self, folder: &OwnedFd, path: &Path, depth: usize) {
        for (name, kind) in git_dirs::list_dir(folder) {
            let at = path.join(&name);
            let inner = || git_dirs::open_dir_below(folder, Path::new(&name));
            match kind {
                FileType::Directory if name == MODULES_DIR => {
                    if let Some(inner) = inner() {
                        self.add_submodules(&inner, &at, depth + 1);
                    }
                }
                FileType::Directory if is_writable_git_name(&name) => {
                    let deepest = match name.as_bytes() {
                        b"refs" | b"logs" => MAX_DEPTH,
                        _ => 1,
                    };
                    if let Some(inner) = inner() {
                        self.add_links(&inner, &at, deepest);
                    }
                }
                FileType::Directory if DATA_DIRS.iter().any(|data| name == *data) => {
                    if let Some(inner) = inner() {
                        self.add_links(&inner, &at, MAX_DEPTH);
                    }
                }
                FileType::RegularFile if is_writable_git_name(&name) => {}
                _ => self.add_tree(folder, &name, &at, MAX_DEPTH),
            }
        }
    }

    /// Collects the repositories of submodules, which may be nested.
    fn add_submodules(&mut self, folder: &OwnedFd, path: &Path, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let names = git_dirs::list_dir(folder);
        if has_repository_layout(&names) {
            return self.add_repository(folder, path, depth);
        }
        for (name, kind) in names {
            let at = path.join(&name);
            match (kind, git_dirs::open_dir_below(folder, Path::new(&name))) {
                (FileType::Directory, Some(inner)) => self.add_submodules(&inner, &at, depth + 1),
                _ => self.add_entry(folder, &at),
            }
        }
    }

    /// Collects only the links: git writes through them.
    fn add_links(&mut self, folder: &OwnedFd, path: &Path, deepest: usize) {
        for (name, kind) in git_dirs::list_dir(folder) {
            let at = path.join(&name);
            match kind {
                FileType::Symlink => self.add_entry(folder, &at),
                FileType::Directory if deepest > 0 => {
                    if let Some(inner) = git_dirs::open_dir_below(folder, Path::new(&name)) {
                        self.add_links(&inner, &at, deepest - 1);
                    }
                }
                _ => {}
            }
        }
    }

    fn add_tree(&mut self, folder: &OwnedFd, name: &OsStr, path: &Path, deepest: usize) {
        if self.is_over_limit {
            return;
        }
        self.add_entry(folder, path);
        if self.is_removed_as_a_whole(path) {
            return;
        }
        let inner = git_dirs::open_dir_below(folder, Path::new(name)).filter(|_| deepest > 0);
        for (name, _) in inner.iter().flat_map(git_dirs::list_dir) {
            if let Some(inner) = &inner {
                self.add_tree(inner, &name, &path.join(&name), deepest - 1);
            }
        }
    }

    /// True for a new directory without any use: its contents do not matter, however many there are.
    fn is_removed_as_a_whole(&self, path: &Path) -> bool {
        let may_be_kept = path.ends_with("hooks") || self.rebuilt.contains(path);
        !may_be_kept && self.before.is_some_and(|before| !before.contains_key(path))
    }

    fn add_entry(&mut self, folder: &OwnedFd, path: &Path) {
        // References may overlap: `hooks/lib` and `hooks`.
        if self.all.contains_key(path) {
            return;
        }
        // Afterwards, there is no limit on what has to be removed.
        if self.before.is_none() && self.all.len() >= MAX_ENTRIES {
            self.is_over_limit = true;
            return;
        }
        if let Some(item) = self.read_entry(folder, path) {
            self.all.insert(path.to_owned(), item);
        }
    }

    fn read_entry(&mut self, folder: &OwnedFd, path: &Path) -> Option<ProtectedEntry> {
        let name = file_name(path);
        let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => ProtectedEntry::Directory,
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(folder, name, Vec::new()).ok()?;
                ProtectedEntry::Link(OsStr::from_bytes(target.to_bytes()).into())
            }
            FileType::RegularFile => {
                let size = stat.st_size.unsigned_abs();
                let mode = stat.st_mode & 0o777;
                self.read_file(folder, path, size, mode)
                    .unwrap_or(ProtectedEntry::Other)
            }
            _ => ProtectedEntry::Other,
        })
    }

    /// Reads a file: all of it if it can be kept, its hash otherwise.
    fn read_file(
        &mut self,
        folder: &OwnedFd,
        path: &Path,
        size: u64,
        mode: RawMode,
    ) -> io::Result<ProtectedEntry> {
        let name = file_name(path);
        self.read_bytes = self.read_bytes.saturating_add(size);
        if self.read_bytes > MAX_READ_BYTES {
            self.is_over_limit |= self.before.is_none();
            return Ok(ProtectedEntry::Unread);
        }
        let is_kept = match self.before.and_then(|before| before.get(path)) {
            Some(ProtectedEntry::File { .. }) => true,
            Some(ProtectedEntry::Large { .. }) => false,
            Some(_) | None => self.kept_bytes + size <= MAX_KEPT_BYTES,
        };
        if size <= MAX_FILE_BYTES && is_kept {
            self.kept_bytes += size;
            if let Some(bytes) = read_file(folder, name)? {
                return Ok(ProtectedEntry::File { bytes, mode });
            }
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
        let mut hash = Sha256::new();
        let mut file = file.take(size);
        let mut buffer = vec![0; HASH_BUFFER_BYTES];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                length => hash.update(&buffer[..length]),
            }
        }
        hash.update(size.to_le_bytes());
        let sha256 = hash.finalize().into();
        Ok(ProtectedEntry::Large { sha256, mode })
    }
}

/// True if a new or changed entry in a directory of generated hooks is exactly what husky generates there.
fn is_harmless_rebuilt(git: &ProjectRepositories, path: &Path, item: &ProtectedEntry) -> bool {
    match item {
        ProtectedEntry::Directory => git.rebuilt.contains(path),
        ProtectedEntry::File { bytes, .. } => {
            let known = &SandboxPathLists::built_in().git.generated_hooks;
            let hash = Sha256::digest(bytes);
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            file_name(path) == ".gitignore" || known.contains(&hash)
        }
        ProtectedEntry::Link(_)
        | ProtectedEntry::Large { .. }
        | ProtectedEntry::Other
        | ProtectedEntry::Unread => false,
    }
}

/// Reads a file that is not too large.
pub(super) fn read_file(folder: &impl AsFd, name: &OsStr) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_FILE_BYTES).then_some(bytes))
}

/// Reads a file below a directory up to a size; no link is followed.
pub(super) fn read_file_below(
    root: &impl AsFd,
    path: &Path,
    max_bytes: u64,
) -> io::Result<Vec<u8>> {
    let folder = open_parent_dir(root, path)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, file_name(path), flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    File::from(file).take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True if a change to a protected file is expected from the command and cannot start a program.
fn is_harmless(
    path: &Path,
    before: Option<&ProtectedEntry>,
    now: &ProtectedEntry,
    effects: AllowedGitDirChanges,
) -> bool {
    let old = match before {
        None => &[][..],
        Some(ProtectedEntry::File { bytes, .. }) => bytes,
        Some(_) => return false,
    };
    let ProtectedEntry::File { bytes, .. } = now else {
        return *now == ProtectedEntry::Directory
            && before.is_none()
            && is_allowed_new_dir(path, effects);
    };
    let is_hook = path
        .parent()
        .is_some_and(|folder| folder.ends_with("hooks"));
    if path.ends_with("config") && (effects.submodules || effects.lfs) {
        settings_are_harmless(old, bytes, effects)
    } else if is_hook {
        before.is_none() && hook_is_harmless(file_name(path), bytes, effects)
    } else {
        false
    }
}

/// True if a new directory is allowed; its contents are checked separately.
fn is_allowed_new_dir(path: &Path, effects: AllowedGitDirChanges) -> bool {
    effects.lfs && path.ends_with("hooks")
}

/// True if a new repository is expected from the command and nothing in it starts a program.
fn is_expected_repository(
    project: &impl AsFd,
    one: &GitRepositoryMarker,
    effects: AllowedGitDirChanges,
    known: &ProjectRepositories,
) -> bool {
    let is_allowed = if one.path == Path::new(git_dirs::GIT_DIR) {
        effects.repository
    } else {
        effects.nested
    };
    if !is_allowed {
        return false;
    }
    match one.kind {
        GitRepositoryMarkerKind::Directory => git_dirs::open_dir_below(project, &one.path)
            .is_some_and(|folder| repository_is_harmless(&folder, effects)),
        GitRepositoryMarkerKind::Pointer => open_parent_dir(project, &one.path)
            .ok()
            .and_then(|folder| read_file(&folder, file_name(&one.path)).ok().flatten())
            .is_some_and(|bytes| points_to_submodule(&one.path, &bytes, known)),
    }
}

/// True if nothing in a new repository can start a program: plain settings, only sample hooks, no links, and no
/// pointers elsewhere.
pub(super) fn repository_is_harmless(folder: &OwnedFd, effects: AllowedGitDirChanges) -> bool {
    let effects = AllowedGitDirChanges {
        submodules: true,
        ..effects
    };
    git_dirs::list_dir(folder).into_iter().all(|(name, kind)| {
        let inner = || git_dirs::open_dir_below(folder, Path::new(&name));
        match (name.to_str().unwrap_or_default(), kind) {
            (_, FileType::Symlink) => false,
            ("config", FileType::RegularFile) => read_file(folder, &name)
                .ok()
                .flatten()
                .is_some_and(|bytes| settings_are_harmless(b"", &bytes, effects)),
            ("description", FileType::RegularFile) => true,
            ("hooks", FileType::Directory) => inner().is_some_and(|hooks| {
                git_dirs::list_dir(&hooks).into_iter().all(|(name, kind)| {
                    kind == FileType::RegularFile
                        && read_file(&hooks, &name)
                            .ok()
                            .flatten()
                            .is_some_and(|text| hook_is_harmless(&name, &text, effects))
                })
            }),
            ("info", FileType::Directory) => inner().is_some_and(|info| {
                let plain = |(name, kind): (std::ffi::OsString, FileType)| {
                    name == "exclude" && kind == FileType::RegularFile
                };
                git_dirs::list_dir(&info).into_iter().all(plain)
            }),
            ("branches", FileType::Directory) => {
                inner().is_some_and(|inner| git_dirs::list_dir(&inner).is_empty())
            }
            (MODULES_DIR, FileType::Directory) => {
                inner().is_some_and(|inner| modules_are_harmless(&inner, effects, 0))
            }
            (_, FileType::Directory) => {
                is_writable_git_name(&name)
                    && inner().is_some_and(|inner| has_no_links(&inner, MAX_DEPTH))
            }
            (_, FileType::RegularFile) => is_writable_git_name(&name),
            _ => false,
        }
    })
}

/// Checks a directory that is a repository or contains several, like [`repository_is_harmless`].
#[cfg(target_os = "linux")]
pub(super) fn repositories_are_harmless(folder: &OwnedFd, effects: AllowedGitDirChanges) -> bool {
    modules_are_harmless(folder, effects, 0)
}

fn modules_are_harmless(folder: &OwnedFd, effects: AllowedGitDirChanges, depth: usize) -> bool {
    let names = git_dirs::list_dir(folder);
    if has_repository_layout(&names) {
        return repository_is_harmless(folder, effects);
    }
    depth < MAX_DEPTH
        && names.into_iter().all(|(name, kind)| {
            kind == FileType::Directory
                && git_dirs::open_dir_below(folder, Path::new(&name))
                    .is_some_and(|inner| modules_are_harmless(&inner, effects, depth + 1))
        })
}

fn has_no_links(folder: &OwnedFd, deepest: usize) -> bool {
    git_dirs::list_dir(folder)
        .into_iter()
        .all(|(name, kind)| match kind {
            FileType::RegularFile => true,
            FileType::Directory => {
                deepest > 0
                    && git_dirs::open_dir_below(folder, Path::new(&name))
                        .is_some_and(|inner| has_no_links(&inner, deepest - 1))
            }
            _ => false,
        })
}

/// True if a `.git` file of a submodule points to its directory in the project's repository.
fn points_to_submodule(path: &Path, bytes: &[u8], known: &ProjectRepositories) -> bool {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let Some(target) = text.trim_end().strip_prefix("gitdir: ") else {
        return false;
    };
    let mut parts: Vec<&OsStr> = path.parent().into_iter().flatten().collect();
    for part in Path::new(target).components() {
        match part {
            std::path::Component::Normal(part) => parts.push(part),
            std::path::Component::ParentDir if !parts.is_empty() => drop(parts.pop()),
            std::path::Component::CurDir => {}
            _ => return false,
        }
    }
    let target: PathBuf = parts.into_iter().collect();
    let is_modules = |one: &GitRepositoryMarker| target.starts_with(one.path.join(MODULES_DIR));
    !text.trim_end().contains('\n')
        && (known.found.iter().any(is_modules) || target.starts_with(".git/modules"))
}

fn remove_path(project: &impl AsFd, path: &Path) {
    if let Ok(folder) = open_parent_dir(project, path) {
        // It is reported in any case; trust in a configuration is by its content.
        let _ = scratch_dir::remove_below(&folder, file_name(path));
    }
}

/// Restores an entry by handle; removes it if it did not exist before.
fn restore_entry(project: &impl AsFd, path: &Path, before: Option<&ProtectedEntry>) {
    let folder = match before {
        Some(_) => open_or_make_parent_dir(project, path),
        None => open_parent_dir(project, path),
    };
    let Ok(folder) = folder else {
        return;
    };
    let name = file_name(path);
    // It is reported in any case.
    let _ = match before {
        None
        | Some(ProtectedEntry::Large { .. } | ProtectedEntry::Other | ProtectedEntry::Unread) => {
            scratch_dir::remove_below(&folder, name)
        }
        Some(ProtectedEntry::Directory) => {
            if is_dir(&folder, name) {
                Ok(())
            } else {
                scratch_dir::remove_below(&folder, name).and_then(|()| {
                    Ok(rustix::fs::mkdirat(
                        &folder,
                        name,
                        Mode::from_raw_mode(0o755),
                    )?)
                })
            }
        }
        Some(ProtectedEntry::Link(target)) => scratch_dir::remove_below(&folder, name)
            .and_then(|()| Ok(rustix::fs::symlinkat(target, &folder, name)?)),
        Some(ProtectedEntry::File { bytes, mode }) => scratch_dir::remove_below(&folder, name)
            .and_then(|()| write_new(&folder, name, bytes, *mode)),
    };
}

/// Writes a file that must not exist yet.
fn write_new(folder: &OwnedFd, name: &OsStr, bytes: &[u8], mode: RawMode) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode);
    let mut file = File::from(rustix::fs::openat(folder, name, flags, mode)?);
    file.write_all(bytes)?;
    Ok(rustix::fs::fchmod(&file, mode)?)
}

fn is_dir(folder: &OwnedFd, name: &OsStr) -> bool {
    kind_of(folder, name) == Some(FileType::Directory)
}

fn kind_of(folder: &OwnedFd, name: &OsStr) -> Option<FileType> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Opens the parent directory of an entry; symlinks are refused.
fn open_parent_dir(project: &impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let folder = path.parent().unwrap_or(Path::new(""));
    git_dirs::open_dir_below(project, folder).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Opens the parent directory of an entry to restore. Whatever else has taken the place of a directory on the way is
/// removed, and a missing one is created.
fn open_or_make_parent_dir(project: &impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = rustix::fs::openat(project, ".", flags, Mode::empty())?;
    for name in path.parent().into_iter().flatten() {
        if !is_dir(&folder, name) {
            if exists(&folder, name) {
                scratch_dir::remove_below(&folder, name)?;
            }
            rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o755))?;
        }
        folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
    }
    Ok(folder)
}

fn file_name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or(path.as_os_str())
}

fn exists(folder: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
mod tests {
    use super::*;
    use crate::sandbox::protected_paths;
    use std::fs;

    const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";

    fn handle(path: &Path) -> OwnedFd {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    fn repository_at(path: &Path) {
        for name in ["objects", "refs", "hooks", "info"] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        fs::write(path.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(path.join("config"), CONFIG).unwrap();
        fs::write(path.join("hooks/pre-commit"), "#!/bin/sh\nmine\n").unwrap();
    }

    fn look(root: &Path) -> ProtectedFilesRecord {
        let project = handle(root);
        let git = ProjectRepositories::find(&project);
        ProtectedFilesRecord::record(&project, protected_paths().iter(), git, false)
    }

    fn told(
        before: &ProtectedFilesRecord,
        root: &Path,
        effects: AllowedGitDirChanges,
    ) -> Vec<String> {
        let told = before.restore(&handle(root), effects, false);
        told.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn existing_files_are_restored_and_injected_ones_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        repository_at(&root.join(".git"));
        fs::write(root.join("unstuck.toml"), "a").unwrap();
        let before = look(root);
        fs::write(root.join("unstuck.json"), "{}").unwrap();
        fs::write(root.join("package.json"), "{}").unwrap();
        let git = root.join(".git");
        fs::write(git.join("commondir"), "../evil").unwrap();
        fs::write(git.join("hooks/post-checkout"), "id").unwrap();
        fs::write(git.join("hooks/pre-commit"), "id").unwrap();
        fs::write(git.join("config"), "[core]\n\tfsmonitor = id\n").unwrap();
        fs::write(git.join("info/attributes"), "* filter=x").unwrap();
        fs::create_dir_all(git.join("worktrees/x")).unwrap();
        fs::write(git.join("worktrees/x/gitdir"), "x").unwrap();
        fs::write(git.join("index"), "index").unwrap();
        fs::write(git.join("refs/x"), "ref").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", git.join("refs/link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", git.join("COMMIT_EDITMSG")).unwrap();
        let told = told(&before, root, AllowedGitDirChanges::default());
        let expected = [
            "unstuck.json",
            ".git/COMMIT_EDITMSG",
            ".git/commondir",
            ".git/config",
            ".git/hooks/post-checkout",
            ".git/hooks/pre-commit",
            ".git/info/attributes",
            ".git/refs/link",
            ".git/worktrees",
        ];
        assert_eq!(told, expected);
        let read = |name: &str| fs::read_to_string(git.join(name)).ok();
        assert_eq!(read("config").as_deref(), Some(CONFIG));
        assert_eq!(
            read("hooks/pre-commit").as_deref(),
            Some("#!/bin/sh\nmine\n")
        );
        assert_eq!(read("index").as_deref(), Some("index"));
        assert_eq!(read("refs/x").as_deref(), Some("ref"));
        for gone in [
            "commondir",
            "hooks/post-checkout",
            "info/attributes",
            "worktrees",
        ] {
            assert!(!git.join(gone).exists(), "{gone}");
        }
        assert!(root.join("package.json").exists() && !root.join("unstuck.json").exists());
        assert_eq!(
            before
                .restore(&handle(root), AllowedGitDirChanges::default(), false)
                .len(),
            0
        );
    }

    #[test]
    fn new_repositories_are_removed_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        let before = look(root);
        repository_at(&root.join(".git"));
        repository_at(&root.join("a/.git"));
        repository_at(&root.join("a/b/bare"));
        fs::write(root.join("a/b/.git"), "gitdir: ../../evil").unwrap();
        let told = told(&before, root, AllowedGitDirChanges::default());
        assert_eq!(told, [".git", "a/.git", "a/b/.git", "a/b/bare"]);
        assert!(!root.join(".git").exists() && !root.join("a/b/bare").exists());
    }

    #[test]
    fn an_expected_repository_is_kept_if_it_starts_no_program() {
        let effects = AllowedGitDirChanges {
            repository: true,
            nested: true,
            ..AllowedGitDirChanges::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("lib")).unwrap();
        let before = look(root);
        repository_at(&root.join(".git"));
        fs::rename(
            root.join(".git/hooks/pre-commit"),
            root.join(".git/hooks/pre-commit.sample"),
        )
        .unwrap();
        fs::write(root.join("lib/.git"), "gitdir: ../.git/modules/lib\n").unwrap();
        assert_eq!(told(&before, root, effects), Vec::<String>::new());
        fs::write(root.join(".git/hooks/pre-commit"), "id").unwrap();
        fs::write(root.join("lib/.git"), "gitdir: ../../evil\n").unwrap();
        assert_eq!(told(&before, root, effects), [".git", "lib/.git"]);
    }

    #[test]
    fn symlink_targets_are_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [root, other] = ["root", "other"].map(|name| folder.path().join(name));
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("config"), "kept").unwrap();
        let before = look(&root);
        fs::remove_dir(root.join(".git")).unwrap();
        std::os::unix::fs::symlink(&other, root.join(".git")).unwrap();
        told(&before, &root, AllowedGitDirChanges::default());
        assert!(other.join("config").exists());
        assert!(
            root.join(".git").symlink_metadata().is_err(),
            "the link is gone"
        );
    }

    /// Records a project whose configuration names `tools/hooks`, as where no mounts are available.
    fn look_with_hooks(root: &Path) -> ProtectedFilesRecord {
        let project = handle(root);
        fs::write(
            root.join(".git/config"),
            format!("{CONFIG}\thooksPath = tools/hooks\n"),
        )
        .unwrap();
        let git = ProjectRepositories::find_with_references(&project, root, None);
        ProtectedFilesRecord::record(&project, protected_paths().iter(), git, false)
    }

    #[test]
    fn a_link_above_a_reference_is_replaced_by_what_was_there() {
        for existed in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let root = &folder.path().canonicalize().unwrap();
            repository_at(&root.join(".git"));
            if existed {
                fs::create_dir_all(root.join("tools/hooks")).unwrap();
                fs::write(root.join("tools/hooks/pre-commit"), "mine").unwrap();
            }
            let before = look_with_hooks(root);
            if existed {
                fs::rename(root.join("tools"), root.join("moved")).unwrap();
            }
            fs::create_dir_all(root.join("evil/hooks")).unwrap();
            fs::write(root.join("evil/hooks/pre-commit"), "evil").unwrap();
            std::os::unix::fs::symlink("evil", root.join("tools")).unwrap();
            let told = told(&before, root, AllowedGitDirChanges::default());
            assert_eq!(told, ["tools"]);
            let now = fs::read_to_string(root.join("tools/hooks/pre-commit")).ok();
            assert_eq!(now.as_deref(), existed.then_some("mine"));
            assert!(
                root.join("evil/hooks/pre-commit").exists(),
                "not through the link"
            );
        }
    }

    #[test]
    fn a_changed_large_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = &folder.path().canonicalize().unwrap();
        repository_at(&root.join(".git"));
        fs::create_dir_all(root.join("tools/hooks")).unwrap();
        let hook = root.join("tools/hooks/pre-commit");
        let mut text = vec![b'a'; 3 << 20];
        fs::write(&hook, &text).unwrap();
        let before = look_with_hooks(root);
        fs::write(&hook, &text).unwrap();
        assert_eq!(
            told(&before, root, AllowedGitDirChanges::default()),
            ["x"; 0]
        );
        *text.last_mut().unwrap() = b'b';
        fs::write(&hook, &text).unwrap();
        let now = told(&before, root, AllowedGitDirChanges::default());
        assert_eq!(now, ["tools/hooks/pre-commit"]);
        assert!(!hook.exists());
    }

    #[test]
    fn too_many_bytes_to_read_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = &folder.path().canonicalize().unwrap();
        repository_at(&root.join(".git"));
        fs::create_dir_all(root.join("tools/hooks")).unwrap();
        assert_eq!(look_with_hooks(root).refusal(), None);
        fs::create_dir_all(root.join(".git/annex/objects")).unwrap();
        let sparse = fs::File::create(root.join(".git/annex/objects/x")).unwrap();
        sparse.set_len(MAX_READ_BYTES + 1).unwrap();
        assert_eq!(look_with_hooks(root).refusal(), None, "data");
        let sparse = fs::File::create(root.join("tools/hooks/lib")).unwrap();
        sparse.set_len(MAX_READ_BYTES + 1).unwrap();
        assert!(look_with_hooks(root).refusal().is_some());
    }
}

//! Merges the allowed parts of a command's private copies into the real directories.
//!
//! Git's directory and tool directories that are executed later are private copies while a command runs, so that
//! nothing in them takes effect unchecked. Afterwards the outer process walks the writes, below handles and through no
//! link: of git's directory it keeps what git itself keeps changing, of tools only new entries.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, fchmod, futimens,
    mkdirat, openat, renameat, renameat_with, symlinkat,
};
use rustix::io::Errno;

use crate::preview::nofollow_access::{self, list_names, stat_entry};
use crate::preview::overlay_reader::{UpperDirRelation, UpperLayerEntry, read_bond, read_mark};
use crate::preview::remove_tree::remove_tree;
use crate::sandbox::config_injection::{read_file, repository_is_harmless};
use crate::sandbox::git_dirs::{
    self, AllowedGitDirChanges, MODULES_DIR, has_repository_layout, hook_is_harmless,
    is_writable_git_name, settings_are_harmless,
};
use crate::sandbox::path_lists::OutsideProjectEntryRule;

/// Maximum depth of copied directories.
const MAX_DEPTH: usize = 200;
/// Maximum attempts to find a free name.
const MAX_NAME_ATTEMPTS: u32 = 100;

/// The result of merging private copies.
#[derive(Debug, Default)]
pub(in crate::sandbox) struct MergeReport {
    /// Files that would have been obeyed later, and were left out.
    pub(in crate::sandbox) removed_injections: Vec<PathBuf>,
    /// Files that somebody else changed meanwhile, and that stay so.
    pub(in crate::sandbox) conflicting_changes: Vec<PathBuf>,
    /// New tool entries that were kept.
    pub(in crate::sandbox) added: Vec<PathBuf>,
}

/// A private copy of git's directory.
pub(in crate::sandbox) struct PrivateGitDir<'a> {
    /// The command's writes.
    pub(in crate::sandbox) upper: &'a OwnedFd,
    /// The real directory.
    pub(in crate::sandbox) real: &'a OwnedFd,
    /// Start time of the command: later changes in the real directory were made by others.
    pub(in crate::sandbox) since: Timespec,
    /// Effects expected from the command.
    pub(in crate::sandbox) effects: AllowedGitDirChanges,
    /// If set, there was no repository before.
    pub(in crate::sandbox) is_new: bool,
}

impl PrivateGitDir<'_> {
    /// Merges what git itself keeps changing, and the command's expected effects if they can start no program.
    pub(in crate::sandbox) fn merge(&self, at: &Path, merged: &mut MergeReport) -> io::Result<()> {
        if self.is_new {
            let written = list_names(self.upper)?;
            if written.is_empty() {
                return Ok(());
            }
            if !(self.effects.repository && repository_is_harmless(self.upper, self.effects)) {
                merged.removed_injections.push(at.to_owned());
                return Ok(());
            }
            for name in written {
                copy_tree(self.upper, self.real, &name, MAX_DEPTH)?;
            }
            return Ok(());
        }
        self.merge_repository(self.upper, self.real, at, merged)
    }

    fn merge_repository(
        &self,
        upper: &OwnedFd,
        real: &OwnedFd,
        at: &Path,
        merged: &mut MergeReport,
    ) -> io::Result<()> {
        for name in list_names(upper)? {
            let text = OsStr::from_bytes(&name);
            let path = at.join(text);
            if is_writable_git_name(text) {
                self.merge_entry(upper, real, &name, &path, merged)?;
            } else if text == MODULES_DIR && is_dir(upper, &name) && is_dir(real, &name) {
                let [upper, real] = [upper, real].map(|one| nofollow_access::open_dir(one, &name));
                self.merge_submodules(&upper?, &real?, &path, merged)?;
            } else if text == MODULES_DIR && self.is_new_module(upper, real, &name) {
                copy_tree(upper, real, &name, MAX_DEPTH)?;
            } else {
                self.merge_protected(upper, real, &name, &path, merged)?;
            }
        }
        Ok(())
    }

    /// Merges the repositories of submodules: known ones like the repository itself, new ones as a whole.
    fn merge_submodules(
        &self,
        upper: &OwnedFd,
        real: &OwnedFd,
        at: &Path,
        merged: &mut MergeReport,
    ) -> io::Result<()> {
        for name in list_names(upper)? {
            let path = at.join(OsStr::from_bytes(&name));
            if self.is_new_module(upper, real, &name) {
                copy_tree(upper, real, &name, MAX_DEPTH)?;
            } else if is_dir(upper, &name) && is_dir(real, &name) {
                let [upper, real] = [upper, real].map(|one| nofollow_access::open_dir(one, &name));
                let (upper, real) = (upper?, real?);
                if has_repository_layout(&git_dirs::list_dir(&real)) {
                    self.merge_repository(&upper, &real, &path, merged)?
                } else {
                    self.merge_submodules(&upper, &real, &path, merged)?
                }
            } else {
                merged.removed_injections.push(path);
            }
        }
        Ok(())
    }

    /// True for the repository of a new submodule, or a directory of them, in which nothing starts a program.
    fn is_new_module(&self, upper: &OwnedFd, real: &OwnedFd, name: &[u8]) -> bool {
        let is_absent = matches!(stat_entry(real, name), Ok(None));
        self.effects.submodules
            && is_absent
            && nofollow_access::open_dir(upper, name).is_ok_and(|folder| {
                crate::sandbox::config_injection::repositories_are_harmless(&folder, self.effects)
            })
    }

    /// Merges a protected entry: only if the command is known to change it and it can start no program.
    fn merge_protected(
        &self,
        upper: &OwnedFd,
        real: &OwnedFd,
        name: &[u8],
        path: &Path,
        merged: &mut MergeReport,
    ) -> io::Result<()> {
        let data = match read_mark(upper, name)? {
            None => return Ok(()),
            Some(UpperLayerEntry::Whiteout) => {
                merged.removed_injections.push(path.to_owned());
                return Ok(());
            }
            Some(UpperLayerEntry::Present(data)) => data,
        };
        match file_type(&data) {
            FileType::Directory => {
                let inner = nofollow_access::open_dir(upper, name)?;
                let written = list_names(&inner)?;
                let below = match nofollow_access::open_dir(real, name) {
                    Ok(below) => below,
                    Err(_) if written.is_empty() => return Ok(()),
                    Err(_) if path.ends_with("hooks") && self.effects.lfs => {
                        mkdirat(real, name, Mode::from_raw_mode(0o755))?;
                        nofollow_access::open_dir(real, name)?
                    }
                    Err(_) => {
                        merged.removed_injections.push(path.to_owned());
                        return Ok(());
                    }
                };
                for name in written {
                    let path = path.join(OsStr::from_bytes(&name));
                    self.merge_protected(&inner, &below, &name, &path, merged)?;
                }
                Ok(())
            }
            FileType::RegularFile if has_same_contents(upper, real, name) => Ok(()),
            FileType::RegularFile if self.is_harmless(upper, real, name, path) => {
                replace_file(upper, real, name, &data)
            }
            _ => {
                merged.removed_injections.push(path.to_owned());
                Ok(())
            }
        }
    }

    fn is_harmless(&self, upper: &OwnedFd, real: &OwnedFd, name: &[u8], path: &Path) -> bool {
        let text = OsStr::from_bytes(name);
        let read = |folder: &OwnedFd| read_file(folder, text).ok().flatten();
        let Some(now) = read(upper) else {
            return false;
        };
        let before = match stat_entry(real, name) {
            Ok(None) => Some(Vec::new()),
            _ => read(real),
        };
        let is_hook = path
            .parent()
            .is_some_and(|folder| folder.ends_with("hooks"));
        match before {
            None => false,
            Some(before) if text == "config" => {
                (self.effects.submodules || self.effects.lfs)
                    && settings_are_harmless(&before, &now, self.effects)
            }
            Some(before) => {
                is_hook && before.is_empty() && hook_is_harmless(text, &now, self.effects)
            }
        }
    }

    /// Updates an entry that git keeps changing, unless somebody else has changed it meanwhile.
    fn merge_entry(
        &self,
        upper: &OwnedFd,
        real: &OwnedFd,
        name: &[u8],
        path: &Path,
        merged: &mut MergeReport,
    ) -> io::Result<()> {
        let before = stat_entry(real, name)?;
        let is_overtaken = before.as_ref().is_some_and(|data| {
            file_type(data) != FileType::Directory && is_newer(data, self.since)
        });
        match read_mark(upper, name)? {
            None => Ok(()),
            Some(_) if is_overtaken => {
                merged.conflicting_changes.push(path.to_owned());
                Ok(())
            }
            Some(UpperLayerEntry::Whiteout) => Ok(remove_tree(real, name)?),
            Some(UpperLayerEntry::Present(data)) => match file_type(&data) {
                FileType::RegularFile if has_same_contents(upper, real, name) => Ok(()),
                FileType::RegularFile => replace_file(upper, real, name, &data),
                FileType::Directory => {
                    let inner = nofollow_access::open_dir(upper, name)?;
                    if before.as_ref().map(file_type) != Some(FileType::Directory) {
                        remove_tree(real, name)?;
                        mkdirat(real, name, Mode::from_raw_mode(0o755))?;
                    }
                    let below = nofollow_access::open_dir(real, name)?;
                    let written = list_names(&inner)?;
                    if read_bond(&inner)? == UpperDirRelation::Opaque {
                        for old in list_names(&below)? {
                            if !written.contains(&old) {
                                remove_tree(&below, &old)?;
                            }
                        }
                    }
                    for name in written {
                        let path = path.join(OsStr::from_bytes(&name));
                        self.merge_entry(&inner, &below, &name, &path, merged)?;
                    }
                    Ok(())
                }
                // Git writes through links.
                _ => {
                    merged.removed_injections.push(path.to_owned());
                    Ok(())
                }
            },
        }
    }
}

/// Keeps new entries of a tool directory; existing ones stay as they are.
pub(in crate::sandbox) fn merge_tool_dir(
    upper: &OwnedFd,
    real: &OwnedFd,
    at: &Path,
    rules: &BTreeMap<PathBuf, OutsideProjectEntryRule>,
    merged: &mut MergeReport,
) -> io::Result<()> {
    let Some(rule) = rules.get(at) else {
        return Ok(());
    };
    let mut adder = ToolDirMerge {
        rule,
        rules,
        merged,
    };
    adder.merge_dir(upper, real, at, 1)
}

struct ToolDirMerge<'a> {
    rule: &'a OutsideProjectEntryRule,
    rules: &'a BTreeMap<PathBuf, OutsideProjectEntryRule>,
    merged: &'a mut MergeReport,
}

impl ToolDirMerge<'_> {
    fn merge_dir(
        &mut self,
        upper: &OwnedFd,
        real: &OwnedFd,
        at: &Path,
        depth: usize,
    ) -> io::Result<()> {
        for name in list_names(upper)? {
            let text = OsStr::from_bytes(&name);
            let path = at.join(text);
            // Some subdirectories have their own rule.
            if self.rules.contains_key(&path) {
                continue;
            }
            let Some(UpperLayerEntry::Present(data)) = read_mark(upper, &name)? else {
                continue;
            };
            match stat_entry(real, &name)? {
                None => {
                    copy_tree(upper, real, &name, MAX_DEPTH)?;
                    self.merged.added.push(path);
                }
                Some(old)
                    if [&data, &old].map(file_type) == [FileType::Directory; 2]
                        && self.rule.allows_below(text, depth) =>
                {
                    let [upper, real] =
                        [upper, real].map(|one| nofollow_access::open_dir(one, &name));
                    self.merge_dir(&upper?, &real?, &path, depth + 1)?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

fn file_type(data: &Stat) -> FileType {
    FileType::from_raw_mode(data.st_mode)
}

fn is_dir(parent: &OwnedFd, name: &[u8]) -> bool {
    stat_entry(parent, name)
        .is_ok_and(|data| data.is_some_and(|data| file_type(&data) == FileType::Directory))
}

/// True if an entry changed after a moment; the kernel's clock for this may be a few milliseconds late.
fn is_newer(data: &Stat, since: Timespec) -> bool {
    let changed = (data.st_ctime, data.st_ctime_nsec as i64);
    changed > (since.tv_sec, since.tv_nsec)
}

/// True if two files have the same contents.
fn has_same_contents(one: &OwnedFd, other: &OwnedFd, name: &[u8]) -> bool {
    let read = |folder: &OwnedFd| {
        let data = stat_entry(folder, name).ok().flatten()?;
        let bytes = read_file(folder, OsStr::from_bytes(name)).ok().flatten()?;
        (file_type(&data) == FileType::RegularFile).then_some(bytes)
    };
    let one = read(one);
    one.is_some() && one == read(other)
}

/// Replaces a file with a copy of another one atomically.
fn replace_file(from: &OwnedFd, to: &OwnedFd, name: &[u8], data: &Stat) -> io::Result<()> {
    let temporary = copy_file(from, name, to, data)?;
    let done = renameat(to, temporary.as_str(), to, name);
    if done.is_err() {
        // A leftover cannot be handled any further.
        let _ = rustix::fs::unlinkat(to, temporary.as_str(), AtFlags::empty());
    }
    Ok(done?)
}

/// Copies a file under a free name.
fn copy_file(from: &OwnedFd, name: &[u8], to: &OwnedFd, data: &Stat) -> io::Result<String> {
    let mut source = nofollow_access::open_file(from, name)?;
    let (temporary, file) = create_new_file(to)?;
    let mut file = File::from(file);
    let copied = io::copy(&mut source, &mut file).and_then(|_| {
        fchmod(&file, safe_mode(data))?;
        let times = Timestamps {
            last_access: timespec(data.st_atime, data.st_atime_nsec as i64),
            last_modification: timespec(data.st_mtime, data.st_mtime_nsec as i64),
        };
        Ok(futimens(&file, &times)?)
    });
    match copied {
        Ok(()) => Ok(temporary),
        Err(error) => {
            // A leftover cannot be handled any further.
            let _ = rustix::fs::unlinkat(to, temporary.as_str(), AtFlags::empty());
            Err(error)
        }
    }
}

fn timespec(tv_sec: i64, nanoseconds: i64) -> Timespec {
    Timespec {
        tv_sec,
        tv_nsec: nanoseconds as _,
    }
}

/// Returns a mode without the set-user-ID and set-group-ID bits.
fn safe_mode(data: &Stat) -> Mode {
    Mode::from_raw_mode(data.st_mode & 0o777)
}

fn create_new_file(folder: &OwnedFd) -> io::Result<(String, OwnedFd)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..MAX_NAME_ATTEMPTS {
        let name = free_name();
        match openat(folder, name.as_str(), flags, Mode::RUSR | Mode::WUSR) {
            Err(Errno::EXIST) => {}
            other => return Ok((name, other?)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns an unused name.
fn free_name() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = kernel_time();
    format!(
        ".unstuck-{}-{:x}{:x}-{number}",
        std::process::id(),
        now.tv_sec,
        now.tv_nsec
    )
}

/// Copies an entry, possibly a whole tree, to a free name atomically.
fn copy_tree(from: &OwnedFd, to: &OwnedFd, name: &[u8], deepest: usize) -> io::Result<()> {
    let Some(UpperLayerEntry::Present(data)) = read_mark(from, name)? else {
        return Ok(());
    };
    let temporary = match file_type(&data) {
        FileType::RegularFile => copy_file(from, name, to, &data)?,
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(from, name, Vec::new())?;
            let temporary = free_name();
            symlinkat(&target, to, temporary.as_str())?;
            temporary
        }
        FileType::Directory if deepest > 0 => {
            let temporary = free_name();
            mkdirat(to, temporary.as_str(), Mode::RWXU)?;
            let inner = nofollow_access::open_dir(from, name)?;
            let made = nofollow_access::open_dir(to, temporary.as_bytes())?;
            for name in list_names(&inner)? {
                copy_tree(&inner, &made, &name, deepest - 1)?;
            }
            fchmod(&made, safe_mode(&data))?;
            temporary
        }
        // Pipes, sockets and devices are not kept.
        _ => return Ok(()),
    };
    let done = renameat_with(to, temporary.as_str(), to, name, RenameFlags::NOREPLACE);
    if done.is_err() {
        // A leftover cannot be handled any further.
        let _ = remove_tree(to, temporary.as_bytes());
    }
    match done {
        // Another process created the name first; its entry stays.
        Err(Errno::EXIST) => Ok(()),
        other => Ok(other?),
    }
}

/// Returns the kernel's current time; later changes were made by others.
pub(in crate::sandbox) fn kernel_time() -> Timespec {
    #[expect(clippy::disallowed_methods, reason = "file timestamps use this clock")]
    let now = std::time::SystemTime::now();
    let now = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    timespec(seconds, i64::from(now.subsec_nanos()))
}

/// Opens a directory by a path that a user or the system chose; its last component must not be a link.
pub(in crate::sandbox) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    Ok(nofollow_access::open_dir(
        rustix::fs::CWD,
        path.as_os_str().as_bytes(),
    )?)
}

/// Opens a directory below another one component by component.
pub(in crate::sandbox) fn open_dir_below(root: &impl AsFd, path: &Path) -> Option<OwnedFd> {
    git_dirs::open_dir_below(root, path)
}

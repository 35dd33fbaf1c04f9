//! What appears or changes where unstuck or git would obey it, and is put back as it was.
//!
//! What is there when a repair begins is read-only for it where mounts can be used, and git's folder is a private copy.
//! What is not there cannot be protected without making it, so it is looked for afterwards and removed. Where there are
//! no mounts, what was there is put back as well.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};

use super::git::{
    self, GitEffects, GitFolder, GitFolders, GitKind, MODULES, hook_is_harmless, is_repository,
    is_writable, settings_are_harmless,
};
use super::scratch;

/// Larger files are not kept to be put back; that they changed is told.
const LARGEST: u64 = 1 << 20;
/// Deeper folders inside of a repository are not looked at.
const DEEPEST: usize = 12;

/// What of a project decides about later commands, as it was when the repair began.
#[derive(Debug)]
pub struct Before {
    /// Paths that nothing was at.
    absent: Vec<PathBuf>,
    /// Where repositories were.
    git: GitFolders,
    /// What in repositories no repair may change, by path.
    protected: BTreeMap<PathBuf, Item>,
}

/// Something that no repair may change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Folder,
    File {
        bytes: Vec<u8>,
        mode: RawMode,
    },
    Link(PathBuf),
    /// Too large, or nothing that could be written again.
    Other,
}

impl Before {
    /// Looks at a project. Where git's folder of the project is a private copy for the command, nothing of that has to
    /// be remembered.
    pub fn look<'k>(
        project: &impl AsFd,
        kept: impl Iterator<Item = &'k PathBuf>,
        git: GitFolders,
        is_private: bool,
    ) -> Self {
        let absent = kept.filter(|path| {
            folder_of(project, path).is_ok_and(|folder| !exists(&folder, name_of(path)))
        });
        let protected = protected(project, &git, is_private);
        Self {
            absent: absent.cloned().collect(),
            git,
            protected,
        }
    }

    /// Removes what appeared since and puts back what changed, but for what the command is known to make and what
    /// cannot start a program; tells all of it.
    pub fn restore(
        &self,
        project: &impl AsFd,
        effects: GitEffects,
        is_private: bool,
    ) -> Vec<PathBuf> {
        let mut told = self.clear(project);
        let now = GitFolders::look(project);
        for one in &now.found {
            if !self.git.found.contains(one) && !is_declared(project, one, effects, &self.git) {
                remove(project, &one.path);
                told.push(one.path.clone());
            }
        }
        let known = GitFolders {
            found: now.found.intersection(&self.git.found).cloned().collect(),
            is_cut: false,
        };
        let after = protected(project, &known, is_private);
        for (path, item) in &after {
            match self.protected.get(path) {
                Some(before) if before == item => {}
                before => {
                    if !is_harmless(path, before, item, effects) {
                        put_back(project, path, before);
                        tell(&mut told, path);
                    }
                }
            }
        }
        for (path, item) in &self.protected {
            // A repository that is gone as a whole is nobody's to execute.
            let is_left = known.found.iter().any(|one| path.starts_with(&one.path));
            if is_left && !after.contains_key(path) {
                put_back(project, path, Some(item));
                tell(&mut told, path);
            }
        }
        told
    }

    /// Removes what appeared since where nothing was.
    fn clear(&self, project: &impl AsFd) -> Vec<PathBuf> {
        let appeared = self.absent.iter().filter(|path| {
            let Ok(folder) = folder_of(project, path) else {
                return false;
            };
            exists(&folder, name_of(path))
        });
        let appeared: Vec<_> = appeared.cloned().collect();
        for path in &appeared {
            remove(project, path);
        }
        appeared
    }
}

/// Of a folder that is new, only the folder is told.
fn tell(told: &mut Vec<PathBuf>, path: &Path) {
    if !told.iter().any(|known| path.starts_with(known)) {
        told.push(path.to_owned());
    }
}

/// What in these repositories no repair may change.
fn protected(project: &impl AsFd, git: &GitFolders, is_private: bool) -> BTreeMap<PathBuf, Item> {
    let mut all = BTreeMap::new();
    for GitFolder { path, kind } in &git.found {
        match kind {
            GitKind::Pointer => {
                if let Ok(folder) = folder_of(project, path) {
                    note(&folder, path, &mut all);
                }
            }
            GitKind::Folder if is_private && path == Path::new(git::NAME) => {}
            GitKind::Folder => {
                if let Some(folder) = git::open(project, path) {
                    repository(&folder, path, 0, &mut all);
                }
            }
        }
    }
    all
}

/// What of a repository no repair may change, and the links in the rest of it.
fn repository(folder: &OwnedFd, path: &Path, depth: usize, all: &mut BTreeMap<PathBuf, Item>) {
    for (name, kind) in git::list(folder) {
        let at = path.join(&name);
        let inner = || git::open(folder, Path::new(&name));
        match kind {
            FileType::Directory if name == MODULES => {
                if let Some(inner) = inner() {
                    modules(&inner, &at, depth + 1, all);
                }
            }
            FileType::Directory if is_writable(&name) => {
                let deepest = match name.as_bytes() {
                    b"refs" | b"logs" => DEEPEST,
                    _ => 1,
                };
                if let Some(inner) = inner() {
                    links(&inner, &at, deepest, all);
                }
            }
            FileType::RegularFile if is_writable(&name) => {}
            _ => everything(folder, &name, &at, DEEPEST, all),
        }
    }
}

/// The repositories of submodules, which may lie in folders of folders.
fn modules(folder: &OwnedFd, path: &Path, depth: usize, all: &mut BTreeMap<PathBuf, Item>) {
    if depth > DEEPEST {
        return;
    }
    let names = git::list(folder);
    if is_repository(&names) {
        return repository(folder, path, depth, all);
    }
    for (name, kind) in names {
        let at = path.join(&name);
        match (kind, git::open(folder, Path::new(&name))) {
            (FileType::Directory, Some(inner)) => modules(&inner, &at, depth + 1, all),
            _ => note(folder, &at, all),
        }
    }
}

/// Only the links: git writes through them.
fn links(folder: &OwnedFd, path: &Path, deepest: usize, all: &mut BTreeMap<PathBuf, Item>) {
    for (name, kind) in git::list(folder) {
        let at = path.join(&name);
        match kind {
            FileType::Symlink => note(folder, &at, all),
            FileType::Directory if deepest > 0 => {
                if let Some(inner) = git::open(folder, Path::new(&name)) {
                    links(&inner, &at, deepest - 1, all);
                }
            }
            _ => {}
        }
    }
}

fn everything(
    folder: &OwnedFd,
    name: &OsStr,
    path: &Path,
    deepest: usize,
    all: &mut BTreeMap<PathBuf, Item>,
) {
    note(folder, path, all);
    let inner = git::open(folder, Path::new(name)).filter(|_| deepest > 0);
    for (name, _) in inner.iter().flat_map(git::list) {
        if let Some(inner) = &inner {
            everything(inner, &name, &path.join(&name), deepest - 1, all);
        }
    }
}

fn note(folder: &OwnedFd, path: &Path, all: &mut BTreeMap<PathBuf, Item>) {
    if let Some(item) = item(folder, name_of(path)) {
        all.insert(path.to_owned(), item);
    }
}

fn item(folder: &OwnedFd, name: &OsStr) -> Option<Item> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Item::Folder,
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(folder, name, Vec::new()).ok()?;
            Item::Link(OsStr::from_bytes(target.to_bytes()).into())
        }
        FileType::RegularFile => match contents(folder, name) {
            Ok(Some(bytes)) => Item::File {
                bytes,
                mode: stat.st_mode & 0o777,
            },
            _ => Item::Other,
        },
        _ => Item::Other,
    })
}

/// A file that is not too large.
pub(super) fn contents(folder: &impl AsFd, name: &OsStr) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= LARGEST).then_some(bytes))
}

/// All of a file below a folder, through no link.
pub(super) fn contents_of(root: &impl AsFd, path: &Path) -> io::Result<Vec<u8>> {
    let folder = folder_of(root, path)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, name_of(path), flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    if kind != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a change of a protected file is what the command is known to make, and can start no program.
fn is_harmless(path: &Path, before: Option<&Item>, now: &Item, effects: GitEffects) -> bool {
    let old = match before {
        None => &[][..],
        Some(Item::File { bytes, .. }) => bytes,
        Some(_) => return false,
    };
    let Item::File { bytes, .. } = now else {
        return *now == Item::Folder && before.is_none() && may_be_made(path, effects);
    };
    let is_hook = path
        .parent()
        .is_some_and(|folder| folder.ends_with("hooks"));
    if path.ends_with("config") && (effects.submodules || effects.lfs) {
        settings_are_harmless(old, bytes, effects)
    } else if is_hook {
        before.is_none() && hook_is_harmless(name_of(path), bytes, effects)
    } else {
        false
    }
}

/// Whether a new folder belongs to what is allowed; what is in it is looked at by itself.
fn may_be_made(path: &Path, effects: GitEffects) -> bool {
    effects.lfs && path.ends_with("hooks")
}

/// Whether a repository that was not there is one that the command is known to make, and nothing in it starts a program.
fn is_declared(
    project: &impl AsFd,
    one: &GitFolder,
    effects: GitEffects,
    known: &GitFolders,
) -> bool {
    let is_allowed = match one.path == Path::new(git::NAME) {
        true => effects.repository,
        false => effects.nested,
    };
    if !is_allowed {
        return false;
    }
    match one.kind {
        GitKind::Folder => git::open(project, &one.path)
            .is_some_and(|folder| repository_is_harmless(&folder, effects)),
        GitKind::Pointer => folder_of(project, &one.path)
            .ok()
            .and_then(|folder| contents(&folder, name_of(&one.path)).ok().flatten())
            .is_some_and(|bytes| points_to_submodule(&one.path, &bytes, known)),
    }
}

/// Whether nothing in a new repository can start a program: plain settings, no hooks but samples, no link, and nothing
/// that leads elsewhere.
pub(super) fn repository_is_harmless(folder: &OwnedFd, effects: GitEffects) -> bool {
    let effects = GitEffects {
        submodules: true,
        ..effects
    };
    git::list(folder).into_iter().all(|(name, kind)| {
        let inner = || git::open(folder, Path::new(&name));
        match (name.to_str().unwrap_or_default(), kind) {
            (_, FileType::Symlink) => false,
            ("config", FileType::RegularFile) => contents(folder, &name)
                .ok()
                .flatten()
                .is_some_and(|bytes| settings_are_harmless(b"", &bytes, effects)),
            ("description", FileType::RegularFile) => true,
            ("hooks", FileType::Directory) => inner().is_some_and(|hooks| {
                git::list(&hooks).into_iter().all(|(name, kind)| {
                    kind == FileType::RegularFile
                        && contents(&hooks, &name)
                            .ok()
                            .flatten()
                            .is_some_and(|text| hook_is_harmless(&name, &text, effects))
                })
            }),
            ("info", FileType::Directory) => inner().is_some_and(|info| {
                let plain = |(name, kind): (std::ffi::OsString, FileType)| {
                    name == "exclude" && kind == FileType::RegularFile
                };
                git::list(&info).into_iter().all(plain)
            }),
            ("branches", FileType::Directory) => {
                inner().is_some_and(|inner| git::list(&inner).is_empty())
            }
            (MODULES, FileType::Directory) => {
                inner().is_some_and(|inner| modules_are_harmless(&inner, effects, 0))
            }
            (_, FileType::Directory) => {
                is_writable(&name) && inner().is_some_and(|inner| has_no_links(&inner, DEEPEST))
            }
            (_, FileType::RegularFile) => is_writable(&name),
            _ => false,
        }
    })
}

/// The same for a folder that is such a repository, or holds several.
#[cfg(target_os = "linux")]
pub(super) fn are_harmless(folder: &OwnedFd, effects: GitEffects) -> bool {
    modules_are_harmless(folder, effects, 0)
}

fn modules_are_harmless(folder: &OwnedFd, effects: GitEffects, depth: usize) -> bool {
    let names = git::list(folder);
    if is_repository(&names) {
        return repository_is_harmless(folder, effects);
    }
    depth < DEEPEST
        && names.into_iter().all(|(name, kind)| {
            kind == FileType::Directory
                && git::open(folder, Path::new(&name))
                    .is_some_and(|inner| modules_are_harmless(&inner, effects, depth + 1))
        })
}

fn has_no_links(folder: &OwnedFd, deepest: usize) -> bool {
    git::list(folder)
        .into_iter()
        .all(|(name, kind)| match kind {
            FileType::RegularFile => true,
            FileType::Directory => {
                deepest > 0
                    && git::open(folder, Path::new(&name))
                        .is_some_and(|inner| has_no_links(&inner, deepest - 1))
            }
            _ => false,
        })
}

/// Whether a `.git` file of a submodule names its folder in the repository of the project.
fn points_to_submodule(path: &Path, bytes: &[u8], known: &GitFolders) -> bool {
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
    let is_modules = |one: &GitFolder| target.starts_with(one.path.join(MODULES));
    !text.trim_end().contains('\n')
        && (known.found.iter().any(is_modules) || target.starts_with(".git/modules"))
}

fn remove(project: &impl AsFd, path: &Path) {
    if let Ok(folder) = folder_of(project, path) {
        // It is told in any case; trust in a configuration is by its content.
        let _ = scratch::remove_below(&folder, name_of(path));
    }
}

/// Puts something back as it was, by handle; nothing there if nothing was.
fn put_back(project: &impl AsFd, path: &Path, before: Option<&Item>) {
    let Ok(folder) = folder_of(project, path) else {
        return;
    };
    let name = name_of(path);
    // It is told in any case.
    let _ = match before {
        Some(Item::Other) => Ok(()),
        None => scratch::remove_below(&folder, name),
        Some(Item::Folder) => match is_folder(&folder, name) {
            true => Ok(()),
            false => scratch::remove_below(&folder, name).and_then(|()| {
                Ok(rustix::fs::mkdirat(
                    &folder,
                    name,
                    Mode::from_raw_mode(0o755),
                )?)
            }),
        },
        Some(Item::Link(target)) => scratch::remove_below(&folder, name)
            .and_then(|()| Ok(rustix::fs::symlinkat(target, &folder, name)?)),
        Some(Item::File { bytes, mode }) => scratch::remove_below(&folder, name)
            .and_then(|()| write_new(&folder, name, bytes, *mode)),
    };
}

/// Writes a file that must not be there yet.
fn write_new(folder: &OwnedFd, name: &OsStr, bytes: &[u8], mode: RawMode) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode);
    let mut file = File::from(rustix::fs::openat(folder, name, flags, mode)?);
    file.write_all(bytes)?;
    Ok(rustix::fs::fchmod(&file, mode)?)
}

fn is_folder(folder: &OwnedFd, name: &OsStr) -> bool {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// The folder that something is in; one that a symlink leads to is not it.
fn folder_of(project: &impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let folder = path.parent().unwrap_or(Path::new(""));
    git::open(project, folder).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or(path.as_os_str())
}

fn exists(folder: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::guarded;
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

    fn look(root: &Path) -> Before {
        let project = handle(root);
        let git = GitFolders::look(&project);
        Before::look(&project, guarded().iter(), git, false)
    }

    fn told(before: &Before, root: &Path, effects: GitEffects) -> Vec<String> {
        let told = before.restore(&handle(root), effects, false);
        told.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn what_was_there_stays_and_what_was_planted_goes() {
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
        let told = told(&before, root, GitEffects::default());
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
                .restore(&handle(root), GitEffects::default(), false)
                .len(),
            0
        );
    }

    #[test]
    fn a_new_repository_goes_wherever_and_whatever_it_looks_like() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        let before = look(root);
        repository_at(&root.join(".git"));
        repository_at(&root.join("a/.git"));
        repository_at(&root.join("a/b/bare"));
        fs::write(root.join("a/b/.git"), "gitdir: ../../evil").unwrap();
        let told = told(&before, root, GitEffects::default());
        assert_eq!(told, [".git", "a/.git", "a/b/.git", "a/b/bare"]);
        assert!(!root.join(".git").exists() && !root.join("a/b/bare").exists());
    }

    #[test]
    fn a_declared_repository_stays_if_nothing_in_it_starts_a_program() {
        let effects = GitEffects {
            repository: true,
            nested: true,
            ..GitEffects::default()
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
    fn what_a_symlink_leads_to_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [root, other] = ["root", "other"].map(|name| folder.path().join(name));
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("config"), "kept").unwrap();
        let before = look(&root);
        fs::remove_dir(root.join(".git")).unwrap();
        std::os::unix::fs::symlink(&other, root.join(".git")).unwrap();
        told(&before, &root, GitEffects::default());
        assert!(other.join("config").exists());
        assert!(
            root.join(".git").symlink_metadata().is_err(),
            "the link is gone"
        );
    }
}

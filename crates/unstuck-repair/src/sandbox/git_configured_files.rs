//! Files of a project that git's configuration names: included settings, hooks, attributes and programs.
//!
//! Git obeys them like its own configuration, so a repair may neither change nor create them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use unstuck_core::watched_files::{ToolFileKnowledge, split_commands};

use super::config_injection::read_file_below;
use super::git_config_parser::{GitSetting, parse_settings};
use super::git_dirs::{
    self, GIT_DIR, GitRepositoryMarker, GitRepositoryMarkerKind, MODULES_DIR, has_repository_layout,
};

/// Maximum size of a configuration file; git itself has no limit.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// Maximum number of configuration files read.
const MAX_CONFIG_FILES: usize = 5000;
/// Maximum number of settings applied, each once per work tree.
const MAX_SETTINGS: usize = 200_000;
/// Maximum number of referenced paths.
const MAX_REFERENCES: usize = 1000;
/// Maximum length of all their paths.
const MAX_PATH_BYTES: usize = 256 << 10;
/// Maximum depth of submodules in a repository.
const MAX_MODULE_DEPTH: usize = 12;
/// Maximum number of links followed in one path, as in the kernel.
const MAX_LINKS: usize = 40;
/// Number of entries up to which a whole directory of hooks is protected, and not only the hooks themselves.
const MAX_HOOK_DIR_ENTRIES: usize = 1000;
/// The subdirectory of a directory of hooks that husky fills, and fills again at each installation of packages.
const REBUILT_DIR: &str = "_";
/// The configuration of all users.
const SYSTEM_CONFIG: &str = "/etc/gitconfig";
/// The configuration of a user, below the home directory.
const USER_CONFIGS: [&str; 2] = [".config/git/config", ".gitconfig"];
/// Names of files that git executes in a directory of hooks.
const HOOK_NAMES: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];
/// Sections without any command.
const SECTIONS_WITHOUT_COMMANDS: [&str; 32] = [
    "advice",
    "apply",
    "blame",
    "branch",
    "checkout",
    "color",
    "column",
    "commit",
    "extensions",
    "fetch",
    "format",
    "http",
    "i18n",
    "index",
    "init",
    "log",
    "mailmap",
    "notes",
    "pack",
    "pull",
    "push",
    "rebase",
    "rerere",
    "safe",
    "stash",
    "status",
    "tag",
    "transfer",
    "url",
    "user",
    "versionsort",
    "worktree",
];
/// Settings that are addresses or paths of data in sections that also contain commands.
const SETTINGS_WITHOUT_COMMANDS: [(&str, &str); 11] = [
    ("core", "excludesfile"),
    ("core", "worktree"),
    ("diff", "orderfile"),
    ("gpg", "allowedsignersfile"),
    ("gpg", "revocationfile"),
    ("remote", "fetch"),
    ("remote", "push"),
    ("remote", "pushurl"),
    ("remote", "url"),
    ("submodule", "path"),
    ("submodule", "url"),
];
/// Settings whose values are commands only after a `!`.
const COMMANDS_AFTER_EXCLAMATION_MARK: [(&str, Option<&str>); 2] =
    [("alias", None), ("submodule", Some("update"))];

/// The paths in a project, relative to its root, that git's configuration names. Some may not exist.
#[derive(Debug, Default)]
pub(super) struct GitReferences {
    /// Settings, attributes, programs, directories of hooks, and the links that lead to them.
    pub(super) paths: BTreeSet<PathBuf>,
    /// Directories in those that package managers fill again.
    pub(super) rebuilt: BTreeSet<PathBuf>,
    /// If set, some cannot be protected: there are too many, or one is not UTF-8.
    pub(super) is_incomplete: bool,
}

/// Finds the paths that the configuration of these repositories names, of one around the project, and of the user with
/// this home directory.
pub(super) fn find_references(
    project: &impl AsFd,
    root: &Path,
    home: Option<&Path>,
    repositories: &BTreeSet<GitRepositoryMarker>,
) -> GitReferences {
    let Ok(project) = rustix::fs::openat(project, ".", DIR_FLAGS, Mode::empty()) else {
        return GitReferences::default();
    };
    let of_user = home
        .iter()
        .flat_map(|home| USER_CONFIGS.map(|name| home.join(name)));
    let mut search = ReferenceSearch {
        project,
        root: normalize(root),
        home: home.map(Path::to_owned),
        shared: [PathBuf::from(SYSTEM_CONFIG)]
            .into_iter()
            .chain(of_user)
            .collect(),
        parsed: BTreeMap::new(),
        applied: BTreeSet::new(),
        setting_count: 0,
        found: GitReferences::default(),
    };
    if !repositories
        .iter()
        .any(|one| one.path == Path::new(GIT_DIR))
    {
        search.add_enclosing_repository();
    }
    // The outermost first.
    let mut ordered: Vec<_> = repositories.iter().collect();
    ordered.sort_by_key(|one| one.path.components().count());
    for GitRepositoryMarker { path, kind } in ordered {
        let marker = search.root.join(path);
        let parent = marker.parent().unwrap_or(&search.root).to_owned();
        match kind {
            GitRepositoryMarkerKind::Directory => {
                let is_git = path.file_name() == Some(OsStr::new(GIT_DIR));
                let work_tree = if is_git { &parent } else { &marker };
                search.add_repository(&marker, work_tree, 0);
            }
            GitRepositoryMarkerKind::Pointer => search.add_pointer(&marker, &parent),
        }
    }
    let mut found = search.found;
    found
        .paths
        .retain(|path| !repositories.iter().any(|one| path.starts_with(&one.path)));
    let length: usize = found.paths.iter().map(|path| path.as_os_str().len()).sum();
    found.is_incomplete |= found.paths.len() > MAX_REFERENCES || length > MAX_PATH_BYTES;
    found
}

const DIR_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

struct ReferenceSearch {
    project: OwnedFd,
    /// Absolute path of the project.
    root: PathBuf,
    home: Option<PathBuf>,
    /// Configuration files that apply to every repository.
    shared: Vec<PathBuf>,
    /// Settings of the configuration files that exist, by absolute path.
    parsed: BTreeMap<PathBuf, Rc<[GitSetting]>>,
    /// Configuration files by work tree: a relative path in them depends on it.
    applied: BTreeSet<(PathBuf, PathBuf)>,
    setting_count: usize,
    found: GitReferences,
}

impl ReferenceSearch {
    /// Adds the repository to which a project without an own one belongs.
    fn add_enclosing_repository(&mut self) {
        let around = self.root.clone();
        for folder in around.ancestors().skip(1) {
            let marker = folder.join(GIT_DIR);
            let Ok(stat) = rustix::fs::stat(&marker) else {
                continue;
            };
            return match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.add_repository(&marker, folder, 0),
                _ => self.add_pointer(&marker, folder),
            };
        }
    }

    /// Follows a `.git` file or link to its repository, which may be outside the project.
    fn add_pointer(&mut self, marker: &Path, work_tree: &Path) {
        let linked = self.link_target(marker);
        let git_dir = match self.pointer_target(linked.as_deref().unwrap_or(marker), "gitdir: ") {
            Some(git_dir) => git_dir,
            None => match linked {
                Some(git_dir) => git_dir,
                None => return,
            },
        };
        self.add_repository(&git_dir, work_tree, 0);
        if let Some(common) = self.pointer_target(&git_dir.join("commondir"), "") {
            self.add_repository(&common, work_tree, 0);
        }
    }

    /// Returns the absolute path to which a link of the project leads.
    fn link_target(&mut self, link: &Path) -> Option<PathBuf> {
        let relative = link.strip_prefix(&self.root).ok()?.to_owned();
        if self.kind_in_project(&relative) != Some(FileType::Symlink) {
            return None;
        }
        let target = self.read_link(&relative)?;
        let target = normalize(&link.parent()?.join(target));
        Some(match self.in_project(&target) {
            Some(relative) => self.root.join(relative),
            None => target,
        })
    }

    /// Returns the absolute path that a pointer file names.
    fn pointer_target(&self, file: &Path, prefix: &str) -> Option<PathBuf> {
        let bytes = self.read_bytes(file)?;
        let target = bytes.trim_ascii_end().strip_prefix(prefix.as_bytes())?;
        Some(normalize(&file.parent()?.join(OsStr::from_bytes(target))))
    }

    fn add_repository(&mut self, git_dir: &Path, work_tree: &Path, depth: usize) {
        for shared in self.shared.clone() {
            self.add_path(&shared);
            self.add_config(&shared, work_tree);
        }
        for name in ["config", "config.worktree"] {
            self.add_config(&git_dir.join(name), work_tree);
        }
        let Some(modules) = self.open_in_project(&git_dir.join(MODULES_DIR)) else {
            return;
        };
        self.add_modules(&modules, &git_dir.join(MODULES_DIR), depth);
    }

    fn add_modules(&mut self, folder: &OwnedFd, path: &Path, depth: usize) {
        if depth > MAX_MODULE_DEPTH {
            return;
        }
        for (name, kind) in git_dirs::list_dir(folder) {
            let inner = git_dirs::open_dir_below(folder, Path::new(&name));
            let (FileType::Directory, Some(inner)) = (kind, inner) else {
                continue;
            };
            let at = path.join(&name);
            if has_repository_layout(&git_dirs::list_dir(&inner)) {
                let work_tree = self.work_tree_of(&at).unwrap_or_else(|| at.clone());
                self.add_repository(&at, &work_tree, depth + 1);
            } else {
                self.add_modules(&inner, &at, depth + 1);
            }
        }
    }

    /// Returns the work tree that a repository's configuration names.
    fn work_tree_of(&mut self, git_dir: &Path) -> Option<PathBuf> {
        let settings = self.settings(&git_dir.join("config"))?;
        let setting = settings.iter().rfind(|one| one.is("core", "worktree"))?;
        Some(normalize(&git_dir.join(&setting.value)))
    }

    /// Returns the settings of a configuration file, which is read once.
    fn settings(&mut self, file: &Path) -> Option<Rc<[GitSetting]>> {
        if let Some(known) = self.parsed.get(file) {
            return Some(Rc::clone(known));
        }
        if self.parsed.len() >= MAX_CONFIG_FILES {
            self.found.is_incomplete = true;
            return None;
        }
        let bytes = self.read_bytes(file)?;
        if bytes.len() as u64 >= MAX_CONFIG_BYTES {
            self.found.is_incomplete = true;
        }
        let settings: Rc<[_]> = parse_settings(&String::from_utf8_lossy(&bytes)).into();
        self.parsed.insert(file.to_owned(), Rc::clone(&settings));
        Some(settings)
    }

    /// Adds what a configuration file names, and what the files that it includes name.
    fn add_config(&mut self, file: &Path, work_tree: &Path) {
        let file = match self.in_project(file) {
            Some(relative) => self.root.join(relative),
            None => normalize(file),
        };
        if !self.applied.insert((file.clone(), work_tree.to_owned())) {
            return;
        }
        let Some(settings) = self.settings(&file) else {
            return;
        };
        let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
        for setting in settings.iter() {
            self.setting_count += 1;
            if self.setting_count > MAX_SETTINGS || self.found.paths.len() > MAX_REFERENCES {
                self.found.is_incomplete = true;
                return;
            }
            self.add_setting(setting, &folder, work_tree);
        }
    }

    fn add_setting(&mut self, setting: &GitSetting, folder: &Path, work_tree: &Path) {
        let GitSetting {
            section,
            name,
            value,
        } = setting;
        let never_executes = SECTIONS_WITHOUT_COMMANDS.contains(&section.as_str())
            || SETTINGS_WITHOUT_COMMANDS.contains(&(section, name));
        let is_include = setting.is("include", "path") || setting.is("includeif", "path");
        let is_conditional = COMMANDS_AFTER_EXCLAMATION_MARK
            .iter()
            .any(|(known, only)| section == known && only.is_none_or(|only| name == only));
        if is_include {
            let included = folder.join(self.expand(value));
            self.add_path(&included);
            self.add_config(&included, work_tree);
        } else if setting.is("core", "hookspath") {
            self.add_hooks(&work_tree.join(self.expand(value)));
        } else if setting.is("core", "attributesfile") {
            self.add_path(&work_tree.join(self.expand(value)));
        } else if is_conditional {
            if let Some(command) = value.strip_prefix('!') {
                self.add_programs_of(command, work_tree);
            }
        } else if !never_executes {
            self.add_programs_of(value.strip_prefix('!').unwrap_or(value), work_tree);
        }
    }

    /// Replaces `~/`, as git does in paths and a shell in commands. `%(prefix)/` is the directory of git's installation.
    fn expand(&self, value: &str) -> PathBuf {
        let after_home = ["~/", "$HOME/", "${HOME}/"]
            .iter()
            .find_map(|prefix| value.strip_prefix(prefix));
        match (after_home, &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => match value.strip_prefix("%(prefix)/") {
                Some(rest) => Path::new("/usr").join(rest),
                None => PathBuf::from(value),
            },
        }
    }

    /// Adds the files of the project that a command executes: programs, and what interpreters are given. Files that it
    /// only reads are data.
    fn add_programs_of(&mut self, command: &str, work_tree: &Path) {
        // A single word without a slash is a value, or a program on the search path.
        if !command.contains(|letter: char| letter.is_whitespace() || "/<".contains(letter)) {
            return;
        }
        let known = ToolFileKnowledge::built_in();
        // Some values are the path of a program, even with spaces.
        if command.contains('/') && command.contains(' ') {
            self.add_program(command, work_tree, false);
        }
        for step in split_commands(command) {
            for word in step.usage(known).executes {
                let is_created_by_builds = known.is_installed_or_built(&word);
                let is_named = word.contains('/') && command.contains(&word);
                let may_appear = is_named && !is_created_by_builds;
                self.add_program(&word, work_tree, may_appear);
            }
        }
    }

    /// Adds a program of the project, if it exists or may appear.
    fn add_program(&mut self, word: &str, work_tree: &Path, may_appear: bool) {
        if let Some(relative) = self.in_project(&work_tree.join(self.expand(word))) {
            let may_appear = may_appear && !word.starts_with('$');
            match self.kind_in_project(&relative) {
                Some(FileType::RegularFile) => self.insert(relative),
                None if may_appear => self.insert(relative),
                Some(_) | None => {}
            }
        }
        // `$(git rev-parse --show-toplevel)/x` arrives as `/x`, and `$PWD/x` as it is.
        let below = match word.strip_prefix('$') {
            Some(variable) => variable.split_once('/').map(|(_, below)| below),
            None => word.strip_prefix('/'),
        };
        if let Some(relative) = below.and_then(|below| self.in_project(&work_tree.join(below)))
            && self.kind_in_project(&relative) == Some(FileType::RegularFile)
        {
            self.insert(relative);
        }
    }

    /// Adds a directory of hooks; of one that contains other things as well, only the hooks.
    fn add_hooks(&mut self, path: &Path) {
        let Some(mut relative) = self.in_project(path) else {
            return;
        };
        // Husky's programs in `.husky/_` start those in `.husky`.
        let around = relative.parent().unwrap_or(Path::new("")).to_owned();
        if relative.file_name() == Some(OsStr::new(REBUILT_DIR)) && !around.as_os_str().is_empty() {
            relative = around;
            self.found.rebuilt.insert(relative.join(REBUILT_DIR));
        }
        let handle = git_dirs::open_dir_below(&self.project, &relative);
        let names = handle.map_or_else(Vec::new, |folder| git_dirs::list_dir(&folder));
        if relative.as_os_str().is_empty() || names.len() > MAX_HOOK_DIR_ENTRIES {
            for name in HOOK_NAMES {
                self.insert(relative.join(name));
            }
            return;
        }
        if names
            .iter()
            .any(|one| *one == (REBUILT_DIR.into(), FileType::Directory))
        {
            self.found.rebuilt.insert(relative.join(REBUILT_DIR));
        }
        for (name, kind) in names {
            if kind == FileType::Symlink
                && let Some(target) = self.in_project(&self.root.join(&relative).join(name))
            {
                self.insert(target);
            }
        }
        self.insert(relative);
    }

    fn add_path(&mut self, path: &Path) {
        if let Some(relative) = self.in_project(path) {
            self.insert(relative);
        }
    }

    fn insert(&mut self, relative: PathBuf) {
        let is_text = relative
            .to_str()
            .is_some_and(|path| !path.contains('\u{fffd}'));
        if !is_text {
            self.found.is_incomplete = true;
        } else if !relative.as_os_str().is_empty() {
            self.found.paths.insert(relative);
        }
    }

    /// Returns the place of a path relative to the project, if it is in it. The links on the way there count as
    /// references, because whoever changes them decides where git looks.
    fn in_project(&mut self, path: &Path) -> Option<PathBuf> {
        let path = normalize(path);
        let inside = match path.strip_prefix(&self.root) {
            Ok(inside) => inside.to_owned(),
            // Links outside may lead into the project: settings in a home directory often do.
            Err(_) => {
                let real = path.canonicalize().ok()?;
                real.strip_prefix(&self.root).ok()?.to_owned()
            }
        };
        let mut waiting: Vec<_> = inside.iter().rev().map(OsStr::to_owned).collect();
        let mut place = PathBuf::new();
        let mut link_count = 0;
        while let Some(name) = waiting.pop() {
            let next = place.join(&name);
            if self.kind_in_project(&next) != Some(FileType::Symlink) {
                place = next;
                continue;
            }
            link_count += 1;
            let target = self.read_link(&next).filter(|_| link_count <= MAX_LINKS)?;
            self.insert(next);
            let target = normalize(&self.root.join(&place).join(target));
            let inside = target.strip_prefix(&self.root).ok()?;
            waiting.extend(inside.iter().rev().map(OsStr::to_owned));
            place = PathBuf::new();
        }
        Some(place)
    }

    fn kind_in_project(&self, relative: &Path) -> Option<FileType> {
        let folder = git_dirs::open_dir_below(&self.project, relative.parent()?)?;
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statat(&folder, relative.file_name()?, flags).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    }

    fn read_link(&self, relative: &Path) -> Option<PathBuf> {
        let folder = git_dirs::open_dir_below(&self.project, relative.parent()?)?;
        let target = rustix::fs::readlinkat(&folder, relative.file_name()?, Vec::new()).ok()?;
        Some(OsStr::from_bytes(target.to_bytes()).into())
    }

    fn open_in_project(&self, path: &Path) -> Option<OwnedFd> {
        git_dirs::open_dir_below(&self.project, path.strip_prefix(&self.root).ok()?)
    }

    /// Reads a file: in the project without following any link, elsewhere a regular file of limited size.
    fn read_bytes(&self, path: &Path) -> Option<Vec<u8>> {
        if let Ok(relative) = path.strip_prefix(&self.root) {
            return read_file_below(&self.project, relative, MAX_CONFIG_BYTES).ok();
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).ok()?.st_mode);
        let mut bytes = Vec::new();
        let read = File::from(file)
            .take(MAX_CONFIG_BYTES)
            .read_to_end(&mut bytes);
        (kind == FileType::RegularFile && read.is_ok()).then_some(bytes)
    }
}

/// Resolves `.` and `..` in a path by its text.
fn normalize(path: &Path) -> PathBuf {
    let mut parts: Vec<&OsStr> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part),
            Component::ParentDir => drop(parts.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    let relative: PathBuf = parts.into_iter().collect();
    if path.as_os_str().as_bytes().starts_with(b"/") {
        Path::new("/").join(relative)
    } else {
        relative
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
mod tests {
    use std::fs;

    use super::*;
    use crate::sandbox::ProjectRepositories;

    /// A project with these files, in a home directory.
    struct Project(tempfile::TempDir);

    impl Project {
        fn with(files: &[(&str, &str)]) -> Self {
            let project = Self(tempfile::tempdir().unwrap());
            for (name, text) in files {
                let text = text.replace("ROOT", project.root().to_str().unwrap());
                let path = project.root().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            project
        }

        fn root(&self) -> PathBuf {
            self.0.path().canonicalize().unwrap().join("project")
        }

        fn link(&self, name: &str, target: &str) {
            let path = self.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(target, path).unwrap();
        }

        fn git_dirs(&self) -> ProjectRepositories {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let project = rustix::fs::open(self.root(), flags, Mode::empty()).unwrap();
            let home = self.0.path().canonicalize().unwrap();
            ProjectRepositories::find_with_references(&project, &self.root(), Some(&home))
        }

        fn references(&self) -> Vec<String> {
            let found = self.git_dirs().referenced;
            found
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        }
    }

    /// Returns the references of a project with these files.
    fn references(files: &[(&str, &str)]) -> Vec<String> {
        Project::with(files).references()
    }

    #[test]
    fn included_settings_hooks_attributes_and_programs_are_found() {
        let found = references(&[
            (
                ".git/config",
                "[include]\n\tpath = ../.gitconfig\n[core]\n\thooksPath = .githooks\n\tattributesFile = ROOT/attributes\n\
                 [filter \"x\"]\n\tclean = python3 tools/clean.py %f\n[alias]\n\tst = !./bin/st -s\n\
                 [remote \"origin\"]\n\turl = ./bundle\n\tuploadpack = ./bin/upload\n\
                 [submodule \"a\"]\n\tupdate = !bin/update\n",
            ),
            (
                ".gitconfig",
                "[includeIf \"onbranch:x\"]\n\tpath = more/settings\n",
            ),
            (
                "more/settings",
                "[core]\n\tfsmonitor = \"scripts/watch it\"\n[Core]\n\tFSMONITOR = scripts/watch\n",
            ),
            ("tools/clean.py", ""),
            ("bin/st", ""),
            ("bin/upload", ""),
            ("bin/update", ""),
            ("bundle", ""),
            ("scripts/watch", ""),
        ]);
        let expected = [
            ".gitconfig",
            ".githooks",
            "attributes",
            "bin/st",
            "bin/update",
            "bin/upload",
            "more/settings",
            "scripts/watch",
            "tools/clean.py",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn hooks_in_the_project_root_are_protected_by_name() {
        let found = references(&[(".git/config", "[core]\n\thooksPath = .\n")]);
        assert_eq!(found.len(), HOOK_NAMES.len());
        assert!(found.contains(&"pre-commit".to_owned()));
    }

    #[test]
    fn paths_outside_the_project_and_in_git_directories_are_left_out() {
        let config = "[core]\n\thooksPath = ../hooks\n\tattributesFile = .git/x\n[include]\n\tpath = /etc/gitconfig\n\tpath = ~/x\n";
        assert_eq!(references(&[(".git/config", config)]), ["~/x"; 0]);
    }

    #[test]
    fn configuration_of_submodules_worktrees_and_nested_repositories_counts() {
        let hooks = |name: &str| format!("[core]\n\thooksPath = {name}\n");
        let module = format!(
            "[core]\n\tworktree = ../../../libs/lib\n{}",
            hooks("module-hooks")
        );
        let found = references(&[
            (".git/modules/lib/config", &module),
            (".git/modules/lib/HEAD", ""),
            (".git/modules/lib/objects/x", ""),
            (".git/modules/lib/refs/x", ""),
            ("nested/.git/config", &hooks("nested-hooks")),
            ("linked/.git", "gitdir: ../store/worktrees/linked\n"),
            ("store/worktrees/linked/commondir", "../..\n"),
            ("store/config", &hooks("linked-hooks")),
        ]);
        assert_eq!(
            found,
            [
                "libs/lib/module-hooks",
                "linked/linked-hooks",
                "nested/nested-hooks"
            ]
        );
    }

    #[test]
    fn included_files_that_include_each_other_are_read_once() {
        let found = references(&[
            (".git/config", "[include]\n\tpath = ../one\n"),
            ("one", "[include]\n\tpath = two\n"),
            ("two", "[include]\n\tpath = one\n"),
        ]);
        assert_eq!(found, ["one", "two"]);
    }

    #[test]
    fn only_what_a_command_executes_counts_not_its_data() {
        let config = "[alias]\n\tlock = !git add package-lock.json\n\tx = status data/list\n\
             [http]\n\tsslCAInfo = certs/ca.pem\n[commit]\n\ttemplate = data/list\n\
             [blame]\n\tignoreRevsFile = data/list\n[gpg \"ssh\"]\n\tallowedSignersFile = data/list\n\
             [credential]\n\thelper = store --file=data/list\n[merge \"npm\"]\n\tdriver = npx merge %A package-lock.json\n\
             [diff \"x\"]\n\ttextconv = cat data/list\n";
        let found = references(&[
            (".git/config", config),
            ("package-lock.json", ""),
            ("certs/ca.pem", ""),
            ("data/list", ""),
        ]);
        assert_eq!(found, ["x"; 0]);
    }

    #[test]
    fn programs_are_found_however_a_command_names_them() {
        let config = "[core]\n\tfsmonitor = sh watch\n\tsshCommand = \"$PWD/tools/ssh -v\"\n\tpager = tools/my pager\n\
             [alias]\n\ta = \"!$(git rev-parse --show-toplevel)/tools/a x\"\n\tb = \"!f() { cd data; ~/project/tools/b; }; f\"\n\
             \tc = \"!sh -c 'env X=1 tools/c'\"\n\td = \"!bash \\\"$(git rev-parse --show-toplevel)/tools/d.sh\\\"\"\n\
             \te = !tools/later\n[merge \"x\"]\n\tdriver = node_modules/.bin/absent %A\n";
        let names = [
            "tools/ssh",
            "tools/my pager",
            "tools/a",
            "tools/b",
            "tools/c",
            "tools/d.sh",
            "watch",
        ];
        let mut files = vec![(".git/config", config)];
        files.extend(names.map(|name| (name, "")));
        let found = references(&files);
        let expected = [
            "tools/a",
            "tools/b",
            "tools/c",
            "tools/d.sh",
            "tools/later",
            "tools/my",
            "tools/my pager",
            "tools/ssh",
            "watch",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn links_to_references_and_their_targets_count() {
        let config = "[core]\n\thooksPath = tools/hooks\n\tfsmonitor = bin/watch\n[include]\n\tpath = ROOT/settings\n";
        let project = Project::with(&[
            (".git/config", config),
            ("real/hooks/pre-commit", ""),
            ("lib/watch.js", ""),
            ("more", "[core]\n\tattributesFile = attributes\n"),
        ]);
        project.link("tools", "real");
        project.link("bin/watch", "../lib/watch.js");
        project.link("settings", "more");
        let expected = [
            "attributes",
            "bin/watch",
            "lib/watch.js",
            "more",
            "real/hooks",
            "settings",
            "tools",
        ];
        assert_eq!(project.references(), expected);
        project.link("loop", "loop");
        project.link("linked/.git", "../.git");
        assert_eq!(
            project.references().len(),
            expected.len() + 3,
            "hooks, attributes and a program of `linked`"
        );
    }

    #[test]
    fn the_hooks_that_husky_starts_are_protected() {
        let config = "[core]\n\thooksPath = .husky/_\n";
        for file in [".husky/_/pre-commit", ".husky/pre-commit"] {
            let project = Project::with(&[(".git/config", config), (file, "")]);
            assert_eq!(project.references(), [".husky"]);
            let rebuilt = project.git_dirs().rebuilt;
            assert_eq!(rebuilt, BTreeSet::from([".husky/_".into()]));
        }
    }

    #[test]
    fn configuration_of_the_user_and_of_a_repository_around_the_project_counts() {
        let hooks = |name: &str| format!("[core]\n\thooksPath = {name}\n");
        let found = references(&[
            ("../.git/config", &hooks("project/outer-hooks")),
            ("../.gitconfig", &hooks("project/user-hooks")),
            (
                "../.config/git/config",
                "[core]\n\tattributesFile = ~/project/attributes\n",
            ),
        ]);
        assert_eq!(found, ["attributes", "outer-hooks", "user-hooks"]);
        let found = references(&[
            (".git/config", ""),
            ("nested/.git/config", ""),
            ("../.gitconfig", "[include]\n\tpath = more\n"),
            ("../more", &hooks(".githooks")),
        ]);
        assert_eq!(
            found,
            [".githooks", "nested/.githooks"],
            "in each work tree"
        );
    }

    #[test]
    fn many_repositories_do_not_hide_the_configuration_of_the_project() {
        let names: Vec<String> = (0..260).map(|n| format!("!{n:03}/.git/HEAD")).collect();
        let mut files = vec![(".git/config", "[core]\n\thooksPath = .githooks\n")];
        files.extend(names.iter().map(|name| (name.as_str(), "")));
        assert_eq!(references(&files), [".githooks"]);
    }

    #[test]
    fn more_references_than_can_be_protected_are_refused() {
        let refusal = |config: &str| {
            Project::with(&[(".git/config", config)])
                .git_dirs()
                .refusal()
        };
        let includes = |count: usize| -> String {
            let lines = (0..count).map(|n| format!("\tpath = ../{n}\n"));
            format!("[include]\n{}", lines.collect::<String>())
        };
        assert_eq!(refusal(&includes(900)), None);
        assert!(refusal(&includes(1100)).is_some());
        assert!(
            refusal(&"# comment\n".repeat(200_000)).is_some(),
            "too large to read"
        );
        assert!(refusal("[core]\n\thooksPath = a\u{fffd}b\n").is_some());
    }
}

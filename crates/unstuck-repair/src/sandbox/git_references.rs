//! Files of a project that git's configuration names: included settings, hooks, attributes and programs.
//!
//! Git obeys them like its own configuration, so a repair may neither change nor create them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::config_injection::read_file_below;
use super::git_dirs::{
    self, GIT_DIR, GitDirEntryKind, GitRepositoryMarker, MODULES_DIR, has_repository_layout,
};
use super::git_settings::{GitSetting, parse_settings};

/// Maximum size of a configuration file.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// Maximum number of configuration files read.
const MAX_CONFIG_FILES: usize = 500;
/// Maximum depth of submodules in a repository.
const MAX_MODULE_DEPTH: usize = 12;
/// Number of entries up to which a whole directory of hooks is protected, and not only the hooks themselves.
const MAX_HOOK_DIR_ENTRIES: usize = 1000;
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
/// Sections whose values are names, addresses and revisions, never commands.
const SECTIONS_WITHOUT_COMMANDS: [&str; 6] =
    ["branch", "color", "extensions", "init", "url", "user"];
/// Settings that are addresses or paths in sections that also contain commands.
const SETTINGS_WITHOUT_COMMANDS: [(&str, &str); 5] = [
    ("core", "worktree"),
    ("remote", "fetch"),
    ("remote", "push"),
    ("remote", "pushurl"),
    ("remote", "url"),
];

/// Returns the paths in a project, relative to its root, that the configuration of these repositories names. Some may
/// not exist.
pub(super) fn find_references(
    project: &impl AsFd,
    root: &Path,
    repositories: &BTreeSet<GitRepositoryMarker>,
) -> BTreeSet<PathBuf> {
    let Ok(project) = rustix::fs::openat(project, ".", DIR_FLAGS, Mode::empty()) else {
        return BTreeSet::new();
    };
    let mut search = ReferenceSearch {
        project,
        root: normalize(root),
        read: BTreeSet::new(),
        found: BTreeSet::new(),
    };
    for GitRepositoryMarker { path, kind } in repositories {
        let marker = search.root.join(path);
        let parent = marker.parent().unwrap_or(&search.root).to_owned();
        match kind {
            GitDirEntryKind::Directory => {
                let is_git = path.file_name() == Some(OsStr::new(GIT_DIR));
                let work_tree = if is_git { &parent } else { &marker };
                search.add_repository(&marker, work_tree, 0);
            }
            GitDirEntryKind::Pointer => search.add_pointer(&marker, &parent),
        }
    }
    search
        .found
        .retain(|path| !repositories.iter().any(|one| path.starts_with(&one.path)));
    search.found
}

const DIR_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

struct ReferenceSearch {
    project: OwnedFd,
    /// Absolute path of the project.
    root: PathBuf,
    /// Absolute paths of the configuration files that were read.
    read: BTreeSet<PathBuf>,
    found: BTreeSet<PathBuf>,
}

impl ReferenceSearch {
    /// Follows a `.git` file or link to its repository, which may be outside the project.
    fn add_pointer(&mut self, marker: &Path, work_tree: &Path) {
        let Some(git_dir) = self.pointer_target(marker, "gitdir: ") else {
            return;
        };
        self.add_repository(&git_dir, work_tree, 0);
        if let Some(common) = self.pointer_target(&git_dir.join("commondir"), "") {
            self.add_repository(&common, work_tree, 0);
        }
    }

    /// Returns the absolute path that a pointer file names.
    fn pointer_target(&self, file: &Path, prefix: &str) -> Option<PathBuf> {
        let text = String::from_utf8(self.read_bytes(file)?).ok()?;
        let target = text.trim_end().strip_prefix(prefix)?;
        Some(normalize(&file.parent()?.join(target)))
    }

    fn add_repository(&mut self, git_dir: &Path, work_tree: &Path, depth: usize) {
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
    fn work_tree_of(&self, git_dir: &Path) -> Option<PathBuf> {
        let bytes = self.read_bytes(&git_dir.join("config"))?;
        let settings = parse_settings(&String::from_utf8_lossy(&bytes));
        let setting = settings.iter().rfind(|one| one.is("core", "worktree"))?;
        Some(normalize(&git_dir.join(&setting.value)))
    }

    /// Adds what a configuration file names, and what the files that it includes name.
    fn add_config(&mut self, file: &Path, work_tree: &Path) {
        let file = normalize(file);
        if self.read.len() >= MAX_CONFIG_FILES || !self.read.insert(file.clone()) {
            return;
        }
        let Some(bytes) = self.read_bytes(&file) else {
            return;
        };
        let folder = file.parent().unwrap_or(Path::new("/")).to_owned();
        for setting in parse_settings(&String::from_utf8_lossy(&bytes)) {
            self.add_setting(&setting, &folder, work_tree);
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
        if is_include {
            let included = normalize(&folder.join(value));
            self.add_path(&included);
            self.add_config(&included, work_tree);
        } else if setting.is("core", "hookspath") {
            self.add_hooks(&normalize(&work_tree.join(value)));
        } else if setting.is("core", "attributesfile") {
            self.add_path(&normalize(&work_tree.join(value)));
        } else if !never_executes {
            self.add_program_files(value, work_tree);
        }
    }

    /// Adds the existing files of the project that occur as words of a command.
    fn add_program_files(&mut self, command: &str, work_tree: &Path) {
        let words =
            command.split(|letter: char| letter.is_whitespace() || "!\"';&|()".contains(letter));
        for word in words.filter(|word| word.contains(['/', '.'])) {
            let path = normalize(&work_tree.join(word));
            let Ok(relative) = path.strip_prefix(&self.root) else {
                continue;
            };
            if self.kind_in_project(relative) == Some(FileType::RegularFile) {
                self.found.insert(relative.to_owned());
            }
        }
    }

    /// Adds a directory of hooks; of one that contains other things as well, only the hooks.
    fn add_hooks(&mut self, path: &Path) {
        let Ok(relative) = path.strip_prefix(&self.root) else {
            return;
        };
        let relative = relative.to_owned();
        let handle = self.open_in_project(path);
        let count = handle.map_or(0, |folder| git_dirs::list_dir(&folder).len());
        let contains_more = relative.as_os_str().is_empty() || count > MAX_HOOK_DIR_ENTRIES;
        if contains_more {
            self.found
                .extend(HOOK_NAMES.iter().map(|name| relative.join(name)));
        } else {
            self.found.insert(relative);
        }
    }

    fn add_path(&mut self, path: &Path) {
        if let Ok(relative) = path.strip_prefix(&self.root)
            && !relative.as_os_str().is_empty()
        {
            self.found.insert(relative.to_owned());
        }
    }

    fn kind_in_project(&self, relative: &Path) -> Option<FileType> {
        let folder = git_dirs::open_dir_below(&self.project, relative.parent()?)?;
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statat(&folder, relative.file_name()?, flags).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
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
    use crate::sandbox::GitDirs;

    /// Returns the references of a project with these files.
    fn references(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        for (name, text) in files {
            let text = text.replace("ROOT", root.to_str().unwrap());
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let project = rustix::fs::open(&root, flags, Mode::empty()).unwrap();
        let found = GitDirs::find_with_references(&project, &root).referenced;
        found
            .iter()
            .map(|path| path.display().to_string())
            .collect()
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
}

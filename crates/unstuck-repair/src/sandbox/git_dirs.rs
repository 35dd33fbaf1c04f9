//! Git directories in a project: their locations, the parts a repair may change, and the parts that can start a
//! program.
//!
//! Git executes what `config`, `hooks` and `commondir` of such a directory say, whoever wrote them. So a repair may
//! change only what git itself keeps changing, an allow-list (`data/sandbox.toml`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};
use unstuck_core::watched_files::ToolFileKnowledge;

use super::git_configured_files;
use super::path_lists::SandboxPathLists;
use super::wire::SandboxCommand;

/// The name by which git finds a repository.
pub(super) const GIT_DIR: &str = ".git";
/// The subdirectory of a repository that contains those of its submodules.
pub(super) const MODULES_DIR: &str = "modules";
/// Maximum number of names in a project to scan.
const MAX_NAMES: usize = 3_000_000;
/// Entries that make a directory a git repository, whatever its name.
const REPOSITORY_ENTRIES: [&str; 3] = ["HEAD", "objects", "refs"];
/// The hooks that git-lfs installs.
const LFS_HOOKS: [&str; 4] = ["pre-push", "post-checkout", "post-commit", "post-merge"];
/// The lines of these hooks in the known versions; `{}` is the name of the hook.
const LFS_HOOK_LINES: [&str; 5] = [
    "#!/bin/sh",
    r#"command -v git-lfs >/dev/null 2>&1 || { printf >&2 "\n%s\n\n" "This repository is configured for Git LFS but 'git-lfs' was not found on your path. If you no longer wish to use Git LFS, remove this hook by deleting the '{}' file in the hooks directory (set by 'core.hookspath'; usually '.git/hooks')."; exit 2; }"#,
    r#"command -v git-lfs >/dev/null 2>&1 || { echo >&2 "\nThis repository is configured for Git LFS but 'git-lfs' was not found on your path. If you no longer wish to use Git LFS, remove this hook by deleting the '{}' file in the hooks directory (set by 'core.hookspath'; usually '.git/hooks').\n"; exit 2; }"#,
    r#"command -v git-lfs >/dev/null 2>&1 || { echo >&2 "\nThis repository is configured for Git LFS but 'git-lfs' was not found on your path. If you no longer wish to use Git LFS, remove this hook by deleting .git/hooks/{}.\n"; exit 2; }"#,
    r#"git lfs {} "$@""#,
];
/// The settings that git-lfs writes.
const LFS_SETTINGS: [&str; 6] = [
    "[filter \"lfs\"]",
    "clean = git-lfs clean -- %f",
    "smudge = git-lfs smudge -- %f",
    "process = git-lfs filter-process",
    "required = true",
    "repositoryformatversion = 0",
];

/// The reason to refuse a command in a project with references that cannot be protected.
const UNPROTECTED_REFERENCES: &str = "git's configuration in this project names files that cannot be protected: too many, or \
     with names that are not UTF-8; look for unusual `include`, `hooksPath` and command settings in `.git/config`";

/// A directory or file by which git finds a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GitRepositoryMarker {
    /// Path relative to the root of the project.
    pub path: PathBuf,
    /// Kind of entry.
    pub kind: GitRepositoryMarkerKind,
}

/// The kind of a git directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitRepositoryMarkerKind {
    /// The repository itself: a directory named `.git`, or one with the layout of a repository.
    #[serde(alias = "folder")]
    Directory,
    /// A file or link that points elsewhere.
    Pointer,
}

/// All repositories of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProjectRepositories {
    /// The repositories found.
    pub found: BTreeSet<GitRepositoryMarker>,
    /// If set, the scan stopped at its limit.
    #[serde(alias = "is_cut")]
    pub is_truncated: bool,
    /// Paths in the project that their configuration names, and that git obeys: settings, hooks, attributes, programs.
    #[serde(default)]
    pub referenced: BTreeSet<PathBuf>,
    /// Directories in those that package managers fill again, such as husky's `.husky/_`.
    #[serde(default)]
    pub rebuilt: BTreeSet<PathBuf>,
    /// If set, some of those paths cannot be protected: there are too many, or one is not UTF-8.
    #[serde(default)]
    pub has_unprotected_references: bool,
}

/// The changes of git directories that an approved command is expected and allowed to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AllowedGitDirChanges {
    /// Creates settings and directories of submodules.
    pub submodules: bool,
    /// Creates hooks and filters of git-lfs.
    pub lfs: bool,
    /// Creates a repository for the project.
    pub repository: bool,
    /// Creates a repository in a subdirectory of the project.
    pub nested: bool,
}

/// A kind of change of git directories, as listed in the data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GitDirChangeKind {
    Submodules,
    Lfs,
    Repository,
    Nested,
}

impl ProjectRepositories {
    /// Finds all repositories below a project; no link is followed.
    pub fn find(project: &impl AsFd) -> Self {
        let mut found = Self::default();
        let mut seen = 0;
        let mut waiting: Vec<PathBuf> = vec![PathBuf::new()];
        while let Some(folder) = waiting.pop() {
            let Some(handle) = open_dir_below(project, &folder) else {
                continue;
            };
            let names = list_dir(&handle);
            seen += names.len();
            if seen > MAX_NAMES {
                found.is_truncated = true;
                break;
            }
            if !folder.as_os_str().is_empty() && has_repository_layout(&names) {
                found.add(folder.clone(), GitRepositoryMarkerKind::Directory);
            }
            for (name, kind) in names {
                let path = folder.join(&name);
                let is_git = name.as_bytes().eq_ignore_ascii_case(GIT_DIR.as_bytes());
                match kind {
                    FileType::Directory if is_git => {
                        found.add(path, GitRepositoryMarkerKind::Directory)
                    }
                    FileType::Directory => waiting.push(path),
                    _ if is_git => found.add(path, GitRepositoryMarkerKind::Pointer),
                    _ => {}
                }
            }
        }
        found
    }

    /// Finds all repositories below a project, and what their configuration and that of the user with this home directory
    /// name in it.
    pub fn find_with_references(project: &impl AsFd, root: &Path, home: Option<&Path>) -> Self {
        let mut found = Self::find(project);
        let references = git_configured_files::find_references(project, root, home, &found.found);
        found.referenced = references.paths;
        found.rebuilt = references.rebuilt;
        found.has_unprotected_references = references.is_incomplete;
        found
    }

    /// Returns the reason to refuse a command if not everything that git's configuration names can be protected.
    pub fn refusal(&self) -> Option<&'static str> {
        self.has_unprotected_references
            .then_some(UNPROTECTED_REFERENCES)
    }

    /// Leaves out references in directories of installed packages if a command installs packages: it replaces them.
    #[must_use]
    pub fn without_packages_installed_by(mut self, steps: &SandboxCommand) -> Self {
        let SandboxCommand::Argv(commands) = steps else {
            return self;
        };
        let installs = &SandboxPathLists::built_in().git.installs;
        if commands
            .iter()
            .any(|words| installs.iter().any(|command| begins_with(words, command)))
        {
            let known = ToolFileKnowledge::built_in();
            let is_installed = |name: &OsStr| name.to_str().is_some_and(|n| known.is_installed(n));
            self.referenced
                .retain(|path| !path.iter().any(is_installed));
        }
        self
    }

    fn add(&mut self, path: PathBuf, kind: GitRepositoryMarkerKind) {
        self.found.insert(GitRepositoryMarker { path, kind });
    }
}

impl AllowedGitDirChanges {
    /// Returns the expected effects of a command's steps. A shell line is not parsed and gets none, so nothing it makes
    /// there is kept.
    pub fn from_steps(steps: &SandboxCommand) -> Self {
        let mut all = Self::default();
        let SandboxCommand::Argv(commands) = steps else {
            return all;
        };
        for words in commands {
            for effect in matching_effects(words) {
                for one in &effect.allows {
                    match one {
                        GitDirChangeKind::Submodules => all.submodules = true,
                        GitDirChangeKind::Lfs => all.lfs = true,
                        GitDirChangeKind::Repository => all.repository = true,
                        GitDirChangeKind::Nested => all.nested = true,
                    }
                }
            }
        }
        all
    }
}

/// Describes the expected effects of a command's steps on git directories, for approval.
pub fn describe_git_effects(steps: &SandboxCommand) -> Vec<String> {
    let SandboxCommand::Argv(commands) = steps else {
        return Vec::new();
    };
    let effects = commands.iter().flat_map(|words| matching_effects(words));
    let mut shown: Vec<String> = effects.map(|effect| effect.shown.clone()).collect();
    shown.dedup();
    shown
}

fn matching_effects(
    words: &[String],
) -> impl Iterator<Item = &'static super::path_lists::GitDirChangeRule> {
    let all = SandboxPathLists::built_in().git.effect.iter();
    all.filter(move |effect| {
        let mut commands = effect.commands.iter();
        commands.any(|command| begins_with(words, command))
    })
}

/// True if a command begins with these words.
fn begins_with(words: &[String], command: &str) -> bool {
    let words = without_config_arguments(words);
    let mut words = words.into_iter();
    command.split(' ').all(|word| words.next() == Some(word))
}

/// Returns the words of a command without git's `-c name=value`, which applies to this one call only.
fn without_config_arguments(words: &[String]) -> Vec<&str> {
    let mut rest = words.iter().map(String::as_str).peekable();
    let mut found: Vec<&str> = rest.next().into_iter().collect();
    while found == ["git"] && rest.peek() == Some(&"-c") {
        rest.nth(1);
    }
    found.extend(rest);
    found
}

/// True if git itself keeps changing the entry of this name in a repository.
pub(crate) fn is_writable_git_name(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let known = &SandboxPathLists::built_in().git.writable;
    known.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    })
}

/// True if a directory with these names is a git repository.
pub(crate) fn has_repository_layout(names: &[(std::ffi::OsString, FileType)]) -> bool {
    REPOSITORY_ENTRIES
        .iter()
        .all(|needed| names.iter().any(|(name, _)| name == needed))
}

/// True if settings may replace others: the only differences are known to be harmless.
pub(super) fn settings_are_harmless(
    before: &[u8],
    after: &[u8],
    effects: AllowedGitDirChanges,
) -> bool {
    let (Ok(before), Ok(after)) = (std::str::from_utf8(before), std::str::from_utf8(after)) else {
        return false;
    };
    let is_known = |section: &str| {
        (effects.submodules && section.starts_with("[submodule \""))
            || (effects.lfs && section == "[filter \"lfs\"]")
    };
    let (kept, _) = split_sections(before, is_known);
    let (rest, known) = split_sections(after, is_known);
    // A new repository has no earlier settings; all of them have to be harmless then.
    let rest_is_fine = kept == rest || before.is_empty() && lines_are_harmless(&rest, effects);
    rest_is_fine && lines_are_harmless(&known, effects)
}

/// Splits settings into the selected sections and the rest.
fn split_sections(settings: &str, is_one: impl Fn(&str) -> bool) -> (String, String) {
    let (mut rest, mut found) = (String::new(), String::new());
    let mut is_in = false;
    for line in settings.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            is_in = is_one(trimmed);
        }
        let to = if is_in { &mut found } else { &mut rest };
        to.push_str(line);
        to.push('\n');
    }
    (rest, found)
}

/// True if no line can start a program or redirect git elsewhere.
fn lines_are_harmless(text: &str, effects: AllowedGitDirChanges) -> bool {
    let rule = ToolFileKnowledge::built_in().rule_for(".git/config");
    let odd = rule.relevant_part(text.as_bytes());
    odd.lines().all(|line| {
        let line = line.trim();
        let is_submodules = || {
            matches!(
                line,
                "update = checkout" | "update = rebase" | "update = merge" | "update = none"
            ) || is_relative_worktree(line)
        };
        (effects.lfs && LFS_SETTINGS.contains(&line)) || (effects.submodules && is_submodules())
    })
}

/// True if a line sets the worktree of a submodule to `..` components and plain names only, as git writes it.
fn is_relative_worktree(line: &str) -> bool {
    line.strip_prefix("worktree = ").is_some_and(|path| {
        path.starts_with("../")
            && path
                .chars()
                .all(|c| c.is_alphanumeric() || "/._- ".contains(c))
    })
}

/// True if a hook contains only what git-lfs writes.
pub(super) fn hook_is_harmless(name: &OsStr, text: &[u8], effects: AllowedGitDirChanges) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    if name.ends_with(".sample") {
        return true;
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return false;
    };
    let is_known = |line: &str| {
        line.is_empty()
            || LFS_HOOK_LINES
                .iter()
                .any(|known| known.replace("{}", name) == line)
    };
    effects.lfs && LFS_HOOKS.contains(&name) && text.lines().all(is_known)
}

/// Opens a directory below another one component by component; no link is followed.
pub(super) fn open_dir_below(root: &impl AsFd, path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut handle = openat(root, ".", flags, Mode::empty()).ok()?;
    for part in path.components() {
        handle = openat(&handle, part.as_os_str(), flags, Mode::empty()).ok()?;
    }
    Some(handle)
}

/// Returns the names in a directory with their types.
pub(crate) fn list_dir(folder: &OwnedFd) -> Vec<(std::ffi::OsString, FileType)> {
    let Ok(entries) = Dir::read_from(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => file_type_of(folder, name),
            kind => kind,
        };
        found.push((name.to_owned(), kind));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

fn file_type_of(folder: &OwnedFd, name: &OsStr) -> FileType {
    let stat = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| {
        FileType::from_raw_mode(stat.st_mode)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: AllowedGitDirChanges = AllowedGitDirChanges {
        submodules: true,
        lfs: true,
        repository: true,
        nested: true,
    };

    #[test]
    fn submodule_settings_may_add_urls_but_no_commands() {
        let before = b"[core]\n\tbare = false\n".as_slice();
        let with = |more: &str| [before, more.as_bytes()].concat();
        for fine in [
            "",
            "[submodule \"lib\"]\n\tactive = true\n\turl = https://example.com/lib.git\n",
            "[submodule \"a/b\"]\n\turl = ../b.git\n\tupdate = rebase\n",
        ] {
            assert!(settings_are_harmless(before, &with(fine), ALL), "{fine}");
        }
        for evil in [
            "[submodule \"lib\"]\n\tupdate = !id\n",
            "[submodule \"lib\"] update = !id\n",
            "[submodule \"lib\"]\n\turl = ext::sh -c id\n",
            "[submodule \"lib\"]\n\turl = https://x\\\n\tupdate = !id\n",
            "[core]\n\tfsmonitor = id\n",
            "\tfsmonitor = id\n",
            "[core]\n\thooksPath = x\n",
            "[alias]\n\tst = !id\n",
            "[include]\n\tpath = ../evil\n",
            "[includeIf \"gitdir:.\"]\n\tpath = ../evil\n",
            "[url \"https://evil/\"]\n\tinsteadOf = https://github.com/\n",
            "[filter \"x\"]\n\tclean = id\n",
            "[core]\n\tsshCommand = id\n\tpager = id\n\teditor = id\n",
            "[filter \"lfs\"]\n\tclean = id\n",
            "[remote \"origin\"]\n\turl = https://evil/x.git\n",
            "[diff \"x\"]\n\ttextconv = id\n",
            "[credential]\n\thelper = !id\n",
        ] {
            assert!(!settings_are_harmless(before, &with(evil), ALL), "{evil}");
        }
        let gone = settings_are_harmless(before, b"[core]\n", ALL);
        assert!(!gone, "what was there stays");
        let added = with("[submodule \"lib\"]\n\tactive = true\n");
        let none = AllowedGitDirChanges::default();
        assert!(!settings_are_harmless(before, &added, none), "not declared");
    }

    #[test]
    fn only_exact_git_lfs_hooks_are_harmless() {
        let text = LFS_HOOK_LINES.map(|line| line.replace("{}", "pre-push"));
        let text = [&text[0], &text[1], &text[4]]
            .map(String::as_str)
            .join("\n");
        let name = OsStr::new("pre-push");
        assert!(hook_is_harmless(name, text.as_bytes(), ALL));
        assert!(!hook_is_harmless(
            OsStr::new("pre-commit"),
            text.as_bytes(),
            ALL
        ));
        let more = format!("{text}\nid\n");
        assert!(!hook_is_harmless(name, more.as_bytes(), ALL));
        assert!(!hook_is_harmless(
            name,
            text.as_bytes(),
            AllowedGitDirChanges::default()
        ));
    }

    #[test]
    fn effects_are_matched_by_command_prefix() {
        let words =
            |text: &str| SandboxCommand::Argv(vec![text.split(' ').map(str::to_owned).collect()]);
        let of = |text: &str| AllowedGitDirChanges::from_steps(&words(text));
        assert!(of("git submodule update --init --recursive").submodules);
        assert!(of("git init").repository && !of("git init").submodules);
        assert!(of("git -c protocol.file.allow=always submodule update").submodules);
        assert_eq!(of("git status"), AllowedGitDirChanges::default());
        assert_eq!(of("npm ci"), AllowedGitDirChanges::default());
        assert_eq!(of("gitx init"), AllowedGitDirChanges::default());
        let shell = SandboxCommand::Shell("git submodule update --init; ./x".to_owned());
        assert_eq!(
            AllowedGitDirChanges::from_steps(&shell),
            AllowedGitDirChanges::default()
        );
    }
}

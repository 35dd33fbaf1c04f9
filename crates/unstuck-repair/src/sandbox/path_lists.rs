//! Visible, writable, hidden and protected paths, and rules for git and programs, as data (`data/sandbox.toml`).

use std::collections::{BTreeMap, BTreeSet};
#[cfg(target_os = "linux")]
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::git_dirs::GitDirChangeKind;

/// Parts of a home directory that a variable can relocate.
const RELOCATED_HOME_DIRS: [(&str, &str); 4] = [
    (".config", "XDG_CONFIG_HOME"),
    (".local/share", "XDG_DATA_HOME"),
    (".cache", "XDG_CACHE_HOME"),
    (".cargo", "CARGO_HOME"),
];

/// All lists and rules of `data/sandbox.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SandboxPathLists {
    #[serde(deserialize_with = "tool_caches")]
    cache: Vec<ToolCache>,
    home: HomeLists,
    secrets: SecretLists,
    pub(super) project: ProtectedProjectPaths,
    pub(super) git: GitDirRules,
    pub(super) processes: ProcessProgramRules,
    pub(super) files: FileProgramRules,
}

/// A tool directory and its writable parts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCache {
    home: String,
    variable: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    add: Vec<AddableDir>,
    #[serde(default)]
    private: Vec<String>,
}

/// A part of a tool directory to which files may be added.
#[derive(Debug, Deserialize)]
struct AddableDir {
    path: String,
    #[serde(flatten)]
    adding: OutsideProjectEntryRule,
}

/// A rule for new entries in a directory outside the project; if it is empty, every new entry is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutsideProjectEntryRule {
    /// Number of directories above an added unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
    /// Text that marks an added unit if its name contains it after the first character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl OutsideProjectEntryRule {
    /// True if an entry may be added inside an existing directory, by its name and depth.
    #[cfg(target_os = "linux")]
    pub(super) fn allows_below(&self, name: &OsStr, depth: usize) -> bool {
        let is_piece = self.until.as_ref().is_some_and(|sign| {
            let name = name.to_string_lossy();
            name.chars()
                .skip(1)
                .collect::<String>()
                .contains(sign.as_str())
        });
        !is_piece && self.depth.is_none_or(|most| depth < most)
    }
}

/// The parts of the home directory that a command sees.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HomeLists {
    needed: Vec<String>,
    settings: Vec<String>,
}

/// The caches that a command may write to, existing or not.
#[derive(Debug, Default)]
pub(super) struct WritableCaches {
    /// Writable paths if private parts can be masked by mounts.
    pub(super) coverable: BTreeSet<PathBuf>,
    /// Writable paths without mounts.
    pub(super) narrowed: BTreeSet<PathBuf>,
    /// Private parts of the writable paths, each with the directory that must exist.
    pub(super) private: Vec<(PathBuf, PathBuf)>,
    /// Directories to which files may be added.
    pub(super) addable: BTreeMap<PathBuf, OutsideProjectEntryRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretLists {
    home: Vec<String>,
    system: Vec<String>,
}

/// The protected parts of a project. Without mounts only the first list can be enforced.
#[derive(Debug, Deserialize)]
#[cfg_attr(target_os = "linux", serde(deny_unknown_fields))]
pub(super) struct ProtectedProjectPaths {
    pub(super) protected: Vec<PathBuf>,
    #[cfg(target_os = "linux")]
    pub(super) protected_with_mounts: Vec<PathBuf>,
}

/// The writable parts of git directories, and the further changes that some commands may make.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitDirRules {
    pub(super) writable: Vec<String>,
    /// Commands that replace directories of installed packages.
    pub(super) installs: Vec<String>,
    /// Files that husky generates, as SHA-256.
    pub(super) generated_hooks: Vec<String>,
    pub(super) effect: Vec<GitDirChangeRule>,
}

/// The changes of git directories that some commands are allowed to make.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitDirChangeRule {
    pub(super) allows: Vec<GitDirChangeKind>,
    pub(super) shown: String,
    pub(super) commands: Vec<String>,
}

/// Rules that recognize entries that work on processes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessProgramRules {
    pub(super) signals: BTreeSet<String>,
    /// Programs that may occur next to those.
    pub(super) harmless: BTreeSet<String>,
    pub(super) inspect: Vec<InspectionProgram>,
}

/// A program that inspects processes, with the arguments that make it do nothing else.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InspectionProgram {
    pub(super) program: String,
    /// Letters of short options.
    pub(super) letters: String,
    /// Whole arguments.
    pub(super) words: BTreeSet<String>,
}

/// Rules that recognize entries that work only on files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileProgramRules {
    pub(super) only: BTreeSet<String>,
}

/// Reads the tool directories; one without any writable part would be wholly writable by mistake.
fn tool_caches<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ToolCache>, D::Error> {
    let caches = Vec::<ToolCache>::deserialize(from)?;
    let empty = caches
        .iter()
        .find(|cache| cache.paths.is_empty() && cache.add.is_empty());
    match empty {
        Some(cache) => Err(D::Error::custom(format!(
            "the cache `{}` has neither `paths` nor `add`",
            cache.home
        ))),
        None => Ok(caches),
    }
}

/// Returns the directories below a home directory to which a repair may add files without ever changing existing ones.
pub fn add_only_dirs(home: &Path) -> Vec<PathBuf> {
    let caches = SandboxPathLists::built_in().caches(Some(home), |_| None);
    caches.addable.into_keys().collect()
}

/// Returns the project paths that no repair may create or change, because they decide what runs outside of the sandbox
/// later.
pub fn protected_paths() -> &'static [PathBuf] {
    &SandboxPathLists::built_in().project.protected
}

impl SandboxPathLists {
    pub(super) fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<SandboxPathLists> = LazyLock::new(|| {
            match toml::from_str(include_str!("../../data/sandbox.toml")) {
                Ok(lists) => lists,
                // The embedded file is tested; only a build that skipped its tests can get here.
                Err(error) => unreachable!("sandbox.toml: {error}"),
            }
        });
        &BUILT_IN
    }

    /// Returns the caches that a command may write to, for this home and its relocation variables.
    pub(super) fn caches(
        &self,
        home: Option<&Path>,
        variable: impl Fn(&str) -> Option<PathBuf>,
    ) -> WritableCaches {
        let folder = |cache: &ToolCache| {
            let named = cache.variable.as_deref().and_then(&variable);
            let named = named.filter(|path| path.is_absolute());
            named.or_else(|| Some(home?.join(&cache.home)))
        };
        let mut caches = WritableCaches::default();
        for cache in &self.cache {
            let Some(folder) = folder(cache) else {
                continue;
            };
            let parts: Vec<_> = cache.paths.iter().map(|path| folder.join(path)).collect();
            for addition in &cache.add {
                let path = if addition.path.is_empty() {
                    folder.clone()
                } else {
                    folder.join(&addition.path)
                };
                let adding = caches.addable.entry(path);
                adding.or_insert_with(|| addition.adding.clone());
            }
            caches.narrowed.extend(parts.iter().cloned());
            match cache.private.as_slice() {
                [] => caches.coverable.extend(parts),
                _ => drop(caches.coverable.insert(folder.clone())),
            }
            let private = cache.private.iter();
            let private = private.map(|path| (folder.clone(), folder.join(path)));
            caches.private.extend(private);
        }
        caches
    }

    /// Returns the parts of a home directory that a command needs, relative to it: programs and their dependencies.
    pub(super) fn needed(&self) -> impl Iterator<Item = &String> {
        self.home.needed.iter()
    }

    /// Returns the tool settings in a home directory, which a command sees unless they contain a secret.
    pub(super) fn settings(&self) -> impl Iterator<Item = &String> {
        self.home.settings.iter()
    }

    /// Returns the paths that a command must not see, existing or not: below every possible home directory, and where
    /// variables relocate them.
    pub(super) fn secrets(
        &self,
        homes: &[PathBuf],
        variable: impl Fn(&str) -> Option<PathBuf>,
    ) -> Vec<PathBuf> {
        let moved: Vec<_> = RELOCATED_HOME_DIRS
            .into_iter()
            .filter_map(|(part, name)| Some((part, variable(name)?)))
            .collect();
        let usual = homes.iter().flat_map(|home| {
            let paths = self.secrets.home.iter();
            paths.map(move |path| home.join(path))
        });
        let elsewhere = moved.iter().flat_map(|(part, folder)| {
            let paths = self.secrets.home.iter();
            paths
                .filter_map(move |path| Some(folder.join(Path::new(path).strip_prefix(part).ok()?)))
        });
        let of_system = self.secrets.system.iter().map(PathBuf::from);
        let all: BTreeSet<_> = usual.chain(elsewhere).chain(of_system).collect();
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relocated_cache_is_writable_but_its_programs_are_not() {
        let moved = |name: &str| (name == "CARGO_HOME").then(|| PathBuf::from("/srv/cargo"));
        let caches = SandboxPathLists::built_in().caches(Some(Path::new("/home/me")), moved);
        assert!(
            caches
                .coverable
                .contains(Path::new("/srv/cargo/registry/cache"))
        );
        assert!(
            caches
                .addable
                .contains_key(Path::new("/srv/cargo/registry/src"))
        );
        assert!(
            caches
                .narrowed
                .contains(Path::new("/home/me/.npm/_cacache"))
        );
        assert!(!caches.coverable.iter().any(|path| path.ends_with("bin")));
        assert!(!caches.coverable.contains(Path::new("/srv/cargo")));
    }

    /// Only downloads that the tool verifies, and metadata about them, are freely writable.
    #[test]
    fn only_known_download_caches_are_freely_writable() {
        let caches = SandboxPathLists::built_in().caches(Some(Path::new("/home/me")), |_| None);
        let known = [
            ".bundle/cache/compact_index",
            ".cache/composer/repo",
            ".cache/pip/http",
            ".cache/pip/http-v2",
            ".cache/pip/selfcheck",
            ".cargo/.global-cache",
            ".cargo/.package-cache",
            ".cargo/.package-cache-mutate",
            ".cargo/registry/cache",
            ".hex/cache.ets",
            ".npm/_cacache",
            ".npm/_logs",
            ".npm/_update-notifier-last-checked",
            ".pub-cache/hosted-hashes",
            ".yarn/berry/index",
            ".yarn/berry/metadata",
            "go/pkg/mod/cache/download",
            "go/pkg/mod/cache/lock",
            "go/pkg/sumdb",
        ];
        let known: BTreeSet<_> = known
            .iter()
            .map(|path| Path::new("/home/me").join(path))
            .collect();
        assert_eq!(caches.narrowed, known);
        // With private parts, the directory as a whole.
        let whole: Vec<_> = caches.coverable.difference(&known).collect();
        assert_eq!(whole, [Path::new("/home/me/.npm")]);
    }

    #[test]
    fn a_cache_without_writable_parts_is_an_error() {
        let text = include_str!("../../data/sandbox.toml");
        let more = format!("[[cache]]\nhome = \".new\"\n{text}");
        let error = toml::from_str::<SandboxPathLists>(&more).unwrap_err();
        let told = error.to_string();
        assert!(
            told.contains("`.new` has neither `paths` nor `add`"),
            "{told}"
        );
    }

    /// Directories that tools execute later are never freely writable, nor inside one that is.
    #[test]
    fn directories_executed_later_are_only_addable() {
        let caches = SandboxPathLists::built_in().caches(Some(Path::new("/home/me")), |_| None);
        for program in [
            ".gradle/wrapper/dists/gradle-8/x/bin",
            ".m2/wrapper/dists/x",
            ".m2/repository/org/x/1/x.jar",
            ".cache/pypoetry/virtualenvs/x/bin",
            ".local/share/virtualenvs/x/bin",
            ".conda/envs/x/bin",
            ".cache/pre-commit/repo1",
            ".cache/prisma/x",
            ".cache/ms-playwright/chromium-1",
            ".cache/Cypress/1/Cypress",
            ".cache/puppeteer/chrome/x",
            "go/pkg/mod/golang.org/toolchain@v1/bin",
            ".cargo/registry/src/index/x/src",
            ".local/share/pnpm/store/v3/files/00/x",
            ".cache/uv/archive-v0/x",
            ".local/share/uv/tools/x",
            ".npm/_npx/x",
            ".npm/_prebuilds/x",
            ".bundle/cache/extensions/x86_64-linux/3.3.0/rubygems/x",
            ".cache/composer/vcs/x/config",
            ".cargo/registry/index/x/.git/config",
            ".cache/pnpm/dlx/x",
            ".local/share/NuGet/x",
            ".local/state/pnpm/x",
        ]
        .into_iter()
        .map(|path| Path::new("/home/me").join(path))
        .chain(caches.addable.keys().map(|path| path.join("x")))
        {
            let is_private = caches
                .private
                .iter()
                .any(|(_, one)| program.starts_with(one));
            let open = caches
                .coverable
                .iter()
                .find(|open| program.starts_with(open));
            assert!(is_private || open.is_none(), "{}", program.display());
            let narrow = caches
                .narrowed
                .iter()
                .find(|open| program.starts_with(open));
            assert_eq!(narrow, None, "{}", program.display());
        }
    }

    #[test]
    fn a_relative_cache_variable_is_ignored() {
        let relative = |name: &str| (name == "PIP_CACHE_DIR").then(|| PathBuf::from("cache"));
        let caches = SandboxPathLists::built_in().caches(Some(Path::new("/home/me")), relative);
        assert!(
            caches
                .coverable
                .contains(Path::new("/home/me/.cache/pip/http"))
        );
        assert!(caches.coverable.iter().all(|path| path.is_absolute()));
    }

    #[test]
    fn relocated_secrets_are_hidden() {
        let moved = |name: &str| (name == "XDG_CONFIG_HOME").then(|| PathBuf::from("/srv/config"));
        let secrets =
            SandboxPathLists::built_in().secrets(&["/home/me".into(), "/root".into()], moved);
        for path in [
            "/srv/config/gh",
            "/home/me/.config/gh",
            "/root/.ssh",
            "/etc/shadow",
        ] {
            assert!(secrets.contains(&PathBuf::from(path)), "{path}");
        }
        assert!(!secrets.contains(&PathBuf::from("/srv/config")));
    }

    #[test]
    fn no_cache_is_inside_a_secret_directory() {
        let home = Path::new("/home/me");
        let secrets = SandboxPathLists::built_in().secrets(&[home.to_owned()], |_| None);
        for cache in SandboxPathLists::built_in()
            .caches(Some(home), |_| None)
            .coverable
        {
            let around = secrets.iter().find(|secret| cache.starts_with(secret));
            assert_eq!(around, None, "{} could not be written to", cache.display());
        }
    }
}

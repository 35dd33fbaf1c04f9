//! How far a repair is confined: what the owner asked for, as values.

#[cfg(target_os = "linux")]
use std::path::Component;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What the owner asks of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Without the whole of it nothing runs.
    #[default]
    Required,
    /// As much of it as this machine can do; what is missing is told.
    BestEffort,
    /// None.
    Off,
}

/// Whether the command may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkAccess {
    /// Like any other program.
    #[default]
    On,
    /// Not at all.
    Off,
}

/// Which processes the command may see and signal; [`process_scope`](super::process_scope) reads it from an owner's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessScope {
    /// Its own.
    #[default]
    Own,
    /// Those of the machine, for entries such as `kill "$(cat server.pid)"`.
    Signals,
    /// Those of the machine and what they have open, for entries such as `fuser -k 3000/tcp`. The kernel allows that
    /// only outside of a user namespace and of Landlock, so an ordinary user is hardly confined then.
    #[serde(rename = "looks")]
    Inspect,
}

/// Over whose files the command has power; [`file_scope`](super::file_scope) reads it from an owner's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileScope {
    /// Those of its own user.
    #[default]
    Own,
    /// Everybody's, if unstuck is root, for entries such as `chown -R build .cache`.
    #[serde(rename = "anyones")]
    AnyOwner,
}

/// An overlay that lies over the project, so that nothing of it is really changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayDirs {
    /// What shows through: the project.
    pub lower: PathBuf,
    /// Where changes go; an empty folder of ours.
    pub upper: PathBuf,
    /// An empty folder of ours on the file system of `upper`, for the kernel.
    pub work: PathBuf,
}

/// What one command may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// How many processes and threads it may have at once; 4096 by default.
    pub processes: u64,
    /// How many files each process may have open; 65 536 by default.
    pub open_files: u64,
    /// How large one file may become, in bytes; 16 GiB by default.
    pub file_size: u64,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            processes: 4096,
            open_files: 65_536,
            file_size: 16 << 30,
        }
    }
}

/// How far a command is confined.
///
/// ```
/// use unstuck_repair::sandbox::{SandboxMode, SandboxProfile};
///
/// let profile = SandboxProfile::strict("/home/me/project");
/// assert_eq!(profile.demand, SandboxMode::Required);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxProfile {
    /// What the owner asks for.
    #[serde(rename = "demand")]
    pub mode: SandboxMode,
    /// Whether it may use the network.
    pub network: NetworkAccess,
    /// Which processes it may see and signal.
    #[serde(rename = "reach")]
    pub process_scope: ProcessScope,
    /// Over whose files it has power.
    #[serde(rename = "rights")]
    pub file_scope: FileScope,
    /// The project, without symlinks in its path. Never the folder that a proposal names.
    pub root: PathBuf,
    /// What it may write to. Where one of them is inside the project, only these are writable in it; those outside are
    /// writable in addition. Relative ones are of the project.
    pub writable: Vec<PathBuf>,
    /// Folders and files of unstuck's own, which it neither sees nor changes.
    #[serde(rename = "own")]
    pub hidden_paths: Vec<PathBuf>,
    /// An overlay over the project.
    pub overlay: Option<OverlayDirs>,
    /// What it may use up.
    #[serde(rename = "bounds")]
    pub limits: ResourceLimits,
}

impl SandboxProfile {
    /// The strictest profile for a project that still lets it be repaired: the whole sandbox, with network.
    pub fn strict(root: impl Into<PathBuf>) -> Self {
        Self {
            mode: SandboxMode::default(),
            network: NetworkAccess::default(),
            process_scope: ProcessScope::default(),
            file_scope: FileScope::default(),
            root: root.into(),
            writable: Vec::new(),
            hidden_paths: Vec::new(),
            overlay: None,
            limits: ResourceLimits::default(),
        }
    }
}

#[cfg(target_os = "linux")]
impl SandboxProfile {
    /// The parts of the project to which writing is restricted; none means all of it is writable.
    pub(super) fn writable_in_project(&self) -> impl Iterator<Item = PathBuf> {
        self.writable_paths()
            .filter(|path| path.starts_with(&self.root) && *path != self.root)
    }

    /// What the owner lets be written to beside the project.
    pub(super) fn writable_outside(&self) -> impl Iterator<Item = PathBuf> {
        self.writable_paths()
            .filter(|path| !path.starts_with(&self.root))
    }

    /// Relative ones are of the project; one that climbs out of it by `..` counts for nothing.
    fn writable_paths(&self) -> impl Iterator<Item = PathBuf> {
        let climbs = |path: &&PathBuf| path.components().any(|part| part == Component::ParentDir);
        let paths = self.writable.iter().filter(move |path| !climbs(path));
        paths.map(|path| self.root.join(path))
    }
}

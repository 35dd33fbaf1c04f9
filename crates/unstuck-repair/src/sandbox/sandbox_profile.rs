//! The confinement that the owner requests for a repair.

#[cfg(target_os = "linux")]
use std::path::Component;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The owner's sandbox mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Full confinement is required; otherwise nothing runs.
    #[default]
    Required,
    /// As much confinement as this machine supports; missing parts are reported.
    BestEffort,
    /// No sandbox.
    Off,
}

/// Network access of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkAccess {
    /// Unrestricted, like any other program.
    #[default]
    On,
    /// No access.
    Off,
}

/// The processes that the command may see and signal; [`process_scope`](super::process_scope) reads it from an owner's
/// entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessAccess {
    /// Its own processes.
    #[default]
    Own,
    /// The machine's processes, for entries such as `kill "$(cat server.pid)"`.
    Signals,
    /// The machine's processes and their open files, for entries such as `fuser -k 3000/tcp`. The kernel allows that
    /// only outside of a user namespace and of Landlock, so an ordinary user is barely confined then.
    #[serde(alias = "looks")]
    Inspect,
}

/// The files over which the command has power; [`file_scope`](super::file_scope) reads it from an owner's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOwnerScope {
    /// Files of its own user.
    #[default]
    Own,
    /// Files of every user, if unstuck is root, for entries such as `chown -R build .cache`.
    #[serde(alias = "anyones")]
    AnyOwner,
}

/// An overlay over the project, so that the project itself is not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxOverlayDirs {
    /// Lower directory: the project.
    pub lower: PathBuf,
    /// Upper directory, which receives the changes; empty and owned by unstuck.
    pub upper: PathBuf,
    /// Work directory for the kernel; empty, on the file system of `upper`.
    pub work: PathBuf,
}

/// The resource limits of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Maximum number of processes and threads; 4096 by default.
    pub processes: u64,
    /// Maximum number of open files per process; 65 536 by default.
    pub open_files: u64,
    /// Maximum size of one file in bytes; 16 GiB by default.
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

/// The confinement profile of a command.
///
/// ```
/// use unstuck_repair::sandbox::{SandboxMode, SandboxProfile};
///
/// let profile = SandboxProfile::strict("/home/me/project");
/// assert_eq!(profile.mode, SandboxMode::Required);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxProfile {
    /// Sandbox mode.
    #[serde(alias = "demand")]
    pub mode: SandboxMode,
    /// Network access.
    pub network: NetworkAccess,
    /// Visible processes.
    #[serde(alias = "reach")]
    pub process_scope: ProcessAccess,
    /// Files under the command's power.
    #[serde(alias = "rights")]
    pub file_scope: FileOwnerScope,
    /// The project, without symlinks in its path. Never the directory that a proposal names.
    pub root: PathBuf,
    /// Writable paths. If one of them is inside the project, only these are writable in it; those outside are writable
    /// in addition. Relative paths are below the project.
    pub writable: Vec<PathBuf>,
    /// Directories and files of unstuck itself, which the command neither sees nor changes.
    #[serde(alias = "own")]
    pub hidden_paths: Vec<PathBuf>,
    /// An overlay over the project.
    pub overlay: Option<SandboxOverlayDirs>,
    /// Resource limits.
    #[serde(alias = "bounds")]
    pub limits: ResourceLimits,
}

impl SandboxProfile {
    /// Returns the strictest profile under which a project can still be repaired: full confinement, with network.
    pub fn strict(root: impl Into<PathBuf>) -> Self {
        Self {
            mode: SandboxMode::default(),
            network: NetworkAccess::default(),
            process_scope: ProcessAccess::default(),
            file_scope: FileOwnerScope::default(),
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
    /// Returns the parts of the project to which writes are restricted; if there are none, all of it is writable.
    pub(super) fn writable_in_project(&self) -> impl Iterator<Item = PathBuf> {
        self.writable_paths()
            .filter(|path| path.starts_with(&self.root) && *path != self.root)
    }

    /// Returns the writable paths outside the project.
    pub(super) fn writable_outside(&self) -> impl Iterator<Item = PathBuf> {
        self.writable_paths()
            .filter(|path| !path.starts_with(&self.root))
    }

    /// Returns all writable paths. Relative ones are below the project; one that leaves it by `..` is ignored.
    fn writable_paths(&self) -> impl Iterator<Item = PathBuf> {
        let climbs = |path: &&PathBuf| path.components().any(|part| part == Component::ParentDir);
        let paths = self.writable.iter().filter(move |path| !climbs(path));
        paths.map(|path| self.root.join(path))
    }
}

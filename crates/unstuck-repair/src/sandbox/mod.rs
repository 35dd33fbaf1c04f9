//! Confines approved commands: an approved `npm install` still runs whatever the project's files say.
//!
//! A sandbox consists of two processes of unstuck itself. The outer one enters new namespaces and cleans up at the end;
//! the inner one (init) sets up the file system view, drops all privileges, and runs the command. Both report over a
//! socket, so that a failed setup is never mistaken for a failed command. `docs/design/sandbox.md` describes what each
//! layer stops and what is not covered.

mod config_injection;
mod confinement_report;
mod discarded_writes;
mod git_config_parser;
mod git_configured_files;
pub(crate) mod git_dirs;
mod host_paths;
mod init_process;
mod outer_process;
mod parent_socket;
mod path_lists;
mod pre_start_file_check;
mod process_visibility;
mod program_lookup;
mod sandbox_profile;
mod scratch_dir;
mod setup_failure;
mod signals;
mod step_runner;
pub mod wire;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
use unsupported as system;

use std::ffi::OsString;

pub use config_injection::ProtectedFilesRecord;
pub use confinement_report::{ConfinementLevel, ConfinementReport};
pub use git_dirs::{AllowedGitDirChanges, ProjectRepositories, describe_git_effects};
pub use host_paths::{host_paths, run_as_user};
pub use parent_socket::own_program;
pub use path_lists::{add_only_dirs, protected_paths};
pub use process_visibility::{file_scope, process_scope};
pub use sandbox_profile::{
    FileOwnerScope, NetworkAccess, ProcessAccess, ResourceLimits, SandboxMode, SandboxOverlayDirs,
    SandboxProfile,
};
pub use scratch_dir::ScratchDir;

/// The argument that starts the outer process of a sandbox.
pub const SANDBOX_ARG: &str = "__sandbox";
/// The argument that starts the init process of a sandbox.
const INIT_ARG: &str = "__sandbox-init";
/// The exit code of a sandbox that could not be set up; the cause is sent over the socket.
const EXIT_SETUP_FAILED: i32 = 125;

/// Runs a sandbox process if the arguments ask for one, and returns its exit code.
pub fn run_if_called(arguments: &[OsString]) -> Option<u8> {
    let mode = arguments.get(1)?;
    let code = if mode == SANDBOX_ARG {
        outer_process::main()
    } else if mode == INIT_ARG {
        init_process::main(&arguments[2..])
    } else {
        return None;
    };
    Some(u8::try_from(code).unwrap_or(1))
}

//! Confines what a person allowed: an approved `npm install` still runs whatever the project's files say.
//!
//! A sandbox is two processes of unstuck itself. The outer one leaves the namespaces of the machine and clears up at the
//! end; the inner one arranges what can be seen, gives up every privilege, and runs the command. Both tell over a link
//! what happened, so that a sandbox that could not be set up is never taken for a command that failed.
//! `docs/design/sandbox.md` tells what each layer stops and what is not closed.

mod checked;
mod discarded;
mod effective;
mod failure;
pub(crate) mod git;
mod inner;
mod link;
mod lists;
mod outer;
mod planted;
mod profile;
mod programs;
mod reach;
mod runner;
mod scratch;
mod surroundings;
mod wakes;
pub mod wire;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;

use std::ffi::OsString;

pub use effective::{Confinement, Effective};
pub use git::{GitEffects, GitFolders, git_effects_shown};
pub use link::own_program;
pub use lists::guarded;
pub use planted::Before;
pub use profile::{Bounds, Demand, Network, Overlay, Profile, Reach, Rights};
pub use reach::{reach, rights};
pub use scratch::Scratch;
pub use surroundings::{surroundings, user_of};

/// The argument that makes the program the outer process of a sandbox.
pub const SANDBOX: &str = "__sandbox";
/// The argument that makes the program the inner one.
const INIT: &str = "__sandbox-init";
/// The exit code of a sandbox that could not be set up; the link tells why.
const SET_UP_FAILED: i32 = 125;

/// Does the work of a process of a sandbox if the program was started as one, and returns its exit code.
pub fn called(arguments: &[OsString]) -> Option<u8> {
    let mode = arguments.get(1)?;
    let code = if mode == SANDBOX {
        outer::main()
    } else if mode == INIT {
        inner::main(&arguments[2..])
    } else {
        return None;
    };
    Some(u8::try_from(code).unwrap_or(1))
}

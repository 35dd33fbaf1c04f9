//! Landlock: writing only where it is granted, signals and abstract sockets only among our own.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use crate::sandbox::profile::{Network, Reach};

/// What is asked for; older kernels give less of it, which is told.
const WANTED: ABI = ABI::V6;

/// Restricts this process and all that it starts; whether the kernel could, at least to the writing of files.
pub(super) fn restrict(writable: &[PathBuf], reach: Reach, network: Network) -> io::Result<bool> {
    let rules = ruleset(reach, network).map_err(io::Error::other)?;
    let rules = writable.iter().try_fold(rules, grant);
    let status = rules.and_then(|rules| rules.restrict_self().map_err(io::Error::other))?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn ruleset(reach: Reach, network: Network) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(WANTED))?
        .scope(Scope::AbstractUnixSocket)?;
    if reach == Reach::Own {
        rules = rules.scope(Scope::Signal)?;
    }
    if network == Network::Off {
        rules = rules.handle_access(AccessNet::from_all(WANTED))?;
    }
    rules.create()
}

fn grant(rules: RulesetCreated, path: &PathBuf) -> io::Result<RulesetCreated> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        // Nothing can be written to what is not there.
        Err(_) => return Ok(rules),
    };
    let rights = match metadata.is_dir() {
        true => AccessFs::from_write(WANTED) & !devices(),
        false => AccessFs::from_write(WANTED) & AccessFs::from_file(WANTED),
    };
    let handle = PathFd::new(path).map_err(io::Error::other)?;
    let rule = PathBeneath::new(handle, rights);
    rules.add_rule(rule).map_err(io::Error::other)
}

/// No repair makes a disk.
fn devices() -> BitFlags<AccessFs> {
    AccessFs::MakeChar | AccessFs::MakeBlock
}

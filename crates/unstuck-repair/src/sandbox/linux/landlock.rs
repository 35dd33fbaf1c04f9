//! Landlock: writes only where granted, signals and abstract sockets only within the sandbox.

use std::io;
use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use rustix::fs::FileType;

use crate::sandbox::sandbox_profile::{NetworkAccess, ProcessAccess};

/// The requested ABI; older kernels support less of it, which is reported.
const REQUESTED_ABI: ABI = ABI::V6;

/// Restricts this process and its descendants; returns true if the kernel enforces at least the file write rules.
pub(super) fn restrict(
    writable: &[OwnedFd],
    reach: ProcessAccess,
    network: NetworkAccess,
) -> io::Result<bool> {
    let rules = ruleset(reach, network).map_err(io::Error::other)?;
    let rules = writable.iter().try_fold(rules, allow_writing);
    let status = rules.and_then(|rules| rules.restrict_self().map_err(io::Error::other))?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn ruleset(
    reach: ProcessAccess,
    network: NetworkAccess,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(REQUESTED_ABI))?
        .scope(Scope::AbstractUnixSocket)?;
    if reach == ProcessAccess::Own {
        rules = rules.scope(Scope::Signal)?;
    }
    if network == NetworkAccess::Off {
        rules = rules.handle_access(AccessNet::from_all(REQUESTED_ABI))?;
    }
    rules.create()
}

fn allow_writing(rules: RulesetCreated, handle: &OwnedFd) -> io::Result<RulesetCreated> {
    let mode = rustix::fs::fstat(handle)?.st_mode;
    let rights = match FileType::from_raw_mode(mode) {
        FileType::Directory => AccessFs::from_write(REQUESTED_ABI) & !device_access(),
        _ => AccessFs::from_write(REQUESTED_ABI) & AccessFs::from_file(REQUESTED_ABI),
    };
    let rule = PathBeneath::new(handle, rights);
    rules.add_rule(rule).map_err(io::Error::other)
}

/// Returns the device access rights: no repair creates block devices.
fn device_access() -> BitFlags<AccessFs> {
    AccessFs::MakeChar | AccessFs::MakeBlock
}

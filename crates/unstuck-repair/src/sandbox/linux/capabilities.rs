//! Passes the privileges of our own namespace to the init process, which drops them irrevocably.

use std::io;

use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use crate::sandbox::sandbox_profile::{FileOwnerScope, ProcessAccess, SandboxProfile};

/// Keeps our capabilities across exec, although the user is not root.
pub(super) fn keep_for_next_program() -> io::Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable = sets.permitted;
    rustix::thread::set_capabilities(None, sets)?;
    for one in all_capabilities().filter(|one| sets.permitted.contains(*one)) {
        rustix::thread::configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

/// Drops all capabilities except those the profile needs, and lets no program regain any.
pub(super) fn drop_capabilities(profile: &SandboxProfile) -> io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let for_processes = match profile.process_scope {
        // Root inspects and kills its processes with these alone.
        ProcessAccess::Inspect => CapabilitySet::KILL | CapabilitySet::SYS_PTRACE,
        ProcessAccess::Own | ProcessAccess::Signals => CapabilitySet::empty(),
    };
    let is_root = rustix::process::getuid().is_root();
    let for_files = match profile.file_scope {
        FileOwnerScope::AnyOwner if is_root => {
            CapabilitySet::CHOWN | CapabilitySet::FOWNER | CapabilitySet::DAC_OVERRIDE
        }
        FileOwnerScope::AnyOwner | FileOwnerScope::Own => CapabilitySet::empty(),
    };
    let kept = for_processes | for_files;
    let own = rustix::thread::capabilities(None)?;
    let kept = kept & own.permitted;
    if own.effective.contains(CapabilitySet::SETPCAP) {
        limit_bounding_set(kept)?;
    }
    rustix::thread::clear_ambient_capability_set()?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Removes capabilities from the bounding set, so that no program regains them even as root.
fn limit_bounding_set(kept: CapabilitySet) -> io::Result<()> {
    for one in all_capabilities() {
        // The kernel knows fewer capabilities than there are bits.
        let Ok(true) = rustix::thread::capability_is_in_bounding_set(one) else {
            continue;
        };
        if !kept.contains(one) {
            rustix::thread::remove_capability_from_bounding_set(one)?;
        }
    }
    if kept.is_empty() {
        let bits = CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED;
        rustix::thread::set_capabilities_secure_bits(bits)?;
    }
    Ok(())
}

/// Returns every possible capability.
fn all_capabilities() -> impl Iterator<Item = CapabilitySet> {
    (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number))
}

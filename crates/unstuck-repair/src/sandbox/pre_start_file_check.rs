//! Checks right before the start that the files that decide what a command does are unchanged.

use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use unstuck_core::command_policy::sanitize;

use super::config_injection::read_file_below;
use super::wire::SandboxRequest;

/// Checks all files without a private copy; returns the reason to refuse if one has changed.
pub(super) fn verify_unchanged(
    order: &SandboxRequest,
    is_without_mounts: bool,
) -> Result<(), String> {
    // An overlay takes all writes of a preview, and nothing was approved.
    if order.profile.overlay.is_some() {
        return Ok(());
    }
    for file in &order.watched_files {
        if file.copy.is_some() && !is_without_mounts {
            continue;
        }
        if hash_file(&order.profile.root, &file.path).ok().as_deref() != Some(&file.sha256) {
            let path = sanitize(&file.path.to_string_lossy());
            return Err(format!("{path} changed after it was checked"));
        }
    }
    Ok(())
}

fn hash_file(root: &Path, path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, flags, Mode::empty())?;
    let bytes = read_file_below(&root, path, u64::MAX)?;
    let digest = Sha256::digest(&bytes);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

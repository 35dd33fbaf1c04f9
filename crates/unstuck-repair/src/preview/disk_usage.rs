//! Disk usage of a command so far.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::limits::PreviewLimits;

/// True if a directory exceeds the limits. Unreadable entries are ignored.
pub(super) fn exceeds_limits(folder: &Path, bounds: PreviewLimits) -> bool {
    let (mut bytes, mut entries) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Links are not followed: this is the metadata of the link itself.
            let Ok(data) = entry.metadata() else { continue };
            entries += 1;
            bytes += data.blocks() * 512;
            if bytes > bounds.bytes || entries > bounds.entries {
                return true;
            }
            if data.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}

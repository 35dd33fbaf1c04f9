//! Disk usage of a command so far.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use unstuck_files::{DirHandle, FileError, FileErrorKind};

use super::limits::PreviewLimits;

/// True if a directory exceeds the limits. Unreadable entries are ignored.
///
/// The command is still running and can exchange everything in it at any moment, so no link is followed.
pub(super) fn exceeds_limits(folder: &Path, bounds: PreviewLimits) -> bool {
    let Ok(top) = DirHandle::open(folder) else {
        return false;
    };
    let mut usage = DiskUsage::default();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        match usage.add_dir(&top, &folder, bounds, &mut folders) {
            // Nothing may hide in directories that are nested too deeply to be opened.
            Err(error) if is_too_deep(&error) => return true,
            // A directory that has disappeared or was replaced with a link uses nothing.
            Ok(()) | Err(_) => {}
        }
        if usage.exceeds(bounds) {
            return true;
        }
    }
    false
}

fn is_too_deep(error: &FileError) -> bool {
    matches!(&error.problem, FileErrorKind::System(error) if error.kind() == io::ErrorKind::InvalidFilename)
}

/// The sizes so far.
#[derive(Debug, Default)]
struct DiskUsage {
    bytes: u64,
    entries: u64,
}

impl DiskUsage {
    /// Adds the entries of a directory; stops when they exceed the limits.
    fn add_dir(
        &mut self,
        top: &DirHandle,
        path: &Path,
        bounds: PreviewLimits,
        folders: &mut Vec<PathBuf>,
    ) -> Result<(), FileError> {
        let folder = top.open_dir(path)?;
        let left = bounds.entries.saturating_sub(self.entries);
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        for entry in folder.first_entries(Path::new(""), most.saturating_add(1))? {
            let Ok(data) = folder.metadata(Path::new(&entry.name)) else {
                continue;
            };
            self.entries += 1;
            self.bytes += u64::try_from(data.st_blocks).unwrap_or_default() * 512;
            if self.exceeds(bounds) {
                break;
            }
            if FileType::from_raw_mode(data.st_mode).is_dir() {
                folders.push(path.join(&entry.name));
            }
        }
        Ok(())
    }

    fn exceeds(&self, bounds: PreviewLimits) -> bool {
        self.bytes > bounds.bytes || self.entries > bounds.entries
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    const FEW: PreviewLimits = PreviewLimits {
        bytes: 1 << 20,
        entries: 4,
    };

    #[test]
    fn entries_and_bytes_are_counted_without_following_links() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        fs::create_dir(&outside).unwrap();
        for number in 0..10 {
            fs::write(outside.join(number.to_string()), "x").unwrap();
        }
        let upper = place.path().join("upper");
        fs::create_dir_all(upper.join("a/b")).unwrap();
        symlink(&outside, upper.join("a/link")).unwrap();
        assert!(!exceeds_limits(&upper, FEW));
        fs::write(upper.join("a/b/large"), vec![1; 2 << 20]).unwrap();
        assert!(exceeds_limits(&upper, FEW));
        fs::write(upper.join("a/b/large"), "").unwrap();
        assert!(!exceeds_limits(&upper, FEW));
        fs::write(upper.join("fifth"), "").unwrap();
        assert!(exceeds_limits(&upper, FEW));
    }

    /// The command swaps a directory for a link after it was listed.
    #[test]
    fn a_directory_replaced_with_a_link_is_not_entered() {
        let place = tempfile::tempdir().unwrap();
        let [outside, upper] = ["outside", "upper"].map(|name| place.path().join(name));
        fs::create_dir_all(outside.join("inner")).unwrap();
        fs::create_dir(&upper).unwrap();
        symlink(&outside, upper.join("swapped")).unwrap();
        let top = DirHandle::open(&upper).unwrap();
        let (mut usage, mut folders) = (DiskUsage::default(), Vec::new());
        let added = usage.add_dir(&top, Path::new("swapped"), FEW, &mut folders);
        assert!(added.is_err() && usage.entries == 0 && folders.is_empty());
    }

    #[test]
    fn directories_that_are_too_deep_to_open_exceed_the_limits() {
        let place = tempfile::tempdir().unwrap();
        let mut at = DirHandle::open(place.path()).unwrap();
        let name = "d".repeat(250);
        for _ in 0..20 {
            at = at.create_dirs(Path::new(&name)).unwrap();
        }
        let many = PreviewLimits::default();
        assert!(exceeds_limits(place.path(), many));
    }
}

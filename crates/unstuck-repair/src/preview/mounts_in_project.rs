//! Finds file systems mounted inside a project: an overlay would show the directories below the mounts instead.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Returns a mount point below a directory, from the kernel's mount list.
pub(super) fn mount_below(folder: &Path, list: &[u8]) -> Option<PathBuf> {
    let mut points = list.split(|byte| *byte == b'\n').filter_map(mount_point);
    points.find(|point| point != folder && point.starts_with(folder))
}

/// Returns the mount point in a line of `/proc/self/mountinfo`.
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let written = line.split(|byte| *byte == b' ').nth(4)?;
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((first, after)) = rest.split_first() {
        let code = after.first_chunk::<3>().filter(|_| *first == b'\\');
        match code.and_then(parse_octal) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

fn parse_octal(digits: &[u8; 3]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(text, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_below_a_directory_are_found_whatever_their_name() {
        let list = b"22 1 254:0 / / rw - ext4 /dev/vda rw\n\
            30 22 0:5 / /shop rw - ext4 /dev/vdb rw\n\
            31 30 0:6 / /shop/my\\040modules rw - tmpfs tmpfs rw\n";
        let found = |folder: &str| mount_below(Path::new(folder), list);
        assert_eq!(found("/shop"), Some("/shop/my modules".into()));
        assert_eq!(found("/shop/my modules"), None);
        assert_eq!(found("/sho"), None);
    }
}

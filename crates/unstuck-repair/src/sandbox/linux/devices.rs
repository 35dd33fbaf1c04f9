//! A minimal `/dev`: the few devices that programs need, and no disk, terminal or console of the machine.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::detached_mount::{MountTree, open_path};

const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Returns the devices that a command may write to.
pub(super) fn writable_devices() -> impl Iterator<Item = PathBuf> {
    let names = DEVICES.into_iter().chain(["shm", "pts"]);
    names.map(|name| Path::new("/dev").join(name))
}

/// Opens the devices before everything is hidden.
pub(super) fn open_devices() -> io::Result<Vec<(&'static str, MountTree)>> {
    let take = |name| Ok((name, MountTree::from_path(&Path::new("/dev").join(name))?));
    DEVICES.into_iter().map(take).collect()
}

/// Mounts a new `/dev` with these devices.
#[expect(
    clippy::disallowed_methods,
    reason = "a new file system in memory that is mounted at /dev, before the command starts"
)]
pub(super) fn mount_devices(devices: Vec<(&'static str, MountTree)>) -> io::Result<()> {
    let folder = Path::new("/dev");
    MountTree::empty_tmpfs("755")?.mount_over(&open_path(folder)?)?;
    for (name, tree) in devices {
        let path = folder.join(name);
        std::fs::File::create_new(&path)?;
        tree.mount_over(&open_path(&path)?)?;
    }
    for (name, target) in LINKS {
        symlink(target, folder.join(name))?;
    }
    for name in ["shm", "pts"] {
        std::fs::create_dir(folder.join(name))?;
    }
    MountTree::empty_tmpfs("1777")?.mount_over(&open_path(&folder.join("shm"))?)?;
    // Without its own terminals a command can do everything except request one.
    if let Ok(terminals) = MountTree::devpts() {
        terminals.mount_over(&open_path(&folder.join("pts"))?)?;
    }
    Ok(())
}

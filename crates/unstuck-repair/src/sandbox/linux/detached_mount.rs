//! Detached mounts, held by a handle and attached where they are needed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::raw_syscalls::{MountExtent, restrict_mount};

/// Disables set-user-ID programs and devices.
const NO_SUID_NO_DEV: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// A detached mount.
#[derive(Debug)]
pub(super) struct MountTree(OwnedFd);

impl MountTree {
    /// Clones the tree at a path, with all its submounts.
    pub(super) fn from_path(path: &Path) -> io::Result<Self> {
        Self::from_handle(&open_path(path)?)
    }

    /// Clones the tree of a handle, with all its submounts.
    pub(super) fn from_handle(handle: &impl AsFd) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        Ok(Self(open_tree(handle.as_fd(), "", flags)?))
    }

    /// Creates an empty tmpfs.
    pub(super) fn empty_tmpfs(mode: &str) -> io::Result<Self> {
        create_mount("tmpfs", &[("mode", mode)], &[], NO_SUID_NO_DEV)
    }

    /// Creates a private devpts.
    pub(super) fn devpts() -> io::Result<Self> {
        let options = [("mode", "620"), ("ptmxmode", "666")];
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        create_mount("devpts", &options, &["newinstance"], attributes)
    }

    /// Creates a read-only procfs of the visible processes.
    pub(super) fn procfs() -> io::Result<Self> {
        let attributes =
            NO_SUID_NO_DEV | MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_RDONLY;
        create_mount("proc", &[], &[], attributes)
    }

    /// Creates an overlay of two directories; changes go to the upper one.
    pub(super) fn overlay(lower: &Path, upper: &Path, work: &Path) -> io::Result<Self> {
        Self::overlay_with(&[&open_path(lower)?], [open_path(upper)?, open_path(work)?])
    }

    /// Creates an overlay of several directories, the first on top; changes go to the upper one.
    pub(super) fn overlay_of(lower: &[&OwnedFd], upper: &Path, work: &Path) -> io::Result<Self> {
        Self::overlay_with(lower, [open_path(upper)?, open_path(work)?])
    }

    /// Creates an overlay of several directories, the first on top; changes go to memory.
    pub(super) fn overlay_in_memory(lower: &[&OwnedFd]) -> io::Result<Self> {
        let memory = Self::empty_tmpfs("700")?;
        let make = |name: &str| {
            rustix::fs::mkdirat(&memory.0, name, Mode::RWXU)?;
            open_path_below(&memory.0, Path::new(name))
        };
        Self::overlay_with(lower, [make("upper")?, make("work")?])
    }

    fn overlay_with(lower: &[&OwnedFd], writable: [OwnedFd; 2]) -> io::Result<Self> {
        // By handle: no character of a path has a special meaning then.
        let lower: Vec<_> = lower.iter().map(|one| fd_path(one)).collect();
        let lower = lower.join(":");
        let [upper, work] = writable.each_ref().map(fd_path);
        let options = [
            ("lowerdir", lower.as_str()),
            ("upperdir", upper.as_str()),
            ("workdir", work.as_str()),
        ];
        create_mount("overlay", &options, &["userxattr"], NO_SUID_NO_DEV)
    }

    /// Makes the tree and all its submounts read-only.
    pub(super) fn read_only(self) -> io::Result<Self> {
        let flags = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID;
        restrict_mount(&self.0, flags, MountExtent::Tree)?;
        Ok(self)
    }

    /// Disables set-user-ID programs and devices on the tree.
    pub(super) fn without_suid_and_devices(self) -> io::Result<Self> {
        restrict_mount(&self.0, NO_SUID_NO_DEV, MountExtent::Tree)?;
        Ok(self)
    }

    /// Returns its root.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Mounts the tree over the target handle.
    pub(super) fn mount_over(self, target: &impl AsFd) -> io::Result<()> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(self.0, "", target.as_fd(), "", flags)?)
    }
}

fn create_mount(
    kind: &str,
    options: &[(&str, &str)],
    flags: &[&str],
    attributes: MountAttrFlags,
) -> io::Result<MountTree> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    for flag in flags {
        fsconfig_set_flag(&context, *flag)?;
    }
    fsconfig_create(&context)?;
    Ok(MountTree(fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?))
}

fn fd_path(handle: &OwnedFd) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

/// Opens a path; symlinks are followed.
pub(super) fn open_path(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

/// Opens a path below a directory; no symlink is followed.
pub(super) fn open_path_below(folder: &impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(
        folder,
        path,
        flags,
        Mode::empty(),
        resolve,
    )?)
}

//! Pieces of the file system that are held by a handle and mounted where they are needed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::calls::{Extent, restrict};

/// No program of another user, and no device, whatever is on it.
const PLAIN: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// A piece that is not mounted anywhere yet.
#[derive(Debug)]
pub(super) struct Tree(OwnedFd);

impl Tree {
    /// What is at a path now, with everything mounted below.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        Self::of(&open(path)?)
    }

    /// What a handle stands for, with everything mounted below.
    pub(super) fn of(handle: &impl AsFd) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        Ok(Self(open_tree(handle.as_fd(), "", flags)?))
    }

    /// An empty folder in memory.
    pub(super) fn empty(mode: &str) -> io::Result<Self> {
        made("tmpfs", &[("mode", mode)], &[], PLAIN)
    }

    /// Terminals of its own.
    pub(super) fn terminals() -> io::Result<Self> {
        let options = [("mode", "620"), ("ptmxmode", "666")];
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        made("devpts", &options, &["newinstance"], attributes)
    }

    /// The processes that this one sees; nothing in it can be changed.
    pub(super) fn processes() -> io::Result<Self> {
        let attributes =
            PLAIN | MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_RDONLY;
        made("proc", &[], &[], attributes)
    }

    /// One folder over another one, whose changes go to the upper.
    pub(super) fn overlay(lower: &Path, upper: &Path, work: &Path) -> io::Result<Self> {
        Self::laid_over(&[&open(lower)?], [open(upper)?, open(work)?])
    }

    /// Several folders, the first on top, whose changes go to the upper.
    pub(super) fn overlay_of(lower: &[&OwnedFd], upper: &Path, work: &Path) -> io::Result<Self> {
        Self::laid_over(lower, [open(upper)?, open(work)?])
    }

    /// Several folders, the first on top, whose changes go to memory.
    pub(super) fn overlay_in_memory(lower: &[&OwnedFd]) -> io::Result<Self> {
        let memory = Self::empty("700")?;
        let make = |name: &str| {
            rustix::fs::mkdirat(&memory.0, name, Mode::RWXU)?;
            open_below(&memory.0, Path::new(name))
        };
        Self::laid_over(lower, [make("upper")?, make("work")?])
    }

    fn laid_over(lower: &[&OwnedFd], writable: [OwnedFd; 2]) -> io::Result<Self> {
        // By handle: no character of a path can mean anything then.
        let lower: Vec<_> = lower.iter().map(|one| by_handle(one)).collect();
        let lower = lower.join(":");
        let [upper, work] = writable.each_ref().map(by_handle);
        let options = [
            ("lowerdir", lower.as_str()),
            ("upperdir", upper.as_str()),
            ("workdir", work.as_str()),
        ];
        made("overlay", &options, &["userxattr"], PLAIN)
    }

    /// Lets nothing on it be changed, down to everything mounted on it.
    pub(super) fn read_only(self) -> io::Result<Self> {
        let flags = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID;
        restrict(&self.0, flags, Extent::Tree)?;
        Ok(self)
    }

    /// Lets no program of another user and no device on it be used.
    pub(super) fn plain(self) -> io::Result<Self> {
        restrict(&self.0, PLAIN, Extent::Tree)?;
        Ok(self)
    }

    /// Its root.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Mounts it over what the handle stands for.
    pub(super) fn mount_over(self, target: &impl AsFd) -> io::Result<()> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(move_mount(self.0, "", target.as_fd(), "", flags)?)
    }
}

fn made(
    kind: &str,
    options: &[(&str, &str)],
    flags: &[&str],
    attributes: MountAttrFlags,
) -> io::Result<Tree> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    for flag in flags {
        fsconfig_set_flag(&context, *flag)?;
    }
    fsconfig_create(&context)?;
    Ok(Tree(fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?))
}

fn by_handle(handle: &OwnedFd) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

/// A handle of what is at a path; symlinks are followed.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

/// A handle of what is at a path below a folder; no symlink is followed.
pub(super) fn open_below(folder: &impl AsFd, path: &Path) -> io::Result<OwnedFd> {
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

//! Copies a command's result to staging names next to the targets.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, chownat, fchmod, fchown,
    linkat, mkdirat, openat, symlinkat, utimensat,
};
use rustix::io::{Errno, Result};

use super::change_set::identity;
use super::nofollow_access;
use super::overlay_reader::OverlayEntry;
use super::tree_path::TreePath;

/// Copies trees of a preview into a project.
#[derive(Debug)]
pub(super) struct StagingCopier<'a> {
    /// Root of the project.
    pub(super) root: &'a OwnedFd,
    /// Copied files with several hard links, by device and inode.
    links: HashMap<(i128, u64), TreePath>,
}

impl<'a> StagingCopier<'a> {
    pub(super) fn new(root: &'a OwnedFd) -> Self {
        Self {
            root,
            links: HashMap::new(),
        }
    }

    /// Copies an entry and its contents to a free path.
    pub(super) fn copy(&mut self, item: &OverlayEntry<'_>, to: &TreePath) -> io::Result<()> {
        let (folder, name) = to.split().ok_or(Errno::INVAL)?;
        let folder = nofollow_access::open_dir_at(self.root, &folder)?;
        self.copy_into(item, &folder, to, name)
    }

    fn copy_into(
        &mut self,
        item: &OverlayEntry<'_>,
        folder: &OwnedFd,
        to: &TreePath,
        name: &[u8],
    ) -> io::Result<()> {
        match item.kind() {
            FileType::RegularFile => self.copy_file(item, folder, to, name),
            FileType::Directory => self.copy_dir(item, folder, to, name),
            FileType::Symlink => Ok(copy_link(item, folder, name)?),
            FileType::Fifo => Ok(copy_pipe(item, folder, name)?),
            _ => Err(Errno::INVAL.into()),
        }
    }

    fn copy_dir(
        &mut self,
        item: &OverlayEntry<'_>,
        folder: &OwnedFd,
        to: &TreePath,
        name: &[u8],
    ) -> io::Result<()> {
        mkdirat(folder, name, Mode::RWXU)?;
        let inner = nofollow_access::open_dir(folder, name)?;
        let from = item.open_dir(self.root)?;
        for name in from.names()? {
            if let Some(item) = from.entry(&name)? {
                self.copy_into(&item, &inner, &to.join(&name), &name)?;
            }
        }
        Ok(copy_metadata(&inner, &item.data)?)
    }

    fn copy_file(
        &mut self,
        item: &OverlayEntry<'_>,
        folder: &OwnedFd,
        to: &TreePath,
        name: &[u8],
    ) -> io::Result<()> {
        let key = identity(&item.data);
        if let Some(first) = self.links.get(&key) {
            let (beside, first) = first.split().ok_or(Errno::INVAL)?;
            let beside = nofollow_access::open_dir_at(self.root, &beside)?;
            return Ok(linkat(beside, first, folder, name, AtFlags::empty())?);
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(folder, name, flags | OFlags::CLOEXEC, mode)?;
        let mut file = File::from(file);
        io::copy(&mut item.open()?, &mut file)?;
        copy_metadata(&file, &item.data)?;
        if item.data.st_nlink > 1 {
            self.links.insert(key, to.clone());
        }
        Ok(())
    }
}

fn copy_link(item: &OverlayEntry<'_>, folder: &OwnedFd, name: &[u8]) -> Result<()> {
    symlinkat(item.target()?, folder, name)?;
    let (owner, group) = owner_ids(&item.data);
    ignore_not_permitted(chownat(
        folder,
        name,
        owner,
        group,
        AtFlags::SYMLINK_NOFOLLOW,
    ))?;
    utimensat(
        folder,
        name,
        &file_times(&item.data),
        AtFlags::SYMLINK_NOFOLLOW,
    )
}

#[cfg(target_os = "linux")]
fn copy_pipe(item: &OverlayEntry<'_>, folder: &OwnedFd, name: &[u8]) -> Result<()> {
    let mode = Mode::from_raw_mode(item.data.st_mode);
    rustix::fs::mknodat(folder, name, FileType::Fifo, mode, 0)?;
    // Restores the bits that the umask removed.
    let mode = super::change_set::permissions(&item.data);
    nofollow_access::set_mode(folder, name, mode)
}

#[cfg(not(target_os = "linux"))]
fn copy_pipe(_item: &OverlayEntry<'_>, _folder: &OwnedFd, _name: &[u8]) -> Result<()> {
    Err(Errno::NOTSUP)
}

/// Sets the owner, permissions and times of a copy.
fn copy_metadata(copy: impl AsFd, data: &Stat) -> Result<()> {
    let (owner, group) = owner_ids(data);
    ignore_not_permitted(fchown(&copy, owner, group))?;
    fchmod(&copy, Mode::from_raw_mode(data.st_mode))?;
    rustix::fs::futimens(copy, &file_times(data))
}

fn owner_ids(data: &Stat) -> (Option<Uid>, Option<Gid>) {
    let (owner, group) = (Uid::from_raw(data.st_uid), Gid::from_raw(data.st_gid));
    (Some(owner), Some(group))
}

/// Ignores missing permission: only root may change owners; other users own their files anyway.
fn ignore_not_permitted(done: Result<()>) -> Result<()> {
    match done {
        Err(Errno::PERM) => Ok(()),
        other => other,
    }
}

/// Returns the access and modification times.
pub(super) fn file_times(data: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: data.st_atime,
            tv_nsec: data.st_atime_nsec as _,
        },
        last_modification: Timespec {
            tv_sec: data.st_mtime,
            tv_nsec: data.st_mtime_nsec as _,
        },
    }
}

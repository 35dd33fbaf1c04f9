//! Close-on-exec for systems that cannot set it when a descriptor is created.

use std::io;
use std::os::fd::AsFd;

use rustix::io::FdFlags;

/// Prevents a descriptor from being inherited. A program that another thread starts just before still inherits it.
pub(crate) fn keep(descriptor: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC)?)
}

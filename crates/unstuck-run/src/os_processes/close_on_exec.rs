//! Sets the close-on-exec flag of descriptors, where the system cannot create them with it.

use std::io;
use std::os::fd::AsFd;

use rustix::io::FdFlags;

/// Keeps a descriptor from being inherited. A program that another thread starts just before still inherits it.
pub(crate) fn set_close_on_exec(descriptor: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC)?)
}

//! Changes what mounts allow, a whole tree at once.
//!
//! No crate wraps this system call yet, so this is the one place of the sandbox with `unsafe` in it.
#![expect(unsafe_code, reason = "mount_setattr(2) has no safe wrapper")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::libc;
use rustix::mount::MountAttrFlags;

/// How far a change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// One mount.
    One,
    /// It and everything mounted below.
    Tree,
}

/// The kernel's `struct mount_attr`, first version.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Adds restrictions to the mount of which the descriptor is the root.
pub(super) fn restrict(mount: &impl AsFd, flags: MountAttrFlags, extent: Extent) -> io::Result<()> {
    let attributes = Attributes {
        set: flags.bits().into(),
        clear: 0,
        propagation: 0,
        userns: 0,
    };
    let recursive = match extent {
        Extent::One => 0,
        Extent::Tree => libc::AT_RECURSIVE,
    };
    // SAFETY: the path is a constant that ends with zero, the structure outlives the call, the kernel only reads it and
    // its size is passed along; the descriptor is borrowed and so open.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

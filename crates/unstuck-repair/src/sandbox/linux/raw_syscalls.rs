//! Two system calls that no crate wraps yet: recursive mount restrictions, and close-on-exec for all descriptors. This
//! is the only place of the sandbox with `unsafe` code.
#![expect(
    unsafe_code,
    reason = "mount_setattr(2) and close_range(2) have no safe wrapper"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::libc;
use rustix::mount::MountAttrFlags;

/// The extent of a mount change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountExtent {
    /// One mount.
    One,
    /// The mount and everything mounted below.
    Tree,
}

/// The kernel's `struct mount_attr`, first version.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Adds restrictions to the mount at the descriptor's root.
pub(super) fn restrict_mount(
    mount: &impl AsFd,
    flags: MountAttrFlags,
    extent: MountExtent,
) -> io::Result<()> {
    let attributes = MountAttributes {
        set: flags.bits().into(),
        clear: 0,
        propagation: 0,
        userns: 0,
    };
    let recursive = match extent {
        MountExtent::One => 0,
        MountExtent::Tree => libc::AT_RECURSIVE,
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
            size_of::<MountAttributes>(),
        )
    };
    syscall_result(done)
}

/// Lets started programs inherit only their three standard streams, whichever descriptors are open.
pub(in crate::sandbox) fn close_descriptors_on_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: no descriptor is closed or changed but for the mark that programs do not inherit it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    syscall_result(done)
}

fn syscall_result(done: libc::c_long) -> io::Result<()> {
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

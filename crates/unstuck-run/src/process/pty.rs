//! A pseudo-terminal for a child that behaves differently without one.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, SpecialCodeIndex, Winsize};

use super::async_fd::{FdReader, FdWriter};

/// Size if we have no terminal ourselves.
const DEFAULT_SIZE: Winsize = Winsize {
    ws_row: 24,
    ws_col: 80,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// Our side of a pseudo-terminal.
pub(super) struct Pty {
    master: OwnedFd,
    path: OsString,
}

impl Pty {
    /// Opens a pseudo-terminal with the size of our own terminal.
    pub(super) fn open() -> io::Result<Self> {
        let master = open_master()?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let path = rustix::pty::ptsname(&master, Vec::new())?;
        let pty = Self {
            path: OsString::from_vec(path.into_bytes()),
            master,
        };
        pty.resize();
        Ok(pty)
    }

    /// Returns the path of the child's side.
    pub(super) fn path(&self) -> &OsString {
        &self.path
    }

    /// Returns our side for reading the child's output.
    pub(super) fn reader(&self) -> io::Result<FdReader> {
        FdReader::from_owned(self.master.try_clone()?)
    }

    /// Returns our side for typing.
    pub(super) fn writer(&self) -> io::Result<FdWriter> {
        FdWriter::from_owned(self.master.try_clone()?)
    }

    /// Counts the interrupts that these keys cause; none if the program handles the key itself.
    pub(super) fn count_interrupts(&self, keys: &[u8]) -> usize {
        let Ok(modes) = rustix::termios::tcgetattr(&self.master) else {
            return 0;
        };
        if !modes.local_modes.contains(LocalModes::ISIG) {
            return 0;
        }
        let interrupt = modes.special_codes[SpecialCodeIndex::VINTR];
        keys.iter().filter(|key| **key == interrupt).count()
    }

    /// Resizes it to the current size of our own terminal.
    pub(super) fn resize(&self) {
        // A wrong size is no reason to fail.
        let _ = rustix::termios::tcsetwinsize(&self.master, own_size().unwrap_or(DEFAULT_SIZE));
    }
}

#[cfg(target_os = "linux")]
fn open_master() -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    Ok(rustix::pty::openpt(flags)?)
}

#[cfg(not(target_os = "linux"))]
fn open_master() -> io::Result<OwnedFd> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    crate::os_processes::close_on_exec::set_close_on_exec(&master)?;
    Ok(master)
}

fn own_size() -> Option<Winsize> {
    [
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
    ]
    .into_iter()
    .find_map(|stream| rustix::termios::tcgetwinsize(stream).ok())
    .filter(|size| size.ws_row > 0 && size.ws_col > 0)
}

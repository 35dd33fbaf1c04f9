//! Asks the kernel for one socket (`sock_diag(7)`).

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use super::Socket;

const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
const TCP: u8 = 6;
const INET: u8 = 2;
const INET6: u8 = 10;
const ALL_STATES: u32 = u32::MAX;
const ANY_COOKIE: [u8; 8] = [0xff; 8];
/// The errno of a socket that is not there.
const NO_ENTRY: i32 = 2;

/// The header of a message, then that of the answer, with what is read of both.
const REQUEST_LENGTH: u32 = 72;
const MESSAGE: usize = 16;
const PORTS: usize = MESSAGE + 4;
const UID: usize = MESSAGE + 64;
const INODE: usize = MESSAGE + 68;

/// The socket with this address of its own that is connected to that one; none if there is none.
pub(super) fn find(own: SocketAddr, other: SocketAddr) -> io::Result<Option<Socket>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &request(own, other), SendFlags::empty(), &kernel)?;
    let mut answer = [0; 4096];
    // The kernel has answered by the time the request is sent.
    let (_, length) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT)?;
    read(answer.get(..length).unwrap_or_default(), own, other)
}

fn request(own: SocketAddr, other: SocketAddr) -> Vec<u8> {
    let mut request = Vec::with_capacity(REQUEST_LENGTH as usize);
    request.extend(REQUEST_LENGTH.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST.to_ne_bytes());
    request.extend([0; 8]); // sequence, port
    let family = if own.is_ipv4() { INET } else { INET6 };
    request.extend([family, TCP, 0, 0]);
    request.extend(ALL_STATES.to_ne_bytes());
    request.extend(own.port().to_be_bytes());
    request.extend(other.port().to_be_bytes());
    request.extend(address(own.ip()));
    request.extend(address(other.ip()));
    request.extend([0; 4]); // interface
    request.extend(ANY_COOKIE);
    request
}

fn address(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&ip.octets());
            octets
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn read(answer: &[u8], own: SocketAddr, other: SocketAddr) -> io::Result<Option<Socket>> {
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let word = |at: usize| {
        let bytes = answer.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(bytes))
    };
    let half = |at: usize| {
        let bytes: [u8; 2] = answer.get(at..at + 2)?.try_into().ok()?;
        Some(bytes)
    };
    let kind = half(4).map(u16::from_ne_bytes).ok_or_else(short)?;
    if kind == ERROR {
        let code = word(MESSAGE)
            .ok_or_else(short)?
            .cast_signed()
            .wrapping_neg();
        return match code {
            NO_ENTRY => Ok(None),
            code => Err(io::Error::from_raw_os_error(code)),
        };
    }
    if kind != BY_FAMILY {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let port = |at| half(at).map(u16::from_be_bytes).ok_or_else(short);
    // Where there is no such connection, the kernel names who listens at that address.
    if (port(PORTS)?, port(PORTS + 2)?) != (own.port(), other.port()) {
        return Ok(None);
    }
    Ok(Some(Socket {
        uid: word(UID).ok_or_else(short)?,
        inode: word(INODE).ok_or_else(short)?,
    }))
}

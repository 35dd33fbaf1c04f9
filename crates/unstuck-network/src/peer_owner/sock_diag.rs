//! Queries the kernel for one socket (`sock_diag(7)`).

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use super::KernelSocket;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const ALL_STATES: u32 = u32::MAX;
const ANY_COOKIE: [u8; 8] = [0xff; 8];
/// The errno of a missing socket.
const ENOENT: i32 = 2;

/// Lengths of the request and of the parts of the response that are read.
const REQUEST_LENGTH: u32 = 72;
const HEADER_LENGTH: usize = 16;
const PORTS_OFFSET: usize = HEADER_LENGTH + 4;
const UID_OFFSET: usize = HEADER_LENGTH + 64;
const INODE_OFFSET: usize = HEADER_LENGTH + 68;

/// Returns the socket with this local address that is connected to that remote address.
pub(super) fn find_socket(own: SocketAddr, other: SocketAddr) -> io::Result<Option<KernelSocket>> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(
        &socket,
        &build_request(own, other),
        SendFlags::empty(),
        &kernel,
    )?;
    let mut answer = [0; 4096];
    // The kernel has answered by the time the request is sent.
    let (_, length) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT)?;
    parse_response(answer.get(..length).unwrap_or_default(), own, other)
}

fn build_request(own: SocketAddr, other: SocketAddr) -> Vec<u8> {
    let mut request = Vec::with_capacity(REQUEST_LENGTH as usize);
    request.extend(REQUEST_LENGTH.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 8]); // sequence, port
    let family = if own.is_ipv4() { AF_INET } else { AF_INET6 };
    request.extend([family, IPPROTO_TCP, 0, 0]);
    request.extend(ALL_STATES.to_ne_bytes());
    request.extend(own.port().to_be_bytes());
    request.extend(other.port().to_be_bytes());
    request.extend(address_bytes(own.ip()));
    request.extend(address_bytes(other.ip()));
    request.extend([0; 4]); // interface
    request.extend(ANY_COOKIE);
    request
}

fn address_bytes(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&ip.octets());
            octets
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn parse_response(
    answer: &[u8],
    own: SocketAddr,
    other: SocketAddr,
) -> io::Result<Option<KernelSocket>> {
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
    if kind == NLMSG_ERROR {
        let code = word(HEADER_LENGTH)
            .ok_or_else(short)?
            .cast_signed()
            .wrapping_neg();
        return match code {
            ENOENT => Ok(None),
            code => Err(io::Error::from_raw_os_error(code)),
        };
    }
    if kind != SOCK_DIAG_BY_FAMILY {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let port = |at| half(at).map(u16::from_be_bytes).ok_or_else(short);
    // If there is no such connection, the kernel returns the listener at that address.
    if (port(PORTS_OFFSET)?, port(PORTS_OFFSET + 2)?) != (own.port(), other.port()) {
        return Ok(None);
    }
    Ok(Some(KernelSocket {
        uid: word(UID_OFFSET).ok_or_else(short)?,
        inode: word(INODE_OFFSET).ok_or_else(short)?,
    }))
}

//! Finds one TCP socket in `/proc/net/tcp` and `/proc/net/tcp6`, where netlink is not available.

use std::fs;
use std::net::{IpAddr, SocketAddr};

use super::KernelSocket;

/// Returns the socket with this local address that is connected to that remote address.
#[expect(
    clippy::disallowed_methods,
    reason = "the sockets are listed by the kernel in /proc/net"
)]
pub(super) fn find_socket(own: SocketAddr, other: SocketAddr) -> Option<KernelSocket> {
    // An IPv6 client may be connected over IPv4.
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    let v4 = || {
        let text = fs::read_to_string("/proc/net/tcp").ok()?;
        find_in_table(&text, own, other)
    };
    let v6 = || {
        let text = fs::read_to_string("/proc/net/tcp6").ok()?;
        find_in_table(&text, mapped(own), mapped(other))
    };
    let in_v4 = if own.is_ipv4() { v4() } else { None };
    in_v4.or_else(v6)
}

fn find_in_table(text: &str, own: SocketAddr, other: SocketAddr) -> Option<KernelSocket> {
    let (own, other) = (format_kernel_address(own), format_kernel_address(other));
    text.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, local, remote, _, _, _, _, uid, _, inode, ..] = fields.as_slice() else {
            return None;
        };
        let is_it = *local == own && *remote == other;
        is_it.then_some(KernelSocket {
            uid: uid.parse().ok()?,
            inode: inode.parse().ok()?,
        })
    })
}

/// Formats an address as the kernel does: words of four bytes in native byte order.
fn format_kernel_address(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets.chunks_exact(4).map(|word| {
        let word = word.try_into().map_or(0, u32::from_ne_bytes);
        format!("{word:08X}")
    });
    let ip: String = words.collect();
    format!("{ip}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn a_line_of_proc_net_tcp_is_parsed() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0\n   \
             1: 0100007F:C000 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  6666        0 12 1 0 20 4\n";
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let found = find_in_table(text, address(0xC000), address(0x1F90));
        assert_eq!(
            found,
            Some(KernelSocket {
                uid: 6666,
                inode: 12
            })
        );
        assert_eq!(find_in_table(text, address(0xC001), address(0x1F90)), None);
    }
}

//! The user who owns the other end of a local connection.
//!
//! Loopback is shared by all users of a machine. The kernel knows who opened a socket: Linux answers for an exact
//! address pair over netlink (`sock_diag`), and lists all sockets in `/proc/net/tcp`. Other systems tell only
//! privileged programs, so the owner stays unknown there and clients need a token.

#[cfg(target_os = "linux")]
mod proc_net_tcp;
#[cfg(target_os = "linux")]
mod sock_diag;

use std::net::SocketAddr;

/// The owner of the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerOwner {
    /// The user that this process runs as, or root, who has full access anyway.
    SameUser,
    /// Another user of this machine, by user id.
    OtherUser(u32),
    /// Unknown: another machine, a connection that is already closed, or a system that does not tell.
    Unknown,
}

impl PeerOwner {
    /// Finds the owner of `peer`, the other end of a connection to our `local` address.
    #[cfg(target_os = "linux")]
    pub fn lookup(local: SocketAddr, peer: SocketAddr) -> Self {
        let canonical =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        let (local, peer) = (canonical(local), canonical(peer));
        if !peer.ip().is_loopback() {
            return Self::Unknown;
        }
        let found = sock_diag::find_socket(peer, local)
            .unwrap_or_else(|_| proc_net_tcp::find_socket(peer, local));
        let viewer = UserNamespaceView::current();
        found.map_or(Self::Unknown, |socket| viewer.owner_of(socket))
    }

    /// Always unknown on this system.
    #[cfg(not(target_os = "linux"))]
    pub fn lookup(_local: SocketAddr, _peer: SocketAddr) -> Self {
        Self::Unknown
    }
}

/// A socket in the kernel's list.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KernelSocket {
    uid: u32,
    /// Zero once no process has it open; the kernel then reports root as its owner.
    inode: u32,
}

/// How this process sees user ids in its user namespace.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy)]
struct UserNamespaceView {
    uid: u32,
    /// The id of all users without a mapping in this namespace, or `None` if all are mapped.
    unmapped: Option<u32>,
    /// If set, Windows programs around WSL connect through a relay that runs as root.
    root_relays: bool,
}

#[cfg(target_os = "linux")]
impl UserNamespaceView {
    #[expect(
        clippy::disallowed_methods,
        reason = "the maps of user ids and the settings of the kernel are in /proc"
    )]
    fn current() -> Self {
        use std::sync::OnceLock;
        static VIEWER: OnceLock<UserNamespaceView> = OnceLock::new();
        *VIEWER.get_or_init(|| {
            let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
            let map = read("/proc/self/uid_map");
            let map: Vec<_> = map.split_whitespace().collect();
            let overflow = read("/proc/sys/kernel/overflowuid");
            let release = read("/proc/sys/kernel/osrelease").to_ascii_lowercase();
            Self {
                uid: rustix::process::geteuid().as_raw(),
                unmapped: (map != ["0", "0", "4294967295"])
                    .then(|| overflow.trim().parse().unwrap_or(65_534)),
                root_relays: release.contains("microsoft") || release.contains("wsl"),
            }
        })
    }

    fn owner_of(self, socket: KernelSocket) -> PeerOwner {
        match socket {
            KernelSocket { inode: 0, .. } => PeerOwner::Unknown,
            KernelSocket { uid, .. } if Some(uid) == self.unmapped => PeerOwner::Unknown,
            KernelSocket { uid: 0, .. } if self.root_relays => PeerOwner::Unknown,
            KernelSocket { uid, .. } if uid == self.uid || uid == 0 => PeerOwner::SameUser,
            KernelSocket { uid, .. } => PeerOwner::OtherUser(uid),
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn connected(address: &str) -> (TcpStream, SocketAddr, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, from) = listener.accept().unwrap();
        (server, from, client)
    }

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn own_connections_are_recognized_by_both_lookups() {
        for address in ["127.0.0.1:0", "[::1]:0", "127.5.6.7:0"] {
            let (server, from, _client) = connected(address);
            let local = server.local_addr().unwrap();
            assert_eq!(
                PeerOwner::lookup(local, from),
                PeerOwner::SameUser,
                "{address}"
            );
            let asked = sock_diag::find_socket(from, local).unwrap().unwrap();
            let listed = proc_net_tcp::find_socket(from, local).unwrap();
            assert_eq!(asked, listed, "{address}");
            assert_eq!(asked.uid, own(), "{address}");
        }
    }

    #[test]
    fn an_ipv6_socket_connected_over_ipv4_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let _client = TcpStream::connect(("::ffff:127.0.0.1", port)).unwrap();
        let (server, from) = listener.accept().unwrap();
        let local = server.local_addr().unwrap();
        assert_eq!(PeerOwner::lookup(local, from), PeerOwner::SameUser);
        assert!(proc_net_tcp::find_socket(from, local).is_some());
    }

    /// The kernel reports root as the owner of a socket that nobody has open any more: a request that is sent and
    /// abandoned must not pass as root's.
    #[test]
    fn a_closed_connection_has_an_unknown_owner() {
        let (server, from, mut client) = connected("127.0.0.1:0");
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        drop(client);
        let local = server.local_addr().unwrap();
        assert_eq!(PeerOwner::lookup(local, from), PeerOwner::Unknown);
    }

    #[test]
    fn a_missing_connection_is_unknown_even_if_a_listener_exists() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let listening = listener.local_addr().unwrap();
        let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
        assert_eq!(PeerOwner::lookup(nobody, listening), PeerOwner::Unknown);
        assert_eq!(proc_net_tcp::find_socket(listening, nobody), None);
        let elsewhere = "192.0.2.7:80".parse().unwrap();
        assert_eq!(PeerOwner::lookup(listening, elsewhere), PeerOwner::Unknown);
    }

    #[test]
    fn unmapped_user_ids_are_unknown() {
        let socket = |uid| KernelSocket { uid, inode: 7 };
        let plain = UserNamespaceView {
            uid: 1000,
            unmapped: None,
            root_relays: false,
        };
        assert_eq!(plain.owner_of(socket(1000)), PeerOwner::SameUser);
        assert_eq!(plain.owner_of(socket(0)), PeerOwner::SameUser);
        assert_eq!(plain.owner_of(socket(1001)), PeerOwner::OtherUser(1001));
        assert_eq!(plain.owner_of(socket(65_534)), PeerOwner::OtherUser(65_534));
        let orphan = KernelSocket { uid: 0, inode: 0 };
        assert_eq!(plain.owner_of(orphan), PeerOwner::Unknown);
        let contained = UserNamespaceView {
            uid: 65_534,
            unmapped: Some(65_534),
            ..plain
        };
        assert_eq!(contained.owner_of(socket(65_534)), PeerOwner::Unknown);
        let in_wsl = UserNamespaceView {
            root_relays: true,
            ..plain
        };
        assert_eq!(in_wsl.owner_of(socket(0)), PeerOwner::Unknown);
        assert_eq!(in_wsl.owner_of(socket(1000)), PeerOwner::SameUser);
    }
}

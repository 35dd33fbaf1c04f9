//! Network facts: connectivity (a default route and working name resolution), the user at the other end of a
//! connection, and the host that a request was sent to.

mod host_header;
mod peer_owner;

pub use host_header::{host_name, is_loopback_name, unambiguous_host};
pub use peer_owner::PeerOwner;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::select_ok;
use tokio::sync::watch;
use unstuck_core::network_symptom::probe_names;

/// Timeout of a name lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The loopback interface.
const LOOPBACK_INTERFACE: &str = "lo";

/// A connectivity check.
#[derive(Debug, Clone)]
pub enum NetworkProbe {
    /// Checks the machine's routes and resolves names.
    System {
        /// If set, programs use a proxy, so routes and names say nothing about connectivity.
        has_proxy: bool,
    },
    /// Reports a value set by a test.
    Simulated(watch::Receiver<bool>),
}

impl NetworkProbe {
    /// True if there is no network. If this cannot be determined, a network is assumed.
    pub async fn is_offline(&self) -> bool {
        match self {
            Self::System { has_proxy: true } => false,
            Self::System { has_proxy: false } => match has_route(Path::new("/proc/net")) {
                Some(true) => !resolves_any(probe_names()).await,
                Some(false) => true,
                None => false,
            },
            Self::Simulated(is_offline) => *is_offline.borrow(),
        }
    }
}

/// Returns true if the machine has a default route, or `None` if that cannot be read here.
#[expect(
    clippy::disallowed_methods,
    reason = "the routes are files of the kernel in /proc/net"
)]
fn has_route(proc_net: &Path) -> Option<bool> {
    let read = |name: &str| fs::read_to_string(PathBuf::from(proc_net).join(name));
    let v4 = read("route").ok()?;
    let v6 = read("ipv6_route").unwrap_or_default();
    Some(v4.lines().any(is_default_v4) || v6.lines().any(is_default_v6))
}

/// Parses a line of `/proc/net/route`: interface, destination, gateway, flags, …, mask.
fn is_default_v4(line: &str) -> bool {
    let fields: Vec<_> = line.split_whitespace().collect();
    matches!(fields.as_slice(), [interface, "00000000", _, flags, _, _, _, "00000000", ..]
        if *interface != LOOPBACK_INTERFACE && is_up_flag(flags))
}

/// Parses a line of `/proc/net/ipv6_route`: destination, its length, …, flags, interface.
fn is_default_v6(line: &str) -> bool {
    let fields: Vec<_> = line.split_whitespace().collect();
    matches!(fields.as_slice(), [destination, "00", _, _, _, _, _, _, flags, interface]
        if destination.bytes().all(|digit| digit == b'0') && *interface != LOOPBACK_INTERFACE && is_up_flag(flags) && !is_reject_flag(flags))
}

fn is_up_flag(flags: &str) -> bool {
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 != 0)
}

/// True for the default route by which the kernel rejects everything.
fn is_reject_flag(flags: &str) -> bool {
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & 0x200 != 0)
}

/// True if any of these names resolves.
async fn resolves_any(names: &[String]) -> bool {
    let lookups = names.iter().map(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 443));
            match tokio::time::timeout(LOOKUP_TIMEOUT, found).await {
                Ok(Ok(mut found)) => found.next().map(drop).ok_or(()),
                Ok(Err(_)) | Err(_) => Err(()),
            }
        })
    });
    let lookups: Vec<_> = lookups.collect();
    lookups.is_empty() || select_ok(lookups).await.is_ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes files")]
mod tests {
    use super::*;

    const V4: &str =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
    const REJECT: &str = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    fn routes(v4: &str, v6: &str) -> Option<bool> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("route"), format!("{V4}{v4}")).unwrap();
        fs::write(folder.path().join("ipv6_route"), v6).unwrap();
        has_route(folder.path())
    }

    #[test]
    fn only_a_default_route_counts_as_connectivity() {
        let eth = "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
        assert_eq!(routes(eth, ""), Some(true));
        let link = "eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
        assert_eq!(routes(link, REJECT), Some(false));
        assert_eq!(routes("", ""), Some(false));
        let down = "eth0\t00000000\t0101A8C0\t0002\t0\t0\t100\t00000000\t0\t0\t0\n";
        assert_eq!(routes(down, ""), Some(false));
        let v6 = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n";
        assert_eq!(routes("", &format!("{REJECT}{v6}")), Some(true));
        assert_eq!(has_route(Path::new("/nowhere")), None);
    }

    #[tokio::test]
    async fn local_names_resolve_and_invalid_names_do_not() {
        assert!(resolves_any(&["..".into(), "localhost".into()]).await);
        assert!(!resolves_any(&["..".into()]).await);
    }

    #[tokio::test]
    async fn a_proxy_makes_connectivity_unknown() {
        let probe = NetworkProbe::System { has_proxy: true };
        assert!(!probe.is_offline().await);
        let (tell, told) = watch::channel(true);
        let probe = NetworkProbe::Simulated(told);
        assert!(probe.is_offline().await);
        tell.send(false).unwrap();
        assert!(!probe.is_offline().await);
    }
}

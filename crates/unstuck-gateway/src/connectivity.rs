//! Network detection for this machine, shared by all calls.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use unstuck_core::Timestamp;
use unstuck_network::NetworkProbe;

use crate::system_clock;

/// The lifetime of a probe result.
const CACHE_TTL: Duration = Duration::from_secs(1);

/// Detects a missing network; concurrent callers share one name lookup.
#[derive(Debug)]
pub(crate) struct Connectivity {
    probe: NetworkProbe,
    cache: Mutex<ProbeCache>,
}

#[derive(Debug, Default)]
struct ProbeCache {
    /// The time and result of the last probe; true means offline.
    last_result: Option<(Instant, bool)>,
    /// The time when the network was last seen to be back.
    online_since: Option<Timestamp>,
}

impl Connectivity {
    /// Creates a detector for the given probe.
    pub(crate) fn new(probe: NetworkProbe) -> Self {
        Self {
            probe,
            cache: Mutex::default(),
        }
    }

    /// Returns true if there is no network at all.
    pub(crate) async fn is_offline(&self) -> bool {
        let mut seen = self.cache.lock().await;
        if let Some((at, is_offline)) = seen.last_result
            && at.elapsed() < CACHE_TTL
        {
            return is_offline;
        }
        let is_offline = self.probe.is_offline().await;
        let was_offline = seen.last_result.is_some_and(|(_, was)| was);
        if was_offline && !is_offline {
            seen.online_since = Some(system_clock::timestamp_now());
        }
        seen.last_result = Some((Instant::now(), is_offline));
        is_offline
    }

    /// Returns the time when the network was last seen to be back; the same for all waiting calls.
    pub(crate) async fn online_since(&self) -> Option<Timestamp> {
        self.cache.lock().await.online_since
    }
}

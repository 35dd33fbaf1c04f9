//! Whether this machine has a network at all, asked on behalf of all calls at once.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use unstuck_core::Timestamp;
use unstuck_network::NetworkProbe;

use crate::clock;

/// What was found out is believed for so long.
const CACHE_TTL: Duration = Duration::from_secs(1);

/// Tells whether there is no network; names are resolved once for all who ask at the same time.
#[derive(Debug)]
pub(crate) struct Connectivity {
    probe: NetworkProbe,
    cache: Mutex<ProbeCache>,
}

#[derive(Debug, Default)]
struct ProbeCache {
    /// Whether it was gone, and when that was found out.
    last_result: Option<(Instant, bool)>,
    /// When it was last seen to be back.
    online_since: Option<Timestamp>,
}

impl Connectivity {
    /// Asks the probe.
    pub(crate) fn new(probe: NetworkProbe) -> Self {
        Self {
            probe,
            cache: Mutex::default(),
        }
    }

    /// Whether there is no network at all.
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
            seen.online_since = Some(clock::timestamp_now());
        }
        seen.last_result = Some((Instant::now(), is_offline));
        is_offline
    }

    /// When the network was last seen to be back; the same for all who waited for it.
    pub(crate) async fn online_since(&self) -> Option<Timestamp> {
        self.cache.lock().await.online_since
    }
}
